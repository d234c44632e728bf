"""Ops that are only there for shardings, of Shardy and of XLA: a value with an annotation, or a value as it is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from gspmd.interop.import_scope import Bound, one
from gspmd.interop.import_sharding import unspecified
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Handler, Visit


def _constraint(name: str) -> Handler:
    """An op whose attribute `name` says how its value is split; its value is its operand."""

    def read(v: Visit) -> Sequence[Bound]:
        (x,) = v.operands
        for ignored in ("gathering_axes", "slicing_axes", "params"):  # how it comes about follows from the shardings
            v.read.add(ignored)
        return [v.importer.constrain(v, x, v.importer.shardings.sdy(v.attribute(name), x.type))]

    return read


def _barrier(v: Visit) -> Sequence[Bound]:
    v.read.add("allowed_direction")
    warnings.warn("sdy.propagation_barrier is taken as the value itself: shardings pass it", stacklevel=2)
    return v.bound


def _group(v: Visit) -> Sequence[Bound]:
    v.read.add("group_id")
    warnings.warn("sdy.sharding_group is not used: the values are propagated each on its own", stacklevel=2)
    return ()


def _edge(v: Visit) -> Sequence[Bound]:
    """sdy.data_flow_edge: the value, which may have a sharding of its own."""
    (x,) = v.operands
    if not v.has("sharding"):
        return [x]
    return [v.importer.constrain(v, x, v.importer.shardings.sdy(v.attribute("sharding"), x.type))]


def _manual(v: Visit) -> Sequence[Bound]:
    for name in ("in_shardings", "out_shardings", "manual_axes"):
        v.read.add(name)
    raise Unsupported(
        "a region of per-device code (shard_map: sdy.manual_computation, SPMDFullToShardShape) cannot be imported",
        fix="write it on whole arrays, with shardings as annotations",
    )


def sharding_call(v: Visit) -> Sequence[Bound]:
    """XLA's custom call @Sharding; the dimensions that its backend config names are left open."""
    x = one(v.bound[0])
    v.annotated = True
    if v.has("sdy.sharding"):
        return v.importer.annotated(v, [x], "sdy.sharding")
    config = str(v.value("backend_config", "")) if v.has("backend_config") else ""
    found = v.importer.shardings.hlo(v.value("mhlo.sharding"), [x.type], unspecified(config))
    return [v.importer.constrain(v, x, found[0])]


def manual_call(v: Visit) -> Sequence[Bound]:
    """The custom calls around per-device code."""
    v.annotated = True
    return _manual(v)


HANDLERS: dict[str, Handler] = {
    "sdy.sharding_constraint": _constraint("sharding"),
    "sdy.reshard": _constraint("sharding"),
    "sdy.all_gather": _constraint("out_sharding"),
    "sdy.all_slice": _constraint("out_sharding"),
    "sdy.all_to_all": _constraint("out_sharding"),
    "sdy.collective_permute": _constraint("out_sharding"),
    "sdy.propagation_barrier": _barrier,
    "sdy.sharding_group": _group,
    "sdy.data_flow_edge": _edge,
    "sdy.manual_computation": _manual,
}
