"""Ops that are only there for shardings, of Shardy and of XLA: a value with an annotation, or a value as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gspmd.interop.import_scope import Bound, one
from gspmd.interop.import_sharding import unspecified
from gspmd.interop.import_visit import Handler, Visit
from gspmd.ops.annotate import PROPAGATION_BARRIER, SHARDING_GROUP, PropagationBarrierAttrs, ShardingGroupAttrs

_DIRECTIONS: tuple[Literal["none", "forward", "backward"], ...] = ("none", "forward", "backward")

# How a value comes to be as the attribute says follows from the shardings.
_HOW = ("gathering_axes", "slicing_axes", "params", "reduction_axes", "reduce_scatter_axes", "axes")


def _constraint(name: str) -> Handler:
    """An op whose attribute `name` says how its value is split; its value is its operand."""

    def read(v: Visit) -> Sequence[Bound]:
        (x,) = v.operands
        v.read.update(_HOW)
        return [v.importer.constrain(v, x, v.importer.shardings.sdy(v.attribute(name), x.type))]

    return read


def _barrier(v: Visit) -> Sequence[Bound]:
    """An enumeration: 0 none, 1 forward, 2 backward."""
    allowed = _DIRECTIONS[int(v.value("allowed_direction"))]
    return [x for y in v.operands for x in v.emit(PROPAGATION_BARRIER, (y,), PropagationBarrierAttrs(allowed))]


def _group(v: Visit) -> Sequence[Bound]:
    """From here on the value is the one that is sharded as its group."""
    (x,) = v.operands
    (grouped,) = v.emit(SHARDING_GROUP, (x,), ShardingGroupAttrs(f"sdy{v.value('group_id')}"))
    v.scope.bind(v.op.operands[0], grouped)
    return ()


def _edge(v: Visit) -> Sequence[Bound]:
    """sdy.data_flow_edge: the value, which may have a sharding of its own."""
    (x,) = v.operands
    if not v.has("sharding"):
        return [x]
    return [v.importer.constrain(v, x, v.importer.shardings.sdy(v.attribute("sharding"), x.type))]


def sharding_call(v: Visit) -> Sequence[Bound]:
    """XLA's custom call @Sharding; the dimensions that its backend config names are left open."""
    x = one(v.bound[0])
    v.annotated = True
    config = str(v.value("backend_config", "")) if v.has("backend_config") else ""
    if v.has("sdy.sharding"):  # it says itself which dimensions are open
        return v.importer.annotated(v, [x], "sdy.sharding")
    found = v.importer.shardings.hlo(v.value("mhlo.sharding"), [x.type], unspecified(config))
    return [v.importer.constrain(v, x, found[0])]


HANDLERS: dict[str, Handler] = {
    "sdy.sharding_constraint": _constraint("sharding"),
    "sdy.reshard": _constraint("sharding"),
    "sdy.all_gather": _constraint("out_sharding"),
    "sdy.all_slice": _constraint("out_sharding"),
    "sdy.all_to_all": _constraint("out_sharding"),
    "sdy.collective_permute": _constraint("out_sharding"),
    "sdy.all_reduce": _constraint("out_sharding"),
    "sdy.reduce_scatter": _constraint("out_sharding"),
    "sdy.sharded_to_unreduced": _constraint("out_sharding"),
    "sdy.replicated_to_unreduced": _constraint("out_sharding"),
    "sdy.propagation_barrier": _barrier,
    "sdy.sharding_group": _group,
    "sdy.data_flow_edge": _edge,
    "sdy.func_data_flow_edge": _edge,
}
