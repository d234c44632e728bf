"""Functions that move, repeat, join and cut elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gspmd.frontend.numpy_core import (
    Shape,
    broadcast_shapes,
    broadcast_to,
    cast_to,
    common_dtype,
    full_of,
    lift,
    normal_axes,
    normal_axis,
    scalar,
    shape_of,
    spread,
)
from gspmd.frontend.numpy_creation import diagonal_mask
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, as_sequence, emit
from gspmd.ir.attrs import ResultShape
from gspmd.ops.elementwise import SELECT
from gspmd.ops.layout import RESHAPE, TRANSPOSE
from gspmd.ops.reduce import REDUCE
from gspmd.ops.slicing import CONCATENATE, PAD, REVERSE, SLICE

Axes = int | Sequence[int] | None


# -- shapes ----------------------------------------------------------------------------------------------------------


def reshape(x: ArrayLike, shape: int | Sequence[int]) -> Tracer:
    """The elements in row-major order under another shape, of which one size may be -1."""
    lifted = lift(x)
    target = _whole_shape(lifted.shape, tuple(int(n) for n in as_sequence(shape)))
    return lifted if target == lifted.shape else emit(RESHAPE, lifted, shape=ResultShape(target))


def _whole_shape(source: Shape, target: Shape) -> Shape:
    size, known = prod(source), prod(n for n in target if n != -1)
    if target.count(-1) == 1 and known and size % known == 0:
        target = tuple(size // known if n == -1 else n for n in target)
    if -1 in target or prod(target) != size:
        raise trace_error(
            f"an array of shape {list(source)} has {size} elements and cannot become {list(target)}",
            rule="reshape.C1",
            fix="give sizes whose product is the number of elements, with at most one -1",
        )
    return target


def ravel(x: ArrayLike) -> Tracer:
    """All elements in one dimension."""
    return reshape(x, (-1,)) if prod(shape_of(x)) else reshape(x, (0,))


def expand_dims(x: ArrayLike, axis: int | Sequence[int]) -> Tracer:
    """New dimensions of size 1 at these places of the result."""
    lifted = lift(x)
    places = as_sequence(axis)
    rank = lifted.ndim + len(places)
    found = normal_axes(places, rank)
    sizes = iter(lifted.shape)
    return reshape(lifted, [1 if d in found else next(sizes) for d in range(rank)])


def squeeze(x: ArrayLike, axis: Axes = None) -> Tracer:
    """Without dimensions of size 1: those named, by default all; naming a larger one is an error."""
    lifted = lift(x)
    ones = [d for d, n in enumerate(lifted.shape) if n == 1]
    gone = ones if axis is None else normal_axes(axis, lifted.ndim)
    for d in gone:
        if d not in ones:
            raise trace_error(f"axis {d} of shape {list(lifted.shape)} cannot go: its size is not 1", rule="squeeze.C1")
    return reshape(lifted, [n for d, n in enumerate(lifted.shape) if d not in gone])


def broadcast_arrays(*arrays: ArrayLike) -> list[Tracer]:
    """The arrays in their common shape."""
    shape = broadcast_shapes(*map(shape_of, arrays))
    return [broadcast_to(x, shape) for x in arrays]


# -- order -----------------------------------------------------------------------------------------------------------


def transpose(x: ArrayLike, axes: Sequence[int] | None = None) -> Tracer:
    """The dimensions in another order, by default reversed."""
    lifted = lift(x)
    order = tuple(reversed(range(lifted.ndim))) if axes is None else normal_axes(axes, lifted.ndim)
    if len(order) != lifted.ndim:
        raise trace_error(f"{list(order)} is no order of {lifted.ndim} dimensions", rule="transpose.C1")
    return lifted if order == tuple(range(lifted.ndim)) else emit(TRANSPOSE, lifted, permutation=order)


def matrix_transpose(x: ArrayLike) -> Tracer:
    """The last two dimensions swapped."""
    return swapaxes(x, -1, -2)


def swapaxes(x: ArrayLike, axis1: int, axis2: int) -> Tracer:
    """Two dimensions swapped."""
    lifted = lift(x)
    a, b = normal_axis(axis1, lifted.ndim), normal_axis(axis2, lifted.ndim)
    order = list(range(lifted.ndim))
    order[a], order[b] = b, a
    return transpose(lifted, order)


def moveaxis(x: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tracer:
    """Dimensions moved to other places, the rest in their order."""
    lifted = lift(x)
    start = normal_axes(as_sequence(source), lifted.ndim)
    end = normal_axes(as_sequence(destination), lifted.ndim)
    if len(start) != len(end):
        raise trace_error(f"{len(start)} axes cannot move to {len(end)} places", rule="moveaxis.C1")
    order = [d for d in range(lifted.ndim) if d not in start]
    for place, d in sorted(zip(end, start, strict=True)):
        order.insert(place, d)
    return transpose(lifted, order)


def flip(x: ArrayLike, axis: Axes = None) -> Tracer:
    """The elements in reverse order along axes, by default all."""
    lifted = lift(x)
    dims = normal_axes(axis, lifted.ndim)
    return emit(REVERSE, lifted, dims=dims) if dims else lifted


def roll(x: ArrayLike, shift: int | Sequence[int], axis: Axes = None) -> Tracer:
    """The elements shifted, those that leave one end entering at the other; without an axis, in row-major order."""
    lifted = lift(x)
    if axis is None:
        return reshape(roll(ravel(lifted), sum(as_sequence(shift)), 0), lifted.shape)
    axes = as_sequence(axis)
    shifts = as_sequence(shift) * (len(axes) if isinstance(shift, int) else 1)
    for amount, a in zip(shifts, axes, strict=True):
        d = normal_axis(a, lifted.ndim)
        n = lifted.shape[d]
        at = -amount % n if n else 0
        if at:
            lifted = concatenate([slice_dim(lifted, d, at, n), slice_dim(lifted, d, 0, at)], d)
    return lifted


# -- parts -----------------------------------------------------------------------------------------------------------


def slice_dim(x: Tracer, dim: int, start: int, limit: int, stride: int = 1) -> Tracer:
    """Elements [start, limit) of one dimension, every stride-th."""
    lows = tuple(start if d == dim else 0 for d in range(x.ndim))
    highs = tuple(limit if d == dim else n for d, n in enumerate(x.shape))
    return emit(SLICE, x, start=lows, limit=highs, stride=tuple(stride if d == dim else 1 for d in range(x.ndim)))


def split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tracer]:
    """Equal parts along an axis, or the parts between cutting points."""
    lifted = lift(x)
    d = normal_axis(axis, lifted.ndim)
    n = lifted.shape[d]
    if isinstance(indices_or_sections, int):
        if n % indices_or_sections:
            raise trace_error(
                f"axis {d} of size {n} does not split into {indices_or_sections} equal parts",
                rule="split.C1",
                fix="give the cutting points",
            )
        part = n // indices_or_sections
        cuts = [part * i for i in range(1, indices_or_sections)]
    else:
        cuts = [min(max(c + n if c < 0 else c, 0), n) for c in indices_or_sections]
    return [slice_dim(lifted, d, a, max(a, b)) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def tril(x: ArrayLike, k: int = 0) -> Tracer:
    """Zero above the k-th diagonal of the last two dimensions."""
    return _triangle(x, k, "LE")


def triu(x: ArrayLike, k: int = 0) -> Tracer:
    """Zero below the k-th diagonal of the last two dimensions."""
    return _triangle(x, k, "GE")


def _triangle(x: ArrayLike, k: int, direction: str) -> Tracer:
    lifted = lift(x)
    if lifted.ndim < 2:
        raise trace_error(f"a triangle of an array of {lifted.ndim} dimensions", rule="triangle.C1")
    return emit(SELECT, diagonal_mask(lifted.shape, k, direction), lifted, full_of(0, lifted.dtype, lifted.shape))


def diagonal(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    """The elements with equal index in two dimensions (moved by offset), as the last dimension."""
    lifted = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = lifted.shape[-2:]
    first, length = max(-offset, 0), min(rows, columns - offset) - max(-offset, 0)
    if length <= 0:
        return reshape(
            slice_dim(slice_dim(lifted, lifted.ndim - 1, 0, 0), lifted.ndim - 2, 0, min(rows, 1)),
            (
                *lifted.shape[:-2],
                0,
            ),
        )
    square = slice_dim(lifted, lifted.ndim - 2, first, first + length)
    square = slice_dim(square, lifted.ndim - 1, first + offset, first + offset + length)
    return square_diagonal(square)


def square_diagonal(x: Tracer) -> Tracer:
    """The diagonal of the last two dimensions, which are of one size: what is off it becomes zero and is summed up."""
    kept = emit(SELECT, diagonal_mask(x.shape, 0, "EQ"), x, full_of(0, x.dtype, x.shape))
    return emit(REDUCE, kept, dims=(x.ndim - 2,), monoid="or" if x.dtype.kind == "b" else "add")


def trace(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    """The sum of a diagonal."""
    found = diagonal(x, offset, axis1, axis2)
    return emit(REDUCE, found, dims=(found.ndim - 1,), monoid="add")


# -- more ------------------------------------------------------------------------------------------------------------


def concatenate(arrays: Sequence[ArrayLike], axis: int | None = 0) -> Tracer:
    """Arrays one after the other along an axis; None: their elements in one dimension."""
    if not arrays:
        raise trace_error("nothing to concatenate", rule="concatenate.C0", fix="give at least one array")
    dtype = common_dtype(*arrays)
    parts = [cast_to(ravel(x) if axis is None else x, dtype) for x in arrays]
    if len(parts) == 1:
        return parts[0]
    return emit(CONCATENATE, *parts, dimension=normal_axis(axis or 0, parts[0].ndim))


def stack(arrays: Sequence[ArrayLike], axis: int = 0) -> Tracer:
    """Arrays of one shape side by side along a new axis."""
    lifted = [lift(x) for x in arrays]
    for x in lifted[1:]:
        if x.shape != lifted[0].shape:
            raise trace_error(
                f"stack takes arrays of one shape, got {list(lifted[0].shape)} and {list(x.shape)}", rule="stack.C1"
            )
    return concatenate([expand_dims(x, axis) for x in lifted], axis)


def tile(x: ArrayLike, reps: int | Sequence[int]) -> Tracer:
    """The array repeated as a whole, so many times in each dimension."""
    lifted, times = lift(x), as_sequence(reps)
    rank = max(lifted.ndim, len(times))
    shape = (1,) * (rank - lifted.ndim) + lifted.shape
    times = (1,) * (rank - len(times)) + times
    apart = reshape(lifted, [n for size in shape for n in (1, size)])
    wide = broadcast_to(apart, [n for t, size in zip(times, shape, strict=True) for n in (t, size)])
    return reshape(wide, [t * size for t, size in zip(times, shape, strict=True)])


def repeat(x: ArrayLike, repeats: int | Sequence[int], axis: int | None = None) -> Tracer:
    """Each element so many times in a row along an axis; the numbers must be known, not traced."""
    lifted = ravel(x) if axis is None else lift(x)
    d = normal_axis(0 if axis is None else axis, lifted.ndim)
    if isinstance(repeats, Tracer):
        raise trace_error("the length of repeat depends on a traced value", rule="repeat.C1", fix="give numbers")
    counts = tuple(int(c) for c in np.atleast_1d(repeats))
    n = lifted.shape[d]
    if len(counts) == 1:
        shape = list(lifted.shape)
        apart = expand_dims(lifted, d + 1)
        wide = broadcast_to(apart, [*shape[: d + 1], counts[0], *shape[d + 1 :]])
        return reshape(wide, [*shape[:d], n * counts[0], *shape[d + 1 :]])
    if len(counts) != n:
        raise trace_error(f"{len(counts)} repeats for {n} elements", rule="repeat.C2")
    parts = [repeat(slice_dim(lifted, d, i, i + 1), c, d) for i, c in enumerate(counts)]
    return concatenate(parts, d)


def pad_with(
    x: Tracer, low: Sequence[int], high: Sequence[int], fill: ArrayLike = 0, interior: Sequence[int] | None = None
) -> Tracer:
    """Elements of one value before, after and (interior) between those of the array; negative widths cut."""
    inner = (0,) * x.ndim if interior is None else tuple(interior)
    value = spread(fill, x.dtype, ()) if isinstance(fill, Tracer) else scalar(np.asarray(fill).item(), x.dtype)
    return emit(PAD, x, value, low=tuple(low), high=tuple(high), interior=inner)
