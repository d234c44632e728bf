"""Why an op of MLIR cannot be imported, in words."""

from __future__ import annotations

from collections.abc import Mapping

_HOST = "talks to the host or another program while it runs"
_LOCAL = "is per-device code: programs here are written on whole arrays"
_DYNAMIC = "has a shape that is data: shapes must be known"
_QUANTIZED = "is about quantized types"
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("infeed", "outfeed", "send", "recv", "create_token", "after_all"), _HOST),
    **dict.fromkeys(("async_start", "async_done"), "is half of an asynchronous op"),
    **dict.fromkeys(
        (
            *("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "collective_permute", "collective_broadcast"),
            *("cross-replica-sum", "partition_id", "replica_id", "sharded_to_unreduced", "replicated_to_unreduced"),
        ),
        _LOCAL,
    ),
    **dict.fromkeys(
        (
            *("dynamic_broadcast_in_dim", "dynamic_conv", "dynamic_gather", "dynamic_iota", "dynamic_pad"),
            *("dynamic_reshape", "real_dynamic_slice", "set_dimension_size"),
        ),
        _DYNAMIC,
    ),
    **dict.fromkeys(("uniform_quantize", "uniform_dequantize"), _QUANTIZED),
}


def why_not(name: str) -> str:
    """The message about an op that is not known."""
    reason = _REASONS.get(name.partition(".")[2])
    return f"the op {name} {reason}" if reason else f"the op {name} is not known here"
