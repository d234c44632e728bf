"""Collectives over mesh axes, and the reshards that become plans of them (paper section 4.2).

Each op exists twice under one name. On a *global* type, which carries a sharding, the value stays and the sharding
changes; run as such it is the identity. On a *local* type the shape changes and devices exchange data: they number
themselves within a group by their digits along `axes`, major to minor, and contributions combine in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes, canonical, cut, difference, parts
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Localizer, Machine, OpDef, Shards, Traffic, Trait, Types
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import fold
from gspmd.ops.collective_local import alike, crossing, joining, leaving


@dataclass(frozen=True, slots=True)
class ReshardAttrs(Attrs):
    """The sharding to bring a value to."""

    sharding: Sharding


@dataclass(frozen=True, slots=True)
class DimAxesAttrs(Attrs):
    """A tensor dimension and the mesh axes that join or leave its minor end."""

    dim: int
    axes: Axes


@dataclass(frozen=True, slots=True)
class AllToAllAttrs(Attrs):
    """Axes that leave the minor end of `from_dim` and join the minor end of `to_dim`."""

    from_dim: int
    to_dim: int
    axes: Axes


@dataclass(frozen=True, slots=True)
class AllReduceAttrs(Attrs):
    """The axes to reduce over and the monoid ("add", "max", ...)."""

    axes: Axes
    monoid: str


@dataclass(frozen=True, slots=True)
class ReduceScatterAttrs(Attrs):
    """Reduce over the axes and leave each device its part of `dim`."""

    dim: int
    axes: Axes
    monoid: str


@dataclass(frozen=True, slots=True)
class PermuteAttrs(Attrs):
    """A device permutation: two listings, major to minor, of the same digits.

    Whoever has index t along `target` receives from whoever has index t along `source`. On a global type `sharding` is
    the sharding that results; it has the same parts in each dimension.
    """

    source: Axes
    target: Axes
    sharding: Sharding | None = None


@dataclass(frozen=True, slots=True)
class AxesAttrs(Attrs):
    """Mesh axes, major to minor."""

    axes: Axes


def _check(ok: bool, rule: str, message: str) -> None:
    if not ok:
        raise TypeRuleError(message, rule=rule)


def _only(types: Types, rule: str) -> TensorType:
    _check(len(types) == 1, f"{rule}.C1", f"takes one operand, got {len(types)}")
    return types[0]


def gathered(sharding: Sharding, shape: tuple[int, ...], dim: int, axes: Axes, rule: str = "all_gather") -> Sharding:
    """The sharding after axes leave the minor end of a dimension; chunks join, so a ragged one may be left unusual."""
    held = sharding.dims[dim].axes
    halves = cut(held, parts(held) // parts(axes))
    if halves is None or canonical(halves[1]) != canonical(axes):
        raise TypeRuleError(
            f"the axes {sharding.axes_text(axes)} are not the minor end of dim {dim}, which is split over "
            f"{sharding.axes_text(held) or 'nothing'}",
            rule=f"{rule}.C2",
        )
    return _with_dim(sharding, shape, dim, halves[0], sharding.chunk(dim, shape[dim]) * parts(axes))


def sliced(sharding: Sharding, shape: tuple[int, ...], dim: int, axes: Axes, rule: str = "all_slice") -> Sharding:
    """The sharding after axes join the minor end of a dimension, whose chunks must divide unless it is whole."""
    held, count = sharding.dims[dim].axes, parts(axes)
    chunk = sharding.chunk(dim, shape[dim])
    _check(
        not held or chunk % count == 0,
        f"{rule}.C3",
        f"dim {dim} has shards of {chunk} elements, which do not divide among {count} devices",
    )
    return _with_dim(sharding, shape, dim, held + axes, -(-chunk // count))


def _with_dim(sharding: Sharding, shape: tuple[int, ...], dim: int, axes: Axes, chunk: int) -> Sharding:
    dims = list(sharding.dims)
    dims[dim] = DimSharding(axes, dims[dim].open, chunk if axes else None)
    return sharding.with_dims(tuple(dims)).normal(shape)


def _resize(type_: TensorType, dim: int, up: int = 1, down: int = 1, rule: str = "") -> TensorType:
    shape = list(type_.shape)
    _check(
        shape[dim] % down == 0, f"{rule}.C3", f"the local size {shape[dim]} of dim {dim} must divide by {down} devices"
    )
    shape[dim] = shape[dim] * up // down
    return type_.with_shape(shape)


def reshard_infer(types: Types, attrs: ReshardAttrs, regions: tuple[Region, ...]) -> Types:
    """The operand's type under the sharding of the attributes."""
    return (_only(types, "reshard").with_sharding(attrs.sharding),)


