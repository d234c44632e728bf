"""Collectives of local stages as StableHLO's, on partitions; what only says something about devices, spelled out.

Partition p is the device with the physical id p, as in XLA's shardings. A replica group lists the devices of one group
in the order of their digits along the axes, major to minor, since that is the order in which pieces are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from gspmd.interop.export_monoid import combination
from gspmd.interop.export_writer import Emitter, Writer
from gspmd.interop.stablehlo_text import quoted, table
from gspmd.ir.attrs import Attrs, Dense, ResultShape
from gspmd.ir.axes import Axes, canonical, parts
from gspmd.ir.builder import Builder
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Node, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType
from gspmd.ops.affine_permute import AffinePermuteAttrs, permute_pairs
from gspmd.ops.collective import (
    ALL_GATHER,
    AXIS_INDEX,
    AllReduceAttrs,
    AllToAllAttrs,
    AxesAttrs,
    DimAxesAttrs,
    PermuteAttrs,
    ReduceScatterAttrs,
)
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.layout import RESHAPE
from gspmd.ops.literal import CONSTANT, full, scalar
from gspmd.ops.reduce import REDUCE
from gspmd.ops.slicing import DYNAMIC_SLICE

MANUAL = "{manual}"
_DEVICE_TO_DEVICE = 1


def _mesh(writer: Writer, node: Node) -> Mesh:
    if writer.mesh is None:
        raise UsageError(
            f"{node.op.name} is about devices, of which a program on whole arrays knows nothing",
            rule="export.C3",
            fix="export it from stage local on",
        )
    return writer.mesh


@lru_cache(maxsize=1024)
def _groups(mesh: Mesh, axes: Axes) -> tuple[tuple[int, ...], ...]:
    """The physical ids of the devices of each group, in order."""
    firsts = [i for i in range(mesh.size) if mesh.tile_index(i, axes) == 0]
    return tuple(tuple(map(mesh.device, mesh.group(i, axes))) for i in firsts)


def _exchanges(node: Node, axes: Axes) -> bool:
    """Whether anything moves."""
    return parts(axes) > 1 and all(v.type.size for v in (*node.operands, *node.results))


def _unmoved(writer: Writer, node: Node) -> None:
    """Alone in its group a device keeps what it has; of nothing there is nothing to move."""
    (x,), (y,) = node.operands, node.results
    if x.type == y.type:
        writer.alias((y,), (x,))
    else:
        empty = writer.expanded((), Attrs(), lambda b, _, __: (full(b, 0, y.type.dtype, y.type.shape),), node)
        writer.alias((y,), empty)


def _channel(writer: Writer) -> str:
    return f"#stablehlo.channel_handle<handle = {writer.channel()}, type = {_DEVICE_TO_DEVICE}>"


def _group_attributes(writer: Writer, node: Node, axes: Axes) -> dict[str, str]:
    groups = _groups(_mesh(writer, node), axes)
    return {
        "replica_groups": table(groups, parts(axes)),
        "channel_handle": _channel(writer),
        "use_global_device_ids": "unit",
    }


def _all_gather(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, DimAxesAttrs)
    if not _exchanges(node, attrs.axes):
        _unmoved(writer, node)
        return
    attributes = {"all_gather_dim": f"{attrs.dim} : i64", **_group_attributes(writer, node, attrs.axes)}
    writer.op("stablehlo.all_gather", node.operands, node.results, attributes)


def _unsummed(monoid: str, node: Node) -> bool:
    """Whether compilers have no reduction among devices for a monoid: for bits of integers, and exclusive or."""
    return monoid == "xor" or (monoid in ("and", "or") and node.operands[0].type.dtype.kind != "b")


def _gathered_total(b: Builder, operands: Sequence[Value], attrs: AllReduceAttrs | ReduceScatterAttrs) -> list[Value]:
    """What all devices of a group have, combined on each."""
    (x,) = operands
    row = RESHAPE(b, x, shape=ResultShape((1, *x.type.shape)))
    rows = ALL_GATHER(b, row, dim=0, axes=attrs.axes)
    return [REDUCE(b, rows, dims=(0,), monoid=attrs.monoid)]


def _gathered_part(b: Builder, operands: Sequence[Value], attrs: ReduceScatterAttrs) -> Sequence[Value]:
    return _own_part(b, _gathered_total(b, operands, attrs), DimAxesAttrs(attrs.dim, attrs.axes))


def _all_reduce(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, AllReduceAttrs)
    if not _exchanges(node, attrs.axes):
        _unmoved(writer, node)
        return
    if _unsummed(attrs.monoid, node):
        writer.expand(node, _gathered_total)
        return
    region = combination(writer, attrs.monoid, node.operands[0].type)
    attributes = _group_attributes(writer, node, attrs.axes)
    writer.op("stablehlo.all_reduce", node.operands, node.results, attributes, (region,))


def _reduce_scatter(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, ReduceScatterAttrs)
    if not _exchanges(node, attrs.axes):
        _unmoved(writer, node)
        return
    if _unsummed(attrs.monoid, node):
        writer.expand(node, _gathered_part)
        return
    region = combination(writer, attrs.monoid, node.operands[0].type)
    attributes = {"scatter_dimension": f"{attrs.dim} : i64", **_group_attributes(writer, node, attrs.axes)}
    writer.op("stablehlo.reduce_scatter", node.operands, node.results, attributes, (region,))


def _all_to_all(writer: Writer, node: Node) -> None:
    """The dimension that the axes join is cut, the one that they leave put together."""
    attrs = node.attrs
    assert isinstance(attrs, AllToAllAttrs)
    if not _exchanges(node, attrs.axes):
        _unmoved(writer, node)
        return
    attributes = {
        "split_dimension": f"{attrs.to_dim} : i64",
        "concat_dimension": f"{attrs.from_dim} : i64",
        "split_count": f"{parts(attrs.axes)} : i64",
        **_group_attributes(writer, node, attrs.axes),
    }
    del attributes["use_global_device_ids"]  # a channel says the same of this op
    writer.op("stablehlo.all_to_all", node.operands, node.results, attributes)


def _permute(writer: Writer, node: Node, axes: Axes, pairs: Iterable[tuple[int, int]]) -> None:
    """Move between places in each group; who receives nothing gets zeros, there as here."""
    held = tuple(pairs)
    if not held or not node.result.type.size:
        _zeros(writer, node)
        return
    moves = [(group[a], group[b]) for group in _groups(_mesh(writer, node), axes) for a, b in held]
    attributes = {"source_target_pairs": table(moves, 2), "channel_handle": _channel(writer)}
    writer.op("stablehlo.collective_permute", node.operands, node.results, attributes)


def _zeros(writer: Writer, node: Node) -> None:
    y = node.result.type
    writer.alias(node.results, writer.expanded((), Attrs(), lambda b, _, __: (full(b, 0, y.dtype, y.shape),), node))


def _collective_permute(writer: Writer, node: Node) -> None:
    attrs, mesh = node.attrs, _mesh(writer, node)
    assert isinstance(attrs, PermuteAttrs)
    if attrs.pairs is not None:
        _permute(writer, node, attrs.source, attrs.pairs)
        return
    group = mesh.group(0, attrs.source)
    _permute(writer, node, attrs.source, [(mesh.tile_index(d, attrs.target), i) for i, d in enumerate(group)])


def _affine_permute(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, AffinePermuteAttrs)
    _permute(writer, node, attrs.axes, permute_pairs(attrs))


# -- places ----------------------------------------------------------------------------------------------------------


def _axis_index(writer: Writer, node: Node) -> None:
    """Arithmetic on the partition's number."""
    attrs, mesh = node.attrs, _mesh(writer, node)
    assert isinstance(attrs, AxesAttrs)
    axes = canonical(attrs.axes)
    if not axes:
        writer.alias(node.results, writer.expanded((), Attrs(), lambda b, _, __: (scalar(b, 0, "i32"),), node))
        return
    partition, number = Value(TensorType("u32", ())), Value(TensorType("i32", ()))
    writer.op("stablehlo.partition_id", (), (partition,), {"mhlo.sharding": quoted(MANUAL)})
    writer.op("stablehlo.convert", (partition,), (number,))
    writer.alias(node.results, writer.expanded((number,), Attrs(), _place(mesh, axes), node))


