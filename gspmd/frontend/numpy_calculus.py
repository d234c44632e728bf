"""Differences, integrals, interpolation, convolution of sequences, polynomials, products of vectors in space."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any, Literal

from gspmd.frontend.conv import conv
from gspmd.frontend.numpy_core import as_inexact, broadcast_to, cast_to, common_dtype, lift, normal_axes, normal_axis
from gspmd.frontend.numpy_histogram import searchsorted
from gspmd.frontend.numpy_index import getitem, take
from gspmd.frontend.numpy_logic import logical_and, not_equal
from gspmd.frontend.numpy_math import abs as absolute
from gspmd.frontend.numpy_math import clip, remainder, where
from gspmd.frontend.numpy_reduce import cumsum, sum
from gspmd.frontend.numpy_shape import concatenate, flip, moveaxis, ravel, reshape, slice_dim, stack
from gspmd.frontend.numpy_sort import argsort
from gspmd.frontend.numpy_special import conj
from gspmd.frontend.promotion import inexact
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer
from gspmd.ir.dtypes import DTYPES

Mode = Literal["full", "same", "valid"]


# -- differences -----------------------------------------------------------------------------------------------------


def diff(
    x: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Tracer:
    """Each element less the one before it along an axis, n times; what is put before and behind counts too."""
    lifted = lift(x)
    if n < 0:
        raise trace_error(f"the difference is taken {n} times", rule="diff.C1")
    d = normal_axis(axis, lifted.ndim)
    parts = [_at_side(prepend, lifted, d), lifted, _at_side(append, lifted, d)]
    lifted = concatenate([p for p in parts if p is not None], d) if n else lifted
    for _ in range(n):
        size = lifted.shape[d]
        if not size:
            break
        later, earlier = slice_dim(lifted, d, 1, size), slice_dim(lifted, d, 0, size - 1)
        lifted = not_equal(later, earlier) if lifted.dtype == DTYPES["bool"] else later - earlier
    return lifted


def _at_side(value: ArrayLike | None, x: Tracer, dim: int) -> Tracer | None:
    if value is None:
        return None
    lifted = lift(value)
    return lifted if lifted.ndim else broadcast_to(lifted, [1 if d == dim else n for d, n in enumerate(x.shape)])


def ediff1d(x: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Tracer:
    """The differences of neighbours in row-major order, with further elements behind and before them."""
    found = diff(ravel(x))
    parts = [None if to_begin is None else ravel(to_begin), found, None if to_end is None else ravel(to_end)]
    return concatenate([cast_to(p, found.dtype) for p in parts if p is not None])


def gradient(x: ArrayLike, *spacing: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> Any:
    """The slope along each axis, by the neighbours on both sides; at the ends by those on one (`edge_order` 1 or 2).

    Of spacings there is none (1), one for all axes, or one for each: a distance, or the coordinates along the axis. For
    one axis the result is an array, for several a list.
    """
    lifted = as_inexact(x)
    dims = normal_axes(axis, lifted.ndim)
    steps = spacing if len(spacing) == len(dims) else (spacing or (1.0,)) * len(dims)
    if len(spacing) not in (0, 1, len(dims)) or edge_order not in (1, 2):
        raise trace_error(
            f"gradient along {len(dims)} axes with {len(spacing)} spacings, edge order {edge_order}", rule="gradient.C1"
        )
    found = [_slope(lifted, step, d, edge_order) for step, d in zip(steps, dims, strict=True)]
    return found[0] if len(found) == 1 else found


def _slope(x: Tracer, spacing: ArrayLike, dim: int, edge_order: int) -> Tracer:
    n = x.shape[dim]
    if n <= edge_order:
        raise trace_error(f"the slope along axis {dim} of {n} elements", rule="gradient.C2", fix="give more elements")

    def part(first: int, last: int) -> Tracer:
        return slice_dim(x, dim, first if first >= 0 else first + n, last if last > 0 else last + n)

    step = cast_to(spacing, x.dtype)
    if step.ndim == 0:
        inside = (part(2, 0) - part(0, -2)) / (2 * step)
        first, last = (part(1, 2) - part(0, 1)) / step, (part(-1, 0) - part(-2, -1)) / step
        if edge_order == 2:
            first = (4 * part(1, 2) - 3 * part(0, 1) - part(2, 3)) / (2 * step)
            last = (3 * part(-1, 0) - 4 * part(-2, -1) + part(-3, -2)) / (2 * step)
        return concatenate([first, inside, last], dim)
    if step.shape != (n,) or edge_order == 2:
        raise trace_error(
            f"coordinates of shape {list(step.shape)} along axis {dim} of {n} elements, edge order {edge_order}",
            rule="gradient.C3",
            fix="give as many coordinates as there are elements, and edge order 1",
        )
    gaps = reshape(diff(step), [n - 1 if d == dim else 1 for d in range(x.ndim)])
    before, after = slice_dim(gaps, dim, 0, n - 2), slice_dim(gaps, dim, 1, n - 1)
    rise, fall = part(2, 0) - part(1, -1), part(1, -1) - part(0, -2)
    inside = (rise * before / after + fall * after / before) / (before + after)
    first = (part(1, 2) - part(0, 1)) / slice_dim(gaps, dim, 0, 1)
    last = (part(-1, 0) - part(-2, -1)) / slice_dim(gaps, dim, n - 2, n - 1)
    return concatenate([first, inside, last], dim)


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Tracer:
    """The integral along an axis by the trapezoidal rule, at coordinates x or at distances dx."""
    heights = as_inexact(y)
    d = normal_axis(axis, heights.ndim)
    n = heights.shape[d]
    width: ArrayLike = dx
    if x is not None:
        places = lift(x)
        width = diff(places, axis=0 if places.ndim == 1 else d)
        width = reshape(width, [-1 if e == d else 1 for e in range(heights.ndim)]) if places.ndim == 1 else width
    means = (slice_dim(heights, d, 1, n) + slice_dim(heights, d, 0, n - 1)) / 2
    return sum(means * width, d)


def unwrap(x: ArrayLike, discont: float | None = None, axis: int = -1, period: float = 2 * pi) -> Tracer:
    """Angles made continuous along an axis: steps of more than half a period (or `discont`) are taken the other way."""
    lifted = as_inexact(x)
    d = normal_axis(axis, lifted.ndim)
    half = period / 2
    steps = diff(lifted, axis=d)
    near = remainder(steps + half, period) - half
    near = where(logical_and(near == -half, steps > 0), half, near)
    shift = where(absolute(steps) < (half if discont is None else max(discont, half)), 0, near - steps)
    rest = slice_dim(lifted, d, 1, lifted.shape[d]) + cumsum(shift, d)
    return concatenate([slice_dim(lifted, d, 0, 1), rest], d)


# -- sequences -------------------------------------------------------------------------------------------------------


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> Tracer:
    """The values at x of the line through the points (xp, fp), whose xp ascend; beyond its ends those of the ends.

    `left` and `right` are other values beyond the ends; with a period there are no ends.
    """
    dtype = inexact(common_dtype(x, xp, fp))
    at, places, values = (cast_to(v, dtype) for v in (x, xp, fp))
    if places.ndim != 1 or values.shape != places.shape or not places.size:
        raise trace_error(f"a line through {list(places.shape)} and {list(values.shape)} coordinates", rule="interp.C1")
    if period is not None:
        at, places = remainder(at, period), remainder(places, period)
        order = argsort(places)
        places, values = take(places, order), take(values, order)
        first, last = slice(None, 1), slice(-1, None)
        places = concatenate([getitem(places, last) - period, places, getitem(places, first) + period])
        values = concatenate([getitem(values, last), values, getitem(values, first)])
    n = places.size
    after = clip(cast_to(searchsorted(places, at, "right"), DTYPES["i32"]), min(1, n - 1), n - 1)
    before = clip(after - 1, 0, n - 1)
    x0, x1, y0, y1 = take(places, before), take(places, after), take(values, before), take(values, after)
    gap = x1 - x0
    found = where(gap == 0, y1, y0 + (at - x0) / where(gap == 0, 1, gap) * (y1 - y0))
    low, high = getitem(values, 0), getitem(values, -1)
    found = where(at < getitem(places, 0), low if left is None or period is not None else left, found)
    return where(at > getitem(places, -1), high if right is None or period is not None else right, found)


def convolve(a: ArrayLike, v: ArrayLike, mode: Mode = "full") -> Tracer:
    """The convolution of two sequences: all, the middle as long as the longer (same), or where they overlap (valid)."""
    dtype = common_dtype(a, v)
    long, short = _lines("convolve", a, v, dtype)
    if short.size > long.size:
        long, short = short, long
    n, m = long.size, short.size
    if mode not in ("full", "same", "valid"):
        raise trace_error(f"mode {mode!r} is none of full, same, valid", rule="convolve.C2")
    low, high = {"full": (m - 1, m - 1), "same": (m - 1 - (m - 1) // 2, (m - 1) // 2), "valid": (0, 0)}[mode]
    found = conv(reshape(long, (1, n, 1)), reshape(flip(short), (m, 1, 1)), padding=[(low, high)])
    return cast_to(ravel(found), dtype)


def correlate(a: ArrayLike, v: ArrayLike, mode: Mode = "valid") -> Tracer:
    """The cross-correlation of two sequences, the second one conjugated."""
    x, y = _lines("correlate", a, v, common_dtype(a, v))
    if y.size > x.size:
        return flip(conj(correlate(y, x, mode)))
    return convolve(x, flip(conj(y)), mode)


def _lines(name: str, a: ArrayLike, v: ArrayLike, dtype: Any) -> tuple[Tracer, Tracer]:
    x, y = cast_to(a, dtype), cast_to(v, dtype)
    x, y = (reshape(t, (1,)) if not t.ndim else t for t in (x, y))
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise trace_error(f"{name} of arrays of shapes {list(x.shape)} and {list(y.shape)}", rule=f"{name}.C1")
    return x, y


# -- polynomials and vectors -----------------------------------------------------------------------------------------


def polyval(p: ArrayLike, x: ArrayLike) -> Tracer:
    """The polynomial with coefficients p, the highest power first, at x."""
    dtype = common_dtype(p, x)
    at, coefficients = cast_to(x, dtype), cast_to(p, dtype)
    found = at * 0
    for i in range(coefficients.shape[0]):
        found = found * at + getitem(coefficients, i)
    return found


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Tracer:
    """The powers of each element in a row, the highest first unless they are to increase."""
    lifted = lift(x)
    count = lifted.size if N is None else N
    powers = [lifted * 0 + 1]
    for _ in range(count - 1):
        powers.append(powers[-1] * lifted)
    table = stack(powers[:count] if increasing else powers[:count][::-1], 1) if count else None
    return reshape(lifted, (lifted.size, 1))[:, :0] if table is None else table


def cross(x: ArrayLike, y: ArrayLike, axis: int = -1) -> Tracer:
    """The vector product of vectors of three elements along an axis; of two elements the product's third component."""
    a, b = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    sizes = (a.shape[-1], b.shape[-1])
    if not set(sizes) <= {2, 3}:
        raise trace_error(f"the cross product of vectors of {sizes[0]} and {sizes[1]} elements", rule="cross.C1")
    (a0, a1, a2), (b0, b1, b2) = _components(a), _components(b)
    third = a0 * b1 - a1 * b0
    if sizes == (2, 2):
        return third
    return moveaxis(stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, third], -1), -1, axis)


def _components(x: Tracer) -> list[Tracer]:
    found = [getitem(x, (..., i)) for i in range(x.shape[-1])]
    return found if len(found) == 3 else [*found, found[0] * 0]
