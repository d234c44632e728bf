"""Windows that slide over an array: reduce_window, select_and_scatter, cumulative reductions (StableHLO's meaning).

A window is given as one record a dimension with the fields of `ir.attrs.WindowDim`. All loops run over the taps of a
window, never over elements; sums and extremes are taken dimension by dimension, and long windows by doubling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from gspmd.kernels import monoids, slicing
from gspmd.kernels.extrema import has_negative_zero
from gspmd.kernels.finite import Array, widened

# From this many taps per output position on, a window is put together from windows of half its size.
_DOUBLING = 8


class Side(Protocol):
    """How a window moves along one dimension."""

    @property
    def size(self) -> int: ...
    @property
    def stride(self) -> int: ...
    @property
    def base_dilation(self) -> int: ...
    @property
    def window_dilation(self) -> int: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def reversed(self) -> bool: ...


def padded_size(n: int, side: Side) -> int:
    """Elements of a dimension with its holes and its padding."""
    return (max(n - 1, 0) * side.base_dilation + 1 if n else 0) + side.low + side.high


def window_count(n: int, side: Side) -> int:
    """How many windows fit into a dimension of n elements."""
    reach = (side.size - 1) * side.window_dilation + 1
    return max((padded_size(n, side) - reach) // side.stride + 1, 0)


def spaced(x: Array, sides: Sequence[Side], fill: Any) -> Array:
    """The array with `fill` between its elements and around them, as the windows see it; negative padding cuts off."""
    if all(s.low == s.high == 0 and s.base_dilation == 1 for s in sides):
        return x
    low, high = [s.low for s in sides], [s.high for s in sides]
    return slicing.pad(x, np.asarray(fill, x.dtype), low, high, [s.base_dilation - 1 for s in sides])


def tap(x: Array, sides: Sequence[Side], index: Sequence[int]) -> Array:
    """What lies at one place of every window: a view of the spaced array."""
    cuts: list[slice] = []
    for n, side, k in zip(x.shape, sides, index, strict=True):
        count = max((n - (side.size - 1) * side.window_dilation - 1) // side.stride + 1, 0)
        first = (side.size - 1 - k if side.reversed else k) * side.window_dilation
        cuts.append(slice(first, first + (count - 1) * side.stride + 1, side.stride) if count else slice(0, 0))
    return x[tuple(cuts)]


def around(monoid: str, dtype: Any) -> Array:
    """What padding holds: the monoid's identity, but for sums a zero that does not show in the sign."""
    return np.zeros((), dtype) if monoid == "add" else monoids.identity(monoid, dtype)


def reduce_window(monoid: str, x: Array, sides: Sequence[Side]) -> Array:
    """The combination of each window's elements; padding and holes do not count."""
    wide = widened(x)
    fill = around(monoid, x.dtype).astype(wide.dtype)  # the greatest number of x's dtype may be a finite one
    out = spaced(wide, sides, fill)
    operation = monoids.binary(monoid, plain=not has_negative_zero(wide))
    with np.errstate(all="ignore"):
        for d, side in enumerate(sides):
            if side.size > 1 or side.stride > 1:
                out = _along(operation, out, d, side)
    return np.asarray(out, x.dtype, order="C")