def _all_gather_infer(types: Types, attrs: DimAxesAttrs, regions: tuple[Region, ...]) -> Types:
    x = _only(types, "all_gather")
    if x.sharding is None:
        return (_resize(x, attrs.dim, up=parts(attrs.axes)),)
    return (x.with_sharding(gathered(x.sharding, x.shape, attrs.dim, attrs.axes)),)


def _all_slice_infer(types: Types, attrs: DimAxesAttrs, regions: tuple[Region, ...]) -> Types:
    x = _only(types, "all_slice")
    if x.sharding is None:
        return (_resize(x, attrs.dim, down=parts(attrs.axes), rule="all_slice"),)
    return (x.with_sharding(sliced(x.sharding, x.shape, attrs.dim, attrs.axes)),)


def _all_to_all_infer(types: Types, attrs: AllToAllAttrs, regions: tuple[Region, ...]) -> Types:
    x = _only(types, "all_to_all")
    n = parts(attrs.axes)
    if x.sharding is None:
        return (_resize(_resize(x, attrs.from_dim, up=n), attrs.to_dim, down=n, rule="all_to_all"),)
    left = gathered(x.sharding, x.shape, attrs.from_dim, attrs.axes, "all_to_all")
    return (x.with_sharding(sliced(left, x.shape, attrs.to_dim, attrs.axes, "all_to_all")),)


def _still_unreduced(sharding: Sharding, axes: Axes, monoid: str, rule: str) -> Sharding:
    left = difference(sharding.unreduced, axes)
    _check(
        sharding.monoid == monoid and parts(left) * parts(axes) == parts(sharding.unreduced),
        f"{rule}.C2",
        f"reduces by {monoid} over {sharding.axes_text(axes)} a value that is {sharding.text()}",
    )
    return sharding.with_unreduced(left, monoid)


def _all_reduce_infer(types: Types, attrs: AllReduceAttrs, regions: tuple[Region, ...]) -> Types:
    x = _only(types, "all_reduce")
    if x.sharding is None:
        return (x,)
    return (x.with_sharding(_still_unreduced(x.sharding, attrs.axes, attrs.monoid, "all_reduce")),)


def _reduce_scatter_infer(types: Types, attrs: ReduceScatterAttrs, regions: tuple[Region, ...]) -> Types:
    x = _only(types, "reduce_scatter")
    if x.sharding is None:
        return (_resize(x, attrs.dim, down=parts(attrs.axes), rule="reduce_scatter"),)
    left = _still_unreduced(x.sharding, attrs.axes, attrs.monoid, "reduce_scatter")
    return (x.with_sharding(sliced(left, x.shape, attrs.dim, attrs.axes, "reduce_scatter")),)


def _permute_infer(types: Types, attrs: PermuteAttrs, regions: tuple[Region, ...]) -> Types:
    x = _only(types, "collective_permute")
    _check(
        parts(attrs.source) == parts(attrs.target),
        "collective_permute.C2",
        f"source and target must list the same devices, got {parts(attrs.source)} and {parts(attrs.target)}",
    )
    return (x if x.sharding is None else x.with_sharding(attrs.sharding or x.sharding),)


def _permute_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """A local type has no sharding that could result."""
    attrs = ctx.node.attrs
    assert isinstance(attrs, PermuteAttrs)
    return COLLECTIVE_PERMUTE.emit(ctx.builder, operands, replace(attrs, sharding=None))


def _axis_index_infer(types: Types, attrs: AxesAttrs, regions: tuple[Region, ...]) -> Types:
    _check(not types, "axis_index.C1", f"takes no operand, got {len(types)}")
    return (TensorType("i32", ()),)


