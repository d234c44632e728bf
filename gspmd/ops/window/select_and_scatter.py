"""Each window selects one element, which receives the window's source (StableHLO: select_and_scatter).

This is the gradient of max-pooling. Seen from a result element p: it reads the sources of the windows over it,
`stride*o = p - dilation*k + low`, and the operand as far as those windows reach. A device therefore computes more than
its part and crops: whole windows on an operand that is larger by the reach of a window on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from gspmd.ir.attrs import Attrs, ResultShape, Window, WindowDim
from gspmd.ir.axes import Axes
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Localizer, Machine, Shards, Types
from gspmd.ir.rule import Access, DimMap, Factor, Rule
from gspmd.ir.types import TensorType
from gspmd.kernels import monoids
from gspmd.kernels import window as kernels
from gspmd.kernels.finite import widened
from gspmd.ops import cells
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.fetch import FETCH
from gspmd.ops.fetch_plan import Geometry, Reading, geometry
from gspmd.ops.literal import scalar
from gspmd.ops.moving import section
from gspmd.ops.reduce import CUSTOM, scalar_region
from gspmd.ops.rules import require, require_kind
from gspmd.ops.slicing import DYNAMIC_SLICE
from gspmd.ops.window.sides import counts, fill_number, is_plain

_OP = "select_and_scatter"
_SELECT: dict[str, np.ufunc] = {
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


@dataclass(frozen=True, slots=True)
class SelectAndScatterAttrs(Attrs):
    """The window; how two elements must compare for the first to be kept; how sources of one element combine.

    Operands: x, source, and optionally a bool tensor like x that tells which elements may be selected, then one like
    the source that tells which windows select at all. Elements that no window selects are zero (what the monoid leaves
    unchanged, if it is not `add`). With `custom` for both there are two regions, (a, b) -> bool and (held, source) ->
    new, and a scalar init after the source.
    """

    window: Window
    select: str = "GE"
    scatter: str = "add"


def has_init(attrs: SelectAndScatterAttrs) -> bool:
    """Whether there is an init operand: with regions."""
    return attrs.select == CUSTOM


def select_and_scatter_infer(types: Types, attrs: SelectAndScatterAttrs, regions: tuple[Region, ...]) -> Types:
    """The result is like x."""
    custom = has_init(attrs)
    require(custom == (attrs.scatter == CUSTOM), f"{_OP}.C1", "both or none of select and scatter are regions")
    require(
        len(regions) == (2 if custom else 0), f"{_OP}.C1", f"{attrs.select}, {attrs.scatter}: {len(regions)} regions"
    )
    least = 3 if custom else 2
    require(least <= len(types) <= least + 2, f"{_OP}.C2", f"takes {least} to {least + 2} operands, got {len(types)}")
    x, source = types[:2]
    require(custom or attrs.select in _SELECT, f"{_OP}.C3", f"select must be one of {', '.join(_SELECT)}")
    require(custom or attrs.scatter in monoids.MONOIDS, f"{_OP}.C3", f"unknown monoid {attrs.scatter!r}")
    require_kind(_OP, "C4", x, "biuf")
    require(x.dtype == source.dtype, f"{_OP}.C5", f"operand {x.bare} and source {source.bare} differ in dtype")
    places = counts(_OP, attrs.window, x.shape, x.rank)
    require(list(source.shape) == places, f"{_OP}.C6", f"the source must have shape {places}, got {list(source.shape)}")
    plain = all(s.base_dilation == 1 and not s.reversed for s in attrs.window)
    require(plain, f"{_OP}.C7", "the operand cannot be dilated, nor the window reversed")
    one, bools = x.with_shape(()).bare, as_dtype("bool")
    if custom:
        require(types[2].bare == one, f"{_OP}.C8", f"the init must be {one.text()}, got {types[2].bare.text()}")
        for region, wanted in zip(regions, (TensorType(bools, ()), one), strict=True):
            given = [v.type.bare for v in (*region.params, *region.results)]
            require(
                given == [one, one, wanted], f"{_OP}.C9", f"a region must be (a, b) -> {wanted.text()} on {one.text()}"
            )
    for i, like in enumerate((x, source)[: len(types) - least], least):
        wanted = TensorType(bools, like.shape)
        require(types[i].bare == wanted, f"{_OP}.C10", f"operand {i} must be {wanted.text()}, got {types[i].bare}")
    return (x.bare,)


def select_and_scatter_rule(types: Types, results: Types, attrs: SelectAndScatterAttrs) -> Rule:
    """A factor for each result dimension; windows are read around it, and never split."""
    x, source = types[:2]
    factors = [Factor(n) for n in x.shape]
    operand: list[DimMap] = []
    sources: list[DimMap] = []
    for d, (n, side) in enumerate(zip(x.shape, attrs.window, strict=True)):
        if is_plain(side):
            operand.append((d,))
            sources.append((d,))
            continue
        k, reach = len(factors), _reach(side)
        factors += [Factor(side.size, "whole"), Factor(2 * reach + 1, "whole")]
        operand.append(Access(n, d, add=-reach, kernel_factor=k + 1, kmul=1))
        step = -side.window_dilation
        sources.append(Access(source.shape[d], d, add=side.low, div=side.stride, kernel_factor=k, kmul=step))
    maps = [tuple(operand), tuple(sources)]
    if has_init(attrs):
        maps.append(())
    maps += [tuple(operand), tuple(sources)][: len(types) - len(maps)]
    linear = ((1,),) if attrs.scatter == "add" and source.dtype.kind != "b" else ()
    flops = 2 * prod(source.shape) * prod(s.size for s in attrs.window)
    return Rule(tuple(factors), tuple(maps), (tuple((d,) for d in range(x.rank)),), linear, flops)


def select_and_scatter_kernel(
    attrs: SelectAndScatterAttrs, x: Array, source: Array, eligible: Array | None = None, live: Array | None = None
) -> Array:
    """By comparison and monoid."""
    wide = widened(source)
    start = kernels.around(attrs.scatter, wide.dtype)
    with np.errstate(all="ignore"):
        select, scatter = _SELECT[attrs.select], monoids.binary(attrs.scatter)
        out = kernels.select_and_scatter(
            widened(x), wide, attrs.window, select, scatter, start, eligible, live, neutral=start
        )
    return out.astype(x.dtype, copy=False)


def select_and_scatter_execute(machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
    """By comparison and monoid, or by regions on all windows at once."""
    attrs = node.attrs
    assert isinstance(attrs, SelectAndScatterAttrs)
    if not has_init(attrs):
        return [[select_and_scatter_kernel(attrs, *xs) for xs in zip(*arguments, strict=True)]]
    # The shards of all devices in a row, so that each step of a region runs once for all of them.
    x, source, init, *rest = (np.stack(shards) for shards in arguments)
    select, scatter = (_binary(machine, r) for r in node.regions)
    sides = (WindowDim(), *attrs.window)
    start = init.reshape([-1] + [1] * (x.ndim - 1))
    found = kernels.select_and_scatter(x, source, sides, select, scatter, start, *(rest or [None]))
    return [list(found)]


def _binary(machine: Machine, region: Region) -> kernels.Binary:
    """A region on two scalars as a function on arrays, whose leading dimension numbers the shards."""

    def apply(a: Array, b: Array) -> Array:
        (found,) = machine.run(region, [list(a), list(b)])
        return np.stack([np.broadcast_to(x, a.shape[1:]) for x in found])

    return apply


def _reach(side: WindowDim) -> int:
    return side.window_dilation * (side.size - 1)


# -- local body ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cut:
    """One dimension: which part of operand and source is fetched, and where this device's results lie in it.

    `reach` of a window to either side, and how much `before` the results is fetched.
    """

    operand: Reading
    source: Reading
    plan: Geometry
    side: WindowDim
    reach: int
    before: int


def select_and_scatter_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """Whole windows around this device's results, then the results alone."""
    attrs = ctx.node.attrs
    assert isinstance(attrs, SelectAndScatterAttrs)
    cuts = {d: cut for d in range(len(attrs.window)) if (cut := _cut(ctx, operands, attrs, d)) is not None}
    at = 3 if has_init(attrs) else 2
    eligible, live = [*operands[at:], None, None][:2]
    given_eligible, given_live = [*ctx.node.operands[at:], None, None][:2]  # split in ways of their own
    x, source = operands[:2]
    for d, cut in cuts.items():
        x = _around(ctx, x, d, cut, cut.operand, None)
        if eligible is not None and given_eligible is not None:
            eligible = _around(ctx, eligible, d, cut, _held(cut.operand, given_eligible, eligible, d), 0)
        if live is not None and given_live is not None:
            live = FETCH(ctx.builder, live, dim=d, reading=_held(cut.source, given_live, live, d), fill=0)
        fill = None if has_init(attrs) else fill_number(attrs.scatter, source.type.dtype)
        source = FETCH(ctx.builder, source, dim=d, reading=cut.source, fill=fill)
    for d, cut in cuts.items():
        eligible = cells.both(ctx.builder, eligible, _inside(ctx, x, d, cut))
        if has_init(attrs):  # with regions no source is known to change nothing
            live = cells.both(ctx.builder, live, _exists(ctx, source, d, cut))
    local = replace(attrs, window=Window(cuts[d].side if d in cuts else s for d, s in enumerate(attrs.window)))
    given = [x, source, *operands[2:at], *(v for v in (eligible, live) if v is not None)]
    (found,) = ctx.node.op.emit(ctx.builder, given, local, tuple(map(scalar_region, ctx.node.regions)))
    for d, cut in cuts.items():
        found = _part(ctx, found, d, cut.before, _lead(ctx, d, cut), ctx.chunk(d))
    return (found,)