def _along(operation: monoids.Binary, x: Array, d: int, side: Side) -> Array:
    count = max((x.shape[d] - (side.size - 1) * side.window_dilation - 1) // side.stride + 1, 0)
    lead = (slice(None),) * d
    if side.size >= _DOUBLING * side.stride and count:
        return _doubled(operation, x, lead, d, side)[(*lead, slice(None, None, side.stride))]
    out: Array | None = None
    for k in range(side.size):
        first = k * side.window_dilation
        part = x[(*lead, slice(first, first + (count - 1) * side.stride + 1, side.stride) if count else slice(0, 0))]
        if out is None:
            out = part
        elif k == 1:
            out = np.asarray(operation(out, part))
        else:
            operation(out, part, out=out)
    assert out is not None
    return out


def _doubled(operation: monoids.Binary, x: Array, lead: tuple[slice, ...], d: int, side: Side) -> Array:
    """Every window, at stride 1, from windows of 1, 2, 4, ... elements: the binary digits of its size."""
    step, count = side.window_dilation, x.shape[d] - (side.size - 1) * side.window_dilation
    power, width, covered = x, 1, 0
    out: Array | None = None
    while True:
        if side.size & width:
            part = power[(*lead, slice(covered * step, covered * step + count))]
            out = part if out is None else np.asarray(operation(out, part))
            covered += width
        if covered == side.size:
            assert out is not None
            return out
        power = np.asarray(
            operation(power[(*lead, slice(None, -width * step))], power[(*lead, slice(width * step, None))])
        )
        width *= 2


Binary = Callable[[Array, Array], Array]


def select_and_scatter(
    x: Array,
    source: Array,
    sides: Sequence[Side],
    select: Binary,
    scatter: Binary,
    start: Any,
    eligible: Array | None,
    live: Array | None = None,
    neutral: Array | None = None,
) -> Array:
    """An array like `x` that holds `start`, and at the element that each window selects the window's source, scattered.

    `select(a, b)` tells where a, met earlier in row-major order, is kept and not b. Padding is never selected, nor are
    elements that are not `eligible`; windows that are not `live` select none. Scattering `neutral` changes nothing.
    """
    padded = spaced(x, sides, np.zeros((), x.dtype))
    if eligible is None and padded is not x and any(s.low > 0 or s.high > 0 for s in sides):
        eligible = np.ones(x.shape, np.bool_)
    valid = None if eligible is None else spaced(eligible, sides, False)
    chosen = _chosen(padded, valid, sides, select)
    if live is not None:
        chosen = np.where(live, chosen, chosen.dtype.type(-1))
    out = np.full(padded.shape, start, source.dtype)
    for t, index in enumerate(np.ndindex(*(s.size for s in sides))):
        place = tap(out, sides, index)
        if neutral is None:
            np.copyto(place, scatter(place, source), where=chosen == t)
        else:
            place[...] = scatter(place, np.where(chosen == t, source, neutral))
    return _unspaced(out, sides, start)


def _chosen(x: Array, valid: Array | None, sides: Sequence[Side], select: Binary) -> Array:
    """The number of the tap that each window selects; -1 for none."""
    best = chosen = None
    count = prod(s.size for s in sides)
    for t, index in enumerate(np.ndindex(*(s.size for s in sides))):
        value = tap(x, sides, index)
        if best is None or chosen is None:
            best, chosen = value.copy(), np.zeros(value.shape, np.int32 if count > 127 else np.int8)
            if valid is not None:
                chosen -= ~tap(valid, sides, index)
            continue
        better = ~select(best, value)
        if valid is not None:
            better = (better | (chosen < 0)) & tap(valid, sides, index)
        best = np.where(better, value, best)
        chosen = np.where(better, chosen.dtype.type(t), chosen)
    assert chosen is not None
    return chosen


def _unspaced(x: Array, sides: Sequence[Side], start: Any) -> Array:
    """The elements of a spaced array that are not padding; `start` for those that negative padding had cut off."""
    if all(s.low == s.high == 0 for s in sides):
        return x
    low, high = [-s.low for s in sides], [-s.high for s in sides]
    return slicing.pad(x, np.asarray(start, x.dtype), low, high, [0] * len(low))


def cumulative(monoid: str, x: Array, dim: int, reverse: bool) -> Array:
    """Each element combined with all before it along a dimension (with all behind it, if `reverse`)."""
    wide = widened(x)
    turn = (slice(None),) * dim + (slice(None, None, -1),) if reverse else ()
    out = monoids.accumulate(monoid, wide[turn], dim)[turn]
    return np.asarray(out, x.dtype, order="C")