def as_it_is(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    """What a change of sharding means where values are whole: nothing."""
    return (args[0],)


def _is_global(node: Node) -> bool:
    return node.operands[0].type.sharding is not None


def _all_gather(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, DimAxesAttrs)
    return (args[0] if _is_global(node) else machine.transport.all_gather(args[0], a.axes, a.dim),)


def _all_slice(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, DimAxesAttrs)
    if _is_global(node):
        return (args[0],)
    size = node.result.type.shape[a.dim]
    mesh, at = machine.transport.mesh, (slice(None),) * a.dim
    starts = [mesh.tile_index(i, a.axes) * size for i in machine.transport.indices]
    return ([x[(*at, slice(s, s + size))] for x, s in zip(args[0], starts, strict=True)],)


def _all_to_all(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, AllToAllAttrs)
    return (args[0] if _is_global(node) else machine.transport.all_to_all(args[0], a.axes, a.to_dim, a.from_dim),)


def _all_reduce(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, AllReduceAttrs)
    return (args[0] if _is_global(node) else machine.transport.all_reduce(args[0], a.axes, partial(fold, a.monoid)),)


def _reduce_scatter(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, ReduceScatterAttrs)
    if _is_global(node):
        return (args[0],)
    return (machine.transport.reduce_scatter(args[0], a.axes, a.dim, partial(fold, a.monoid)),)


def _permute(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, PermuteAttrs)
    if _is_global(node):
        return (args[0],)
    mesh = machine.transport.mesh
    group = mesh.group(0, a.source)
    # group[s] has index s along `source`; it is the destination of whoever has its index along `target`.
    pairs = tuple((mesh.tile_index(device, a.target), s) for s, device in enumerate(group))
    return (machine.transport.permute(args[0], a.source, pairs),)


def _axis_index(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, AxesAttrs)
    mesh = machine.transport.mesh
    return ([np.array(mesh.tile_index(i, a.axes), np.int32) for i in machine.transport.indices],)


def _gather_traffic(attrs: DimAxesAttrs, operand: int, result: int) -> Traffic:
    g = parts(attrs.axes)
    return Traffic("all_gather", attrs.axes, g, (g - 1) / g * result)


def _all_to_all_traffic(attrs: AllToAllAttrs, operand: int, result: int) -> Traffic:
    g = parts(attrs.axes)
    return Traffic("all_to_all", attrs.axes, g, (g - 1) / g * operand)


def _reduce_scatter_traffic(attrs: ReduceScatterAttrs, operand: int, result: int) -> Traffic:
    g = parts(attrs.axes)
    return Traffic("reduce_scatter", attrs.axes, g, (g - 1) / g * operand)


def _all_reduce_traffic(attrs: AllReduceAttrs, operand: int, result: int) -> Traffic:
    g = parts(attrs.axes)
    return Traffic("all_reduce", attrs.axes, g, 2 * (g - 1) / g * operand)


def _permute_traffic(attrs: PermuteAttrs, operand: int, result: int) -> Traffic:
    return Traffic("collective_permute", attrs.source, parts(attrs.source), operand)


_RESHARDS = frozenset((Trait.RESHARD,))
_EXCHANGES = frozenset((Trait.COLLECTIVE, Trait.RESHARD))

RESHARD = OpDef("reshard", ReshardAttrs, reshard_infer, execute=as_it_is, traits=_RESHARDS)
ALL_GATHER = OpDef(
    "all_gather",
    DimAxesAttrs,
    _all_gather_infer,
    execute=_all_gather,
    localize=leaving,
    traits=_EXCHANGES,
    traffic=_gather_traffic,
)
ALL_SLICE = OpDef("all_slice", DimAxesAttrs, _all_slice_infer, execute=_all_slice, localize=joining, traits=_RESHARDS)
ALL_TO_ALL = OpDef(
    "all_to_all",
    AllToAllAttrs,
    _all_to_all_infer,
    execute=_all_to_all,
    localize=crossing,
    traits=_EXCHANGES,
    traffic=_all_to_all_traffic,
)
ALL_REDUCE = OpDef(
    "all_reduce",
    AllReduceAttrs,
    _all_reduce_infer,
    execute=_all_reduce,
    localize=alike,
    traits=_EXCHANGES,
    traffic=_all_reduce_traffic,
)
REDUCE_SCATTER = OpDef(
    "reduce_scatter",
    ReduceScatterAttrs,
    _reduce_scatter_infer,
    execute=_reduce_scatter,
    localize=joining,
    traits=_EXCHANGES,
    traffic=_reduce_scatter_traffic,
)
COLLECTIVE_PERMUTE: OpDef[PermuteAttrs] = OpDef(
    "collective_permute",
    PermuteAttrs,
    _permute_infer,
    execute=_permute,
    localize=_permute_localize,
    traits=_EXCHANGES,
    traffic=_permute_traffic,
)
AXIS_INDEX = OpDef("axis_index", AxesAttrs, _axis_index_infer, execute=_axis_index)

FAMILY: tuple[OpDef[Any], ...] = (
    RESHARD,
    ALL_GATHER,
    ALL_SLICE,
    ALL_TO_ALL,
    ALL_REDUCE,
    REDUCE_SCATTER,
    COLLECTIVE_PERMUTE,
    AXIS_INDEX,
)