def _cut(ctx: Localizer, operands: Sequence[Value], attrs: SelectAndScatterAttrs, d: int) -> _Cut | None:
    side, to_axes, chunk = attrs.window[d], ctx.axes_of(d), ctx.chunk(d)
    held_axes = [_axes(v, d) for v in ctx.node.operands if v.type.rank]
    if is_plain(side) or not (to_axes or any(held_axes)):
        return None
    x_axes, source_axes = held_axes[:2]
    x, source = ctx.node.operands[0].type.shape[d], ctx.node.operands[1].type.shape[d]
    held, held_source = operands[0].type.shape[d], operands[1].type.shape[d]
    reach, step = _reach(side), side.window_dilation
    sources = Reading(
        source, source_axes, held_source, x, to_axes, chunk, 1, side.low, side.stride, side.size, (), side.size, -step
    )
    g = geometry(sources)
    spare = g.block - 1
    length = g.count + 2 * reach
    high = (g.width - 1) * side.stride + reach + 1 - length + g.phase
    # Cells before the first window and behind the last that lie around the results need not be brought.
    before, behind = (reach, reach) if spare else (reach - min(g.phase, reach), reach - min(max(-high, 0), reach))
    taps = before + behind + 2 * spare + 1
    operand = Reading(x, x_axes, held, x, to_axes, chunk, 1, -before - spare, 1, taps, (), taps, 1)
    side = replace(side, low=reach - before - g.phase, high=high + reach - behind)
    return _Cut(operand, sources, g, side, reach, before)


