"""Custom calls: XLA's annotations, LAPACK's routines, CHLO's ops as other versions spell them, and a few more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gspmd.interop.import_annotations import sharding_call
from gspmd.interop.import_lapack import CALLS as LINEAR_ALGEBRA
from gspmd.interop.import_lapack import lapack_routine, read_config
from gspmd.interop.import_marks import full_to_shard, shard_to_full
from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_scope import Bound, one
from gspmd.interop.import_top_k import picked
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Handler, Visit
from gspmd.ir.attrs import Attrs
from gspmd.ir.opdef import OpDef
from gspmd.ir.types import TensorType
from gspmd.ops import OPS
from gspmd.ops.moving import SLICE, SliceAttrs
from gspmd.ops.sorting import SORT, SortAttrs

# How the call is made, and where arrays lie in memory.
_INTERFACE = (
    "api_version", "call_target_name", "called_computations", "custom_call_schedule", "has_side_effect",
    "mhlo.version", "operand_layouts", "output_operand_aliases", "result_layouts",
)  # fmt: skip
_DIALECTS = ("mhlo", "chlo")


def read_custom_call(v: Visit) -> Sequence[Bound]:
    """A custom call, by its target's name; raises Unsupported for one that is not known."""
    target: str = v.value("call_target_name")
    v.read.update(_INTERFACE)
    routine = _CALLS.get(target) or lapack_routine(target)
    if routine is not None:
        return _in_its_tuple(v, routine)
    op = _chlo_op(target)
    if op is not None:
        read_config(v)
        return v.emit(op, v.operands, Attrs())
    if target.startswith("stablehlo.dynamic_"):
        raise Unsupported(f"the custom call @{target} has a shape that is data: shapes must be known")
    raise Unsupported(
        f"the custom call @{target} is not known here",
        fix="lower programs for CPUs (lowering_platforms=('cpu',)) and without callbacks",
    )


def _in_its_tuple(v: Visit, routine: Handler) -> Sequence[Bound]:
    """The results of a call; what comes out of XLA's own form of programs has one tuple of them all."""
    types = v.results
    if len(types) != 1 or not isinstance(types[0], tuple):
        return routine(v)
    v.untupled = True
    return (tuple(routine(v)),)


def read_mhlo(name: str) -> Handler | None:
    """How to read an op that XLA's export leaves in its own dialect, which jaxlib does not have; None if unknown."""
    if name == "mhlo.topk":  # bytecode does not tell how many under their name
        return lambda v: picked(v, v.result.shape[-1], v.value("largest", True))
    op = _chlo_op(name) if name.startswith("mhlo.") else None
    return None if op is None else lambda v: v.emit(op, v.operands, Attrs())


def _chlo_op(spelled: str) -> OpDef[Any] | None:
    """The op without attributes that has a name of CHLO's, in whichever dialect."""
    dialect, _, name = spelled.partition(".")
    known = dialect in _DIALECTS and name in OPS and OPS[name].attrs is Attrs
    return OPS[name] if known and bindings().context().is_registered_operation(f"chlo.{name}") else None


def _top_k(v: Visit) -> Sequence[Bound]:
    config = read_config(v)
    return picked(v, config["k"], config.get("largest", True))


def _approx_top_k(v: Visit) -> Sequence[Bound]:
    """An approximate top-k is answered exactly: sorted by the call's comparator, then cut."""
    config = read_config(v)
    count = len(v.operands) // 2
    arrays = v.operands[:count]
    dim = int(config["reduction_dim"]) % arrays[0].type.rank
    comparator = v.importer.function_region(v, v.attribute("called_computations")[0].value)
    ordered = SORT.emit(v.builder, arrays, SortAttrs(dim, True), (comparator,))
    kept = v.results[0]
    assert isinstance(kept, TensorType)
    rank = kept.rank
    attrs = SliceAttrs((0,) * rank, kept.shape, (1,) * rank)
    return [v.emit(SLICE, (x,), attrs)[0] for x in ordered]


def _as_it_is(v: Visit) -> Sequence[Bound]:
    """A hint about where the value lies, or how."""
    read_config(v)
    return [one(v.bound[0])]


def _nothing(v: Visit) -> Sequence[Bound]:
    """A use that keeps a value from being removed."""
    read_config(v)
    return ()


_CALLS: Mapping[str, Handler] = {
    "Sharding": sharding_call,
    "SPMDFullToShardShape": full_to_shard,
    "SPMDShardToFullShape": shard_to_full,
    "annotate_device_placement": _as_it_is,
    "LayoutConstraint": _as_it_is,
    "dce_sink": _nothing,
    "ApproxTopK": _approx_top_k,
    "mhlo.topk": _top_k,
    **LINEAR_ALGEBRA,
}
HANDLERS = {"stablehlo.custom_call": read_custom_call}
