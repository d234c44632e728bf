"""Collectives over mesh axes, and the reshards that become plans of them (paper section 4.2).

Each op exists twice under one name. On a *global* type, which carries a sharding, the value stays and the sharding
changes; run as such it is the identity. On a *local* type, and on a *manual* one in the user's own per-device code, the
shape changes and devices exchange data: they number themselves within a group by their digits along `axes`, major to
minor, and contributions combine in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gspmd.ir.axes import Axes, parts
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import Gradient, Localizer, Machine, OpDef, Shards, Traffic, Trait
from gspmd.kernels.monoids import fold
from gspmd.ops import collective_rules as rules
from gspmd.ops import collective_types as types
from gspmd.ops.collective_local import alike, crossing, joining, leaving
from gspmd.ops.collective_types import (
    AllReduceAttrs,
    AllToAllAttrs,
    AxesAttrs,
    DimAxesAttrs,
    PermuteAttrs,
    ReduceScatterAttrs,
    ReshardAttrs,
)
from gspmd.ops.elementwise.expression import Expression

Cotangents = Sequence[Value | None]


def _permute_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """A local type has no sharding that could result."""
    attrs = ctx.node.attrs
    assert isinstance(attrs, PermuteAttrs)
    return COLLECTIVE_PERMUTE.emit(ctx.builder, operands, replace(attrs, sharding=None))


def as_it_is(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    """What a change of sharding means where values are whole: nothing."""
    return (args[0],)


def _is_global(node: Node, axes: Axes) -> bool:
    return types.is_global(node.operands[0].type, axes)


def _all_gather(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, DimAxesAttrs)
    if _is_global(node, a.axes):
        return (args[0],)
    return (machine.transport.all_gather(args[0], a.axes, a.dim),)


def _all_slice(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, DimAxesAttrs)
    if _is_global(node, a.axes):
        return (args[0],)
    size = node.result.type.shape[a.dim]
    mesh, at = machine.transport.mesh, (slice(None),) * a.dim
    starts = [mesh.tile_index(i, a.axes) * size for i in machine.transport.indices]
    return ([x[(*at, slice(s, s + size))] for x, s in zip(args[0], starts, strict=True)],)


def _all_to_all(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, AllToAllAttrs)
    return (
        args[0] if _is_global(node, a.axes) else machine.transport.all_to_all(args[0], a.axes, a.to_dim, a.from_dim),
    )


def _all_reduce(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, AllReduceAttrs)
    return (
        args[0] if _is_global(node, a.axes) else machine.transport.all_reduce(args[0], a.axes, partial(fold, a.monoid)),
    )


def _reduce_scatter(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, ReduceScatterAttrs)
    if _is_global(node, a.axes):
        return (args[0],)
    return (machine.transport.reduce_scatter(args[0], a.axes, a.dim, partial(fold, a.monoid)),)


def _permute(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    a = node.attrs
    assert isinstance(a, PermuteAttrs)
    if _is_global(node, a.source):
        return (args[0],)
    mesh = machine.transport.mesh
    if a.pairs is not None:
        return (machine.transport.permute(args[0], a.source, a.pairs),)
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


# -- gradients: each collective is a linear map on the arrays of all devices together ---------------------------------


def _all_gather_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    """Every device has a cotangent of every part: they add up where the part came from."""
    (ct,), a = cotangents, node.attrs
    assert isinstance(a, DimAxesAttrs)
    return (None if ct is None else REDUCE_SCATTER(gradient.builder, ct, dim=a.dim, axes=a.axes, monoid="add"),)


def _reduce_scatter_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    (ct,), a = cotangents, node.attrs
    assert isinstance(a, ReduceScatterAttrs)
    if ct is not None and a.monoid != "add":
        raise _no_gradient(node, a.monoid)
    return (None if ct is None else ALL_GATHER(gradient.builder, ct, dim=a.dim, axes=a.axes),)


def _all_reduce_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    """Each device's value went into every device's sum; an extreme shares its cotangent among those that attain it."""
    (ct,), (x,), a = cotangents, node.operands, node.attrs
    assert isinstance(a, AllReduceAttrs)
    if ct is None:
        return (None,)
    total = ALL_REDUCE(gradient.builder, ct, axes=a.axes, monoid="add")
    if a.monoid == "add":
        return (total,)
    if a.monoid not in ("max", "min"):
        raise _no_gradient(node, a.monoid)
    hit = Expression(gradient.builder, x).compare("EQ", Expression(gradient.builder, node.result)).convert(x.type.dtype)
    count = ALL_REDUCE(gradient.builder, hit.value, axes=a.axes, monoid="add")
    return ((Expression(gradient.builder, total) * hit / Expression(gradient.builder, count)).value,)


def _all_to_all_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    (ct,), a = cotangents, node.attrs
    assert isinstance(a, AllToAllAttrs)
    if ct is None:
        return (None,)
    return (ALL_TO_ALL(gradient.builder, ct, from_dim=a.to_dim, to_dim=a.from_dim, axes=a.axes),)


def _permute_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    """The way back."""
    (ct,), a = cotangents, node.attrs
    assert isinstance(a, PermuteAttrs)
    if ct is None:
        return (None,)
    pairs = None if a.pairs is None else tuple((d, s) for s, d in a.pairs)
    return COLLECTIVE_PERMUTE.emit(gradient.builder, (ct,), PermuteAttrs(a.target, a.source, None, pairs))


def _no_gradient(node: Node, monoid: str) -> TypeRuleError:
    return TypeRuleError(
        f"{node.op.name} by {monoid} has no gradient",
        rule=f"{node.op.name}.D1",
        loc=node.loc,
        fix="gather the parts and reduce them on each device",
    )


_RESHARDS = frozenset((Trait.RESHARD,))
_EXCHANGES = frozenset((Trait.COLLECTIVE, Trait.RESHARD))

RESHARD = OpDef("reshard", ReshardAttrs, types.reshard_infer, execute=as_it_is, traits=_RESHARDS)
ALL_GATHER = OpDef(
    "all_gather",
    DimAxesAttrs,
    types.all_gather_infer,
    rule=rules.dim_rule,
    execute=_all_gather,
    localize=leaving,
    traits=_EXCHANGES,
    traffic=_gather_traffic,
    vjp=_all_gather_vjp,
)
ALL_SLICE = OpDef(
    "all_slice", DimAxesAttrs, types.all_slice_infer, execute=_all_slice, localize=joining, traits=_RESHARDS
)
ALL_TO_ALL = OpDef(
    "all_to_all",
    AllToAllAttrs,
    types.all_to_all_infer,
    rule=rules.all_to_all_rule,
    execute=_all_to_all,
    localize=crossing,
    traits=_EXCHANGES,
    traffic=_all_to_all_traffic,
    vjp=_all_to_all_vjp,
)
ALL_REDUCE = OpDef(
    "all_reduce",
    AllReduceAttrs,
    types.all_reduce_infer,
    rule=rules.alike_rule,
    execute=_all_reduce,
    localize=alike,
    traits=_EXCHANGES,
    traffic=_all_reduce_traffic,
    vjp=_all_reduce_vjp,
)
REDUCE_SCATTER = OpDef(
    "reduce_scatter",
    ReduceScatterAttrs,
    types.reduce_scatter_infer,
    rule=rules.dim_rule,
    execute=_reduce_scatter,
    localize=joining,
    traits=_EXCHANGES,
    traffic=_reduce_scatter_traffic,
    vjp=_reduce_scatter_vjp,
)
COLLECTIVE_PERMUTE: OpDef[PermuteAttrs] = OpDef(
    "collective_permute",
    PermuteAttrs,
    types.permute_infer,
    rule=rules.alike_rule,
    execute=_permute,
    localize=_permute_localize,
    traits=_EXCHANGES,
    traffic=_permute_traffic,
    vjp=_permute_vjp,
)
AXIS_INDEX = OpDef("axis_index", AxesAttrs, types.axis_index_infer, rule=rules.axis_index_rule, execute=_axis_index)

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