def _axes(value: Value, d: int) -> Axes:
    sharding = value.type.sharding
    return () if sharding is None else sharding.dims[d].axes


def _lead(ctx: Localizer, d: int, cut: _Cut) -> Expression | None:
    """How far this device's first result lies behind the first that is computed; None for not at all."""
    if cut.plan.block == 1:
        return None
    return Expression(ctx.builder, ctx.offset(d)) % cut.plan.block


def _held(reading: Reading, whole: Value, local: Value, d: int) -> Reading:
    """The same reading of another tensor, split otherwise."""
    return replace(reading, axes=_axes(whole, d), chunk=local.type.shape[d])


def _around(ctx: Localizer, x: Value, d: int, cut: _Cut, reading: Reading, fill: int | None) -> Value:
    """The operand, or its mask, under the windows over this device's results."""
    x = FETCH(ctx.builder, x, dim=d, reading=reading, fill=fill)
    lead = _lead(ctx, d, cut)
    length = cut.plan.count + 2 * cut.reach
    return x if lead is None else _part(ctx, x, d, cut.plan.block - 1, -lead, length)


def _exists(ctx: Localizer, source: Value, d: int, cut: _Cut) -> Value:
    """Where there is a window for the fetched source."""
    return _between(ctx, cells.first_read(ctx.builder, cut.source, ctx.index), source, d, cut.source.size)


def _inside(ctx: Localizer, x: Value, d: int, cut: _Cut) -> Value:
    """Where the fetched operand lies in the tensor."""
    first = Expression(ctx.builder, ctx.offset(d)) - cut.before
    lead = _lead(ctx, d, cut)
    return _between(ctx, first if lead is None else first - lead, x, d, cut.operand.size)


def _between(ctx: Localizer, first: Expression, x: Value, d: int, size: int) -> Value:
    """Where positions along a dimension, counted from `first`, are those of real elements."""
    return cells.within(ctx.builder, x.type.shape, d, first.value, 0, size)


def _part(ctx: Localizer, x: Value, d: int, first: int, more: Expression | None, length: int) -> Value:
    """So many elements along a dimension, from `first + more` on."""
    b, shape = ctx.builder, list(x.type.shape)
    if more is None:
        return section(b, x, d, first, first + length)
    shape[d] = length
    none = scalar(b, 0, "i32")
    starts = [(more + first).value if i == d else none for i in range(len(shape))]
    return DYNAMIC_SLICE(b, x, *starts, sizes=ResultShape(shape))
