"""Where numbers fall among others: searchsorted, digitize, bincount, histograms."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gspmd.frontend.config import default_int
from gspmd.frontend.numpy_core import array_of, as_inexact, cast_to, common_dtype, full_of, lift, shape_of
from gspmd.frontend.numpy_creation import asarray, linspace
from gspmd.frontend.numpy_index import getitem
from gspmd.frontend.numpy_logic import (
    bitwise_and,
    bitwise_or,
    equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
)
from gspmd.frontend.numpy_math import maximum, minimum, where
from gspmd.frontend.numpy_reduce import any, max, min, sum
from gspmd.frontend.numpy_shape import expand_dims, flip, ravel, reshape
from gspmd.frontend.numpy_update import update
from gspmd.frontend.promotion import inexact
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, is_scalar
from gspmd.ir.dtypes import DTYPES, is_integer

Side = Literal["left", "right"]
# Pairs of elements up to which all are compared, which splits well; more are searched by halving.
_MOST_PAIRS = 1 << 22


def searchsorted(a: ArrayLike, v: ArrayLike, side: Side = "left") -> Tracer:
    """Where each element of v would go into a, which ascends: before its equals (left) or behind them (right)."""
    if side not in ("left", "right"):
        raise trace_error(f"side {side!r} is neither left nor right", rule="searchsorted.C1")
    dtype = common_dtype(a, v)
    line, sought = cast_to(a, dtype), cast_to(v, dtype)
    if line.ndim != 1:
        raise trace_error(
            f"searchsorted in an array of shape {list(line.shape)}: it has no order", rule="searchsorted.C2"
        )
    if line.size * sought.size > _MOST_PAIRS:
        return _by_halving(line, sought, side)
    return sum(cast_to(_before(line, expand_dims(sought, -1), side), default_int()), -1)


def _before(x: Tracer, sought: Tracer, side: Side) -> Tracer:
    """Whether an element stays before the sought one; a NaN comes after all others."""
    if side == "right":
        return logical_or(less_equal(x, sought), isnan(sought))
    return logical_or(less(x, sought), logical_and(isnan(sought), logical_not(isnan(x))))


def _by_halving(line: Tracer, sought: Tracer, side: Side) -> Tracer:
    index = DTYPES["i32"]
    low = full_of(0, index, sought.shape)
    high = full_of(line.size, index, sought.shape)
    for _ in range(line.size.bit_length()):
        middle = (low + high) // 2
        stays = logical_and(_before(getitem(line, (middle,)), sought, side), less(low, high))
        low, high = where(stays, middle + 1, low), where(stays, high, minimum(middle, high))
    return cast_to(low, default_int())


def isin(x: ArrayLike, values: ArrayLike, invert: bool = False) -> Tracer:
    """Whether each element is among the values (or is not)."""
    lifted = lift(x)
    found = any(equal(expand_dims(lifted, -1), ravel(values)), -1)
    return logical_not(found) if invert else found


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Tracer:
    """The number of the bin that each element is in; bins are in order, up or down, and contain their left edge.

    With `right` they contain the right edge instead.
    """
    edges = lift(bins)
    side: Side = "left" if right else "right"
    n = edges.size
    up = searchsorted(edges, x, side)
    if n < 2:
        return up
    down = full_of(n, up.dtype, up.shape) - searchsorted(flip(edges), x, side)
    if isinstance(bins, Tracer):
        return where(getitem(edges, 0) <= getitem(edges, -1), up, down)
    known = array_of(bins)
    return up if known[0] <= known[-1] else down


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, length: int | None = None) -> Tracer:
    """How often each number from 0 on occurs, or the sum of its weights.

    The length must be known: it is given, or follows from numbers that are no traced ones. With a length, what is not
    below it is left out.
    """
    lifted = ravel(x)
    if not is_integer(lifted.dtype):
        raise trace_error(f"bincount takes integers, got {lifted.type.bare.text()}", rule="bincount.C1")
    if length is None:
        if isinstance(x, Tracer):
            raise trace_error("the length of bincount depends on traced values", rule="bincount.C2", fix="give length=")
        length = int(np.max(array_of(x), initial=-1)) + 1
    if lifted.dtype.itemsize < 4:
        lifted = cast_to(lifted, DTYPES["i32"])  # the length need not be a number of a narrow dtype
    size = length if length > minlength else minlength
    kind = default_int() if weights is None else inexact(lift(weights).dtype)
    added = full_of(1, kind, lifted.shape) if weights is None else cast_to(ravel(weights), kind)
    return _added_up(lifted, added, size)


def _added_up(places: Tracer, added: Tracer, size: int) -> Tracer:
    """Sums of what is added at each place; places outside count nothing."""
    total = full_of(0, added.dtype, (size,))
    if not size:
        return total
    outside = bitwise_or(less(places, 0), less(size - 1, places))
    kept = where(outside, full_of(0, added.dtype, added.shape), added)
    return update(total, (minimum(maximum(cast_to(places, DTYPES["i32"]), 0), size - 1),), kept, "add")


def histogram_bin_edges(x: ArrayLike, bins: Any = 10, range: tuple[ArrayLike, ArrayLike] | None = None) -> Tracer:
    """The edges of so many bins of one width, between the smallest and the largest element or in a range."""
    if not (is_scalar(bins) and isinstance(bins, int)):
        if isinstance(bins, str):
            raise trace_error(
                f"the number of bins by {bins!r} depends on traced values", rule="histogram.C1", fix="give it"
            )
        return asarray(bins)
    lifted = as_inexact(x)
    if range is not None:
        low, high = (cast_to(v, lifted.dtype) for v in range)
    elif lifted.size:
        low, high = min(lifted), max(lifted)
    else:
        low, high = full_of(0, lifted.dtype, ()), full_of(1, lifted.dtype, ())
    same = low == high
    return linspace(where(same, low - 0.5, low), where(same, high + 0.5, high), bins + 1)


def histogram(
    x: ArrayLike,
    bins: Any = 10,
    range: tuple[ArrayLike, ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> tuple[Tracer, Tracer]:
    """How many elements are in each bin (or the sum of their weights), and the edges; the last bin has both of its.

    The number of bins is known, or bins are their edges. `density`: divided by the width, so that the integral is 1.
    """
    edges = histogram_bin_edges(x, bins, range)
    lifted = ravel(x)
    last = getitem(edges, -1)
    places = searchsorted(edges, lifted, "right") - 1
    places = where(lifted == last, shape_of(edges)[0] - 2, places)
    inside = bitwise_and(getitem(edges, 0) <= lifted, lifted <= last)
    kind = default_int() if weights is None else lift(weights).dtype
    added = full_of(1, kind, lifted.shape) if weights is None else reshape(lift(weights), lifted.shape)
    kept = where(inside, added, full_of(0, added.dtype, added.shape))
    counts = _added_up(places, kept, edges.size - 1)
    if not density:
        return counts, edges
    widths = getitem(edges, slice(1, None)) - getitem(edges, slice(None, -1))
    share = as_inexact(counts)
    return share / widths / sum(share), edges
