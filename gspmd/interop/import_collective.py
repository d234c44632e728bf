"""StableHLO's collectives: in per-device code they exchange along mesh axes; of a single process they are the identity.

Groups that are no product of mesh axes are served by gathering from all devices and picking the members by a table, so
that every list of groups has a meaning; such code names its groups device by device anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_monoid import SET, monoids_of
from gspmd.interop.import_region import scalar_region
from gspmd.interop.import_scope import Bound
from gspmd.interop.import_types import Nested, Unsupported
from gspmd.interop.import_visit import Handler, Visit
from gspmd.ir.attrs import Attrs, Dense, ResultShape
from gspmd.ir.axes import Axes, parts
from gspmd.ir.device_groups import axes_of_groups
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.graph import Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType
from gspmd.ops.collective import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, AXIS_INDEX, COLLECTIVE_PERMUTE, REDUCE_SCATTER
from gspmd.ops.elementwise import CONVERT
from gspmd.ops.layout import RESHAPE
from gspmd.ops.literal import CONSTANT, full
from gspmd.ops.loop_gradient import copied
from gspmd.ops.mapping import MAP
from gspmd.ops.moving import CONCATENATE, SLICE
from gspmd.ops.slicing import DYNAMIC_SLICE

_I32 = DTYPES["i32"]
_ACROSS_PARTITIONS = ("stablehlo.all_to_all", "stablehlo.collective_broadcast")


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of a collective: along axes, or (axes None) device by device, as a table [device, member]."""

    axes: Axes | None
    size: int
    table: tuple[tuple[int, ...], ...] = ()


def _groups(v: Visit, name: str = "replica_groups") -> _Groups:
    """The groups that an op's attributes name, in logical devices of the mesh."""
    listed = np.array(bindings().ir.DenseElementsAttr(v.attribute(name))) if v.has(name) else np.zeros((0, 0), np.int64)
    v.read.add("use_global_device_ids")
    if not _counts_partitions(v) and not (listed > 0).any():
        # Groups of replicas, of which there is one: nobody to exchange with.
        return _Groups((), 1)
    manual = v.importer.shardings.manual
    mesh = v.importer.shardings.mesh
    if not manual or mesh is None:
        if v.importer.partitions == 1:
            return _Groups((), 1)
        raise Unsupported(
            f"{v.op.name} among the partitions of a program on whole arrays",
            fix="put it in a sdy.manual_computation (shard_map), or annotate shardings instead",
        )
    if not listed.size or not (_counts_devices(v) or (listed > 0).any()):
        return _Groups(mesh.whole, mesh.size)
    groups = [_logical(v, mesh, (d for d in row if d >= 0)) for row in listed.tolist()]
    axes = axes_of_groups(mesh, groups)
    if axes is not None:
        return _Groups(axes, parts(axes))
    return _Groups(None, len(groups[0]), _table(v, groups, mesh.size))


def _logical(v: Visit, mesh: Mesh, devices: Iterable[int]) -> list[int]:
    """The places on the mesh of some devices."""
    places = {mesh.device(i): i for i in range(mesh.size)}
    devices = list(devices)
    odd = next((d for d in devices if d not in places), None)
    if odd is not None:
        raise Unsupported(f"{v.op.name} names device {odd} of {mesh.size}")
    return [places[d] for d in devices]


def _counts_devices(v: Visit) -> bool:
    """Whether groups hold devices, and not replicas, each with all its partitions."""
    return v.importer.replicated or v.has("use_global_device_ids") or v.op.name in _ACROSS_PARTITIONS


def _table(v: Visit, groups: list[list[int]], devices: int) -> tuple[tuple[int, ...], ...]:
    """For each device the members of its group."""
    if len({len(g) for g in groups}) != 1:
        raise Unsupported(f"{v.op.name} in groups of different sizes")
    of = {d: tuple(g) for g in groups for d in g}
    if len(of) != devices:
        raise Unsupported(f"{v.op.name} in groups that leave devices out")
    return tuple(of[d] for d in range(devices))


def _counts_partitions(v: Visit) -> bool:
    """Whether the processes that exchange are partitions (a channel), and not replicas."""
    if not v.has("channel_handle"):
        return v.importer.replicated
    return bindings().stablehlo.ChannelHandle(v.attribute("channel_handle")).handle > 0 or v.importer.replicated


# -- exchanges -------------------------------------------------------------------------------------------------------


def _all_gather(v: Visit) -> Sequence[Bound]:
    dim, groups = v.value("all_gather_dim"), _groups(v)
    return [_gathered(v, x, dim, groups) for x in v.operands]


def _gathered(v: Visit, x: Value, dim: int, groups: _Groups) -> Value:
    if groups.axes is not None:
        return ALL_GATHER(v.builder, x, dim=dim, axes=groups.axes) if groups.axes else x
    return CONCATENATE(v.builder, *_members(v, x, groups), dimension=dim)


