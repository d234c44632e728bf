"""The local bodies of gather and scatter where an addressed dimension, or the updates of a scatter, are split.

Every device compares start indices with the *global* size, subtracts the offset of its chunk and serves the indices
that fall into it. A gather leaves the sum's identity elsewhere, so that the results are unreduced; a scatter drops
what is not its own. A window of several elements may straddle two chunks: it is first expanded into single elements,
one more batch dimension a window dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.graph import Value
from gspmd.ir.opdef import Localizer
from gspmd.ir.rule import sole_factor
from gspmd.kernels.indexing import Addressing
from gspmd.kernels.monoids import identity
from gspmd.ops.addressing import (
    GatherAttrs,
    ScatterAttrs,
    batch_dims,
    gather_addressing,
    others,
    scatter_addressing,
)
from gspmd.ops.elementwise import ADD, AND, CLAMP, COMPARE, SELECT, SUBTRACT
from gspmd.ops.hold_once import only_first
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE, TRANSPOSE
from gspmd.ops.literal import IOTA, full, scalar
from gspmd.ops.moving import CONCATENATE, section
from gspmd.ops.reduce import scalar_region
from gspmd.ops.starts import as_i32

Ints = tuple[int, ...]


def _operand_axes(ctx: Localizer, dim: int) -> Axes:
    return ctx.axes_of(sole_factor(ctx.rule.operands[0][dim]))


def _columns(b: Builder, indices: Value, at: int) -> list[Value]:
    """The components of the start indices, each of the indices' batch shape."""
    shape = indices.type.shape
    if at == len(shape):
        return [indices]
    found: list[Value] = []
    for k in range(shape[at]):
        column = section(b, indices, at, k, k + 1)
        found.append(RESHAPE(b, column, shape=ResultShape(shape[:at] + shape[at + 1 :])))
    return found


def _joined(b: Builder, columns: Sequence[Value]) -> Value:
    """The start indices with these components, which become the last dimension."""
    shape = columns[0].type.shape
    parts = [RESHAPE(b, c, shape=ResultShape((*shape, 1))) for c in columns]
    return CONCATENATE(b, *parts, dimension=len(shape))


def _spread(b: Builder, value: Value, shape: Ints, dims: Ints) -> Value:
    """A value repeated to a shape, its dims lying along `dims`."""
    return BROADCAST_IN_DIM(b, value, shape=ResultShape(shape), dims=dims)


@dataclass(frozen=True, slots=True)
class _Places:
    """Start indices counted from this device's chunks.

    `batch` is their batch shape, that of the `expanded` window dims behind it; `inside` tells which element (of the
    batch shape) this device holds.
    """

    indices: Value
    batch: Ints
    expanded: Ints
    inside: Value


def _split_dims(ctx: Localizer, how: Addressing) -> Ints:
    """The addressed operand dimensions that are split, but for those that the window covers."""
    shape = ctx.node.operands[0].type.shape
    covered = [d for d in how.kept if how.window[d] == shape[d]]
    return tuple(d for d in how.start_map if d not in covered and _operand_axes(ctx, d))


def _place(
    ctx: Localizer, columns: Sequence[Value], how: Addressing, split: Ints, clamp: bool, held: Sequence[int]
) -> _Places:
    """Localise i32 start indices; `clamp` moves windows inside the global operand, else those outside are -1."""
    b, shape = ctx.builder, ctx.node.operands[0].type.shape
    expanded = tuple(d for d in how.kept if d in split and how.window[d] > 1)
    first = columns[0].type.shape
    batch = first + tuple(how.window[d] for d in expanded)
    lead = tuple(range(len(first)))
    zero = full(b, 0, "i32", first)
    inside = full(b, True, "bool", batch)
    found: list[Value] = []
    for d, column in zip(how.start_map, columns, strict=True):
        start = column
        if d in split:
            last = full(b, shape[d] - how.window[d], "i32", first)
            whole = None
            if clamp:
                start = CLAMP(b, zero, start, last)
            else:
                whole = AND(b, COMPARE(b, start, zero, direction="GE"), COMPARE(b, start, last, direction="LE"))
            start = SUBTRACT(b, start, _spread(b, ctx.offset(sole_factor(ctx.rule.operands[0][d])), first, ()))
            start = _spread(b, start, batch, lead)
            if d in expanded:
                along = len(first) + expanded.index(d)
                start = ADD(b, start, IOTA(b, shape=ResultShape(batch), dtype=DTYPES["i32"], dimension=along))
            mine = COMPARE(b, start, full(b, 0, "i32", batch), direction="GE")
            mine = AND(b, mine, COMPARE(b, start, full(b, held[d], "i32", batch), direction="LT"))
            if whole is not None:
                mine = AND(b, mine, _spread(b, whole, batch, lead))
            inside = AND(b, inside, mine)
        else:
            start = _spread(b, start, batch, lead)
        found.append(start)
    if not clamp:
        nowhere = full(b, -1, "i32", batch)
        found = [SELECT(b, inside, c, nowhere) if d in split else c for d, c in zip(how.start_map, found, strict=True)]
    return _Places(_joined(b, found), batch, expanded, inside)


def _moved_batching(attrs_dims: Ints, index_vector_dim: int) -> Ints:
    """The indices' batching dims once the components have become the last dimension."""
    return tuple(d - (d > index_vector_dim) for d in attrs_dims)