def _place(mesh: Mesh, axes: Axes) -> Callable[[Builder, Sequence[Value], Attrs], Sequence[Value]]:
    """From a physical id to the index along axes: its digits, major to minor."""

    def expand(b: Builder, operands: Sequence[Value], attrs: Attrs) -> Sequence[Value]:
        device = Expression(b, operands[0])
        if mesh.device_order is not None:
            logical = CONSTANT(b, value=Dense(np.argsort(mesh.device_order).astype(np.int32)))
            one = DYNAMIC_SLICE(b, logical, device.value, sizes=ResultShape((1,)))
            device = Expression(b, RESHAPE(b, one, shape=ResultShape(())))
        total: Expression | None = None
        for axis in axes:
            stride = mesh.stride(axis)
            digit = device / stride if stride > 1 else device
            digit = digit % axis.size if stride * axis.size < mesh.size else digit
            total = digit if total is None else total * axis.size + digit
        assert total is not None
        return (total.value,)

    return expand


def _all_slice(writer: Writer, node: Node) -> None:
    """A device's own part."""
    writer.expand(node, _own_part)


def _own_part(b: Builder, operands: Sequence[Value], attrs: DimAxesAttrs) -> Sequence[Value]:
    (x,) = operands
    if parts(attrs.axes) == 1:
        return (x,)
    shape = list(x.type.shape)
    shape[attrs.dim] //= parts(attrs.axes)
    none = scalar(b, 0, "i32")
    start = (Expression(b, AXIS_INDEX(b, axes=attrs.axes)) * shape[attrs.dim]).value
    starts = [start if d == attrs.dim else none for d in range(len(shape))]
    return (DYNAMIC_SLICE(b, x, *starts, sizes=ResultShape(shape)),)


EMITTERS: Mapping[str, Emitter] = {
    "all_gather": _all_gather,
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "collective_permute": _collective_permute,
    "affine_permute": _affine_permute,
    "axis_index": _axis_index,
    "all_slice": _all_slice,
}