def _members(v: Visit, x: Value, groups: _Groups) -> list[Value]:
    """What each member of this device's group has."""
    if groups.axes is not None:
        count = groups.size
        held = ALL_GATHER(v.builder, _stacked(v, x), dim=0, axes=groups.axes) if groups.axes else _stacked(v, x)
        return [_row(v, held, i, x) for i in range(count)]
    mesh = v.importer.shardings.mesh
    assert mesh is not None
    held = ALL_GATHER(v.builder, _stacked(v, x), dim=0, axes=mesh.whole)
    me = AXIS_INDEX(v.builder, axes=mesh.whole)
    zero = full(v.builder, 0, _I32, ())
    out: list[Value] = []
    for j in range(groups.size):
        column = CONSTANT(v.builder, value=Dense(np.array([row[j] for row in groups.table], np.int32)))
        one = DYNAMIC_SLICE(v.builder, column, me, sizes=ResultShape((1,)))
        at = RESHAPE(v.builder, one, shape=ResultShape(()))
        starts = (at, *(zero for _ in x.type.shape))
        part = DYNAMIC_SLICE(v.builder, held, *starts, sizes=ResultShape((1, *x.type.shape)))
        out.append(RESHAPE(v.builder, part, shape=ResultShape(x.type.shape)))
    return out


def _stacked(v: Visit, x: Value) -> Value:
    return RESHAPE(v.builder, x, shape=ResultShape((1, *x.type.shape)))


def _row(v: Visit, held: Value, number: int, like: Value) -> Value:
    shape = like.type.shape
    ones = (1,) * (len(shape) + 1)
    part = SLICE(v.builder, held, start=(number, *(0,) * len(shape)), limit=(number + 1, *shape), stride=ones)
    return RESHAPE(v.builder, part, shape=ResultShape(shape))


def _all_reduce(v: Visit) -> Sequence[Bound]:
    groups, region = _groups(v), scalar_region(v, 0)
    return [_converted(v, _combined(v, x, groups, region), t) for x, t in zip(v.operands, v.results, strict=True)]


def _converted(v: Visit, x: Value, like: Nested) -> Value:
    """A value in the dtype of a tensor's type."""
    assert isinstance(like, TensorType)
    return x if x.type.dtype == like.dtype else CONVERT(v.builder, x, dtype=like.dtype)


def _combined(v: Visit, x: Value, groups: _Groups, region: Region) -> Value:
    """The combination over the group in the region's dtype: by a collective along axes if a monoid, else one by one."""
    value = _converted(v, x, region.params[0].type)
    monoids = monoids_of(region)
    if groups.size == 1:
        total = value
    elif groups.axes is not None and monoids is not None and SET not in monoids:
        total = ALL_REDUCE(v.builder, value, axes=groups.axes, monoid=monoids[0])
    else:
        first, *rest = _members(v, value, groups)
        total = first
        for member in rest:
            (total,) = MAP.emit(v.builder, (total, member), Attrs(), (copied(region),))
    return total


def _reduce_scatter(v: Visit) -> Sequence[Bound]:
    groups, region, dim = _groups(v), scalar_region(v, 0), v.value("scatter_dimension")
    (x,) = v.operands
    monoids = monoids_of(region)
    if groups.axes is not None and monoids is not None and SET not in monoids and groups.size > 1:
        value = _converted(v, x, region.params[0].type)
        part = REDUCE_SCATTER(v.builder, value, dim=dim, axes=groups.axes, monoid=monoids[0])
    else:
        total = _combined(v, x, groups, region)
        part = total if groups.size == 1 else _own_part(v, total, dim, groups)
    return [_converted(v, part, v.result)]


def _own_part(v: Visit, x: Value, dim: int, groups: _Groups) -> Value:
    """This device's part of a dimension, by its number in its group."""
    size = x.type.shape[dim] // groups.size
    zero = full(v.builder, 0, _I32, ())
    mesh = v.importer.shardings.mesh
    assert mesh is not None
    if groups.axes is not None:
        starts = np.arange(groups.size, dtype=np.int32) * size
        me = AXIS_INDEX(v.builder, axes=groups.axes)
    else:
        starts = np.array([row.index(d) * size for d, row in enumerate(groups.table)], np.int32)
        me = AXIS_INDEX(v.builder, axes=mesh.whole)
    one = DYNAMIC_SLICE(v.builder, CONSTANT(v.builder, value=Dense(starts)), me, sizes=ResultShape((1,)))
    at = RESHAPE(v.builder, one, shape=ResultShape(()))
    shape = tuple(size if d == dim else n for d, n in enumerate(x.type.shape))
    where = [at if d == dim else zero for d in range(len(shape))]
    return DYNAMIC_SLICE(v.builder, x, *where, sizes=ResultShape(shape))