def gather_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """Gather what this device holds; the sum's identity stands for what another one does."""
    b, (x, indices), attrs = ctx.builder, operands, ctx.node.attrs
    assert isinstance(attrs, GatherAttrs)
    shape = ctx.node.operands[0].type.shape
    how = gather_addressing(attrs, len(shape))
    split = _split_dims(ctx, how)
    sizes = tuple(c if w == n else w for c, w, n in zip(x.type.shape, attrs.slice_sizes, shape, strict=True))
    sizes = tuple(min(w, 1) if d in attrs.operand_batching_dims else w for d, w in enumerate(sizes))
    if not split:
        return ctx.node.op.emit(b, (x, indices), replace(attrs, slice_sizes=sizes))
    columns = [
        as_i32(b, c, shape[d]) for d, c in zip(how.start_map, _columns(b, indices, how.index_vector_dim), strict=True)
    ]
    places = _place(ctx, columns, how, split, True, x.type.shape)
    expanded, rank = places.expanded, ctx.local_result().rank
    kept = tuple(d for d in how.kept if d not in expanded)
    offset_dims = tuple(range(rank - len(kept), rank)) if expanded else attrs.offset_dims
    local = replace(
        attrs,
        offset_dims=offset_dims,
        collapsed_slice_dims=tuple(sorted(attrs.collapsed_slice_dims + expanded)),
        indices_batching_dims=_moved_batching(attrs.indices_batching_dims, attrs.index_vector_dim),
        index_vector_dim=len(places.batch),
        slice_sizes=tuple(1 if d in expanded else w for d, w in enumerate(sizes)),
    )
    (taken,) = ctx.node.op.emit(b, (x, places.indices), local)
    elsewhere = full(b, identity("add", x.type.dtype), x.type.dtype, taken.type.shape)
    inside = _spread(b, places.inside, taken.type.shape, others(rank, offset_dims))
    taken = SELECT(b, inside, taken, elsewhere)
    if not expanded:
        return [taken]
    order = dict(zip(others(rank, attrs.offset_dims), range(rank), strict=False))
    sources = dict(zip(kept, offset_dims, strict=True))
    sources.update((d, len(places.batch) - len(expanded) + i) for i, d in enumerate(expanded))
    order.update((at, sources[d]) for at, d in zip(attrs.offset_dims, how.kept, strict=True))
    return [TRANSPOSE(b, taken, permutation=tuple(order[d] for d in range(rank)))]


def scatter_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """Scatter into what this device holds.

    Where the updates are split, padded ones get an index outside, and all devices but the first of the group start from
    the monoid's identity.
    """
    b, attrs = ctx.builder, ctx.node.attrs
    assert isinstance(attrs, ScatterAttrs)
    n = len(operands) // 2
    xs, indices, updates = operands[:n], operands[n], operands[n + 1 :]
    regions = tuple(map(scalar_region, ctx.node.regions))
    shape = ctx.node.operands[0].type.shape
    how = scatter_addressing(attrs, len(shape), ctx.node.operands[n + 1].type.shape)
    split = _split_dims(ctx, how)
    index_dims = batch_dims(indices.type.rank, attrs.index_vector_dim)
    reduced = [
        (k, f)
        for k, f in enumerate(sole_factor(ctx.rule.operands[n][d]) for d in index_dims)
        if ctx.rule.factors[f].kind == "reduce" and ctx.axes_of(f)
    ]
    if not split and not reduced:
        return ctx.node.op.emit(b, operands, attrs, regions)
    columns = [
        as_i32(b, c, shape[d]) for d, c in zip(how.start_map, _columns(b, indices, how.index_vector_dim), strict=True)
    ]
    for k, f in reduced:
        columns[0] = ctx.mask(columns[0], k, f, scalar(b, -1, "i32"))
    if reduced:
        axes = tuple(a for _, f in reduced for a in ctx.axes_of(f))
        xs = [only_first(ctx, x, axes, attrs.monoid) for x in xs]
    places = _place(ctx, columns, how, split, False, xs[0].type.shape)
    expanded = [_expand_updates(b, u, attrs, how, places.expanded) for u in updates]
    local = replace(
        attrs,
        update_window_dims=expanded[0][0],
        inserted_window_dims=tuple(sorted(attrs.inserted_window_dims + places.expanded)),
        scatter_indices_batching_dims=_moved_batching(attrs.scatter_indices_batching_dims, attrs.index_vector_dim),
        index_vector_dim=len(places.batch),
    )
    return ctx.node.op.emit(b, (*xs, places.indices, *(u for _, u in expanded)), local, regions)


def _expand_updates(
    b: Builder, updates: Value, attrs: ScatterAttrs, how: Addressing, expanded: Ints
) -> tuple[Ints, Value]:
    """The updates with expanded window dims behind the batch dims and the other window dims last; and which are."""
    if not expanded:
        return attrs.update_window_dims, updates
    rank = updates.type.rank
    at = dict(zip(how.kept, attrs.update_window_dims, strict=True))
    rest = [at[d] for d in how.kept if d not in expanded]
    order = (*others(rank, attrs.update_window_dims), *(at[d] for d in expanded), *rest)
    return tuple(range(rank - len(rest), rank)), TRANSPOSE(b, updates, permutation=order)
