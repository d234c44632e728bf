"""Why an op of MLIR cannot be imported, in words; all other ops of StableHLO, CHLO and Shardy can."""

from __future__ import annotations

from collections.abc import Mapping

from gspmd.interop.import_types import Dynamic, Unsupported

_HOST = "talks to the host or another program while it runs"
_ASYNC = "is half of an asynchronous op: what overlaps is decided here"
_DYNAMIC = "has a shape that is data: shapes must be known"
_QUANTIZED = "is about quantized types"
_BY_REASON = {
    _HOST: "infeed outfeed send recv",
    _ASYNC: "async_start async_done",
    _DYNAMIC: "dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape "
    "real_dynamic_slice set_dimension_size",
    _QUANTIZED: "uniform_quantize uniform_dequantize",
}
# The ops that are refused, and why; those with shapes that are data only if these do not follow from the module.
EXCLUDED: Mapping[str, str] = {
    f"stablehlo.{name}": reason for reason, names in _BY_REASON.items() for name in names.split()
}


def refusal(name: str) -> Unsupported:
    """The error about an op that is not known."""
    reason = EXCLUDED.get(name)
    kind = Dynamic if reason == _DYNAMIC else Unsupported
    return kind(f"the op {name} {reason}" if reason else f"the op {name} is not known here")