def _all_to_all(v: Visit) -> Sequence[Bound]:
    groups = _groups(v)
    split, concat = v.value("split_dimension"), v.value("concat_dimension")
    if v.value("split_count") != groups.size:
        raise Unsupported(f"split_count is {v.value('split_count')}, the groups have {groups.size} devices")
    if groups.size == 1:
        return list(v.operands)
    return [_exchanged(v, x, split, concat, groups) for x in v.operands]


def _exchanged(v: Visit, x: Value, split: int, concat: int, groups: _Groups) -> Value:
    if groups.axes is not None:
        return ALL_TO_ALL(v.builder, x, from_dim=concat, to_dim=split, axes=groups.axes)
    return CONCATENATE(v.builder, *(_own_part(v, m, split, groups) for m in _members(v, x, groups)), dimension=concat)


def _broadcast(v: Visit) -> Sequence[Bound]:
    """The value of each group's first member."""
    groups = _groups(v)
    return [_members(v, x, groups)[0] if groups.size > 1 else x for x in v.operands]


def _permute(v: Visit) -> Sequence[Bound]:
    """Pairs of processes; who receives nothing has zeros."""
    pairs = np.array(bindings().ir.DenseElementsAttr(v.attribute("source_target_pairs"))).reshape(-1, 2)
    mesh = v.importer.shardings.mesh
    if not v.importer.shardings.manual or mesh is None or not _counts_partitions(v):
        if _counts_partitions(v) and v.importer.partitions > 1:
            _groups(v, "none")  # says what is wrong
        if (pairs != 0).any():
            raise Unsupported(f"{v.op.name} sends to processes that are not there: {pairs.tolist()}")
        return list(v.operands) if len(pairs) else [full(v.builder, 0, x.type.dtype, x.type.shape) for x in v.operands]
    ends = (_logical(v, mesh, column) for column in pairs.T.tolist())
    sent = tuple(zip(*ends, strict=True))
    axes, own = _along(mesh.whole, sent, v)
    return [COLLECTIVE_PERMUTE(v.builder, x, source=axes, target=axes, pairs=own) for x in v.operands]


def _along(whole: Axes, pairs: tuple[tuple[int, int], ...], v: Visit) -> tuple[Axes, tuple[tuple[int, int], ...]]:
    """The fewest manual axes along which the pairs move, and the pairs of indices along them."""
    mesh = v.importer.shardings.mesh
    assert mesh is not None
    axes = tuple(a for a in whole if any(mesh.digit(s, a) != mesh.digit(d, a) for s, d in pairs))
    own = {(mesh.tile_index(s, axes), mesh.tile_index(d, axes)) for s, d in pairs}
    rest = mesh.size // max(parts(axes), 1)
    if axes and len(own) * rest == len(pairs):
        return axes, tuple(sorted(own))
    return whole, pairs


# -- who am I --------------------------------------------------------------------------------------------------------


def _partition_id(v: Visit) -> Sequence[Bound]:
    """The number of this partition."""
    mesh = v.importer.shardings.mesh
    if not v.importer.shardings.manual or mesh is None:
        if v.importer.partitions > 1:
            raise Unsupported("stablehlo.partition_id in a program on whole arrays, which all partitions share")
        return [full(v.builder, 0, v.result.dtype, ())]
    me = AXIS_INDEX(v.builder, axes=mesh.whole)
    if mesh.device_order is not None:
        ids = CONSTANT(v.builder, value=Dense(np.array(mesh.device_order, np.int32)))
        me = RESHAPE(v.builder, DYNAMIC_SLICE(v.builder, ids, me, sizes=ResultShape((1,))), shape=ResultShape(()))
    return [CONVERT(v.builder, me, dtype=v.result.dtype)]


def _replica_id(v: Visit) -> Sequence[Bound]:
    """There is one replica, or replicas are the devices of the mesh."""
    if v.importer.replicated:
        return _partition_id(v)
    return [full(v.builder, 0, v.result.dtype, ())]


def _cross_replica_sum(v: Visit) -> Sequence[Bound]:
    """The sum over replicas."""
    groups = _groups(v)
    if groups.size == 1:
        return list(v.operands)
    if groups.axes is None:
        raise Unsupported("stablehlo.cross-replica-sum in groups that are no product of mesh axes")
    return [ALL_REDUCE(v.builder, x, axes=groups.axes, monoid="add") for x in v.operands]


HANDLERS: dict[str, Handler] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _broadcast,
    "stablehlo.collective_permute": _permute,
    "stablehlo.cross-replica-sum": _cross_replica_sum,
    "stablehlo.partition_id": _partition_id,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.replica_id": _replica_id,
}
