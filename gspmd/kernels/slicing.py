"""Parts of arrays and arrays from parts: slice, pad, concatenate, reverse, dynamic slices (StableHLO's meaning).

Arrays in, arrays out, no IR. Results are C-contiguous; one may share memory with an operand, and nobody writes to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def slice_(x: Array, start: Sequence[int], limit: Sequence[int], stride: Sequence[int]) -> Array:
    """Elements start, start + stride, ... below limit, in each dimension."""
    picked = x[tuple(slice(a, b, s) for a, b, s in zip(start, limit, stride, strict=True))]
    return np.asarray(picked, order="C")


def pad(x: Array, fill: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """`x` with `interior` fills between neighbours and `low`/`high` of them at the ends; negative ends cut off."""
    target: list[slice] = []
    source: list[slice] = []
    shape: list[int] = []
    for n, lo, hi, gap in zip(x.shape, low, high, interior, strict=True):
        step = gap + 1
        size = lo + hi + n + max(n - 1, 0) * gap
        first = -(min(lo, 0) // step)  # the first element at a position >= 0
        last = min(n, -((lo - size) // step))  # one behind the last element at a position < size
        place = lo + first * step
        count = max(last - first, 0)
        shape.append(size)
        source.append(slice(first, first + count))
        target.append(slice(place, place + count * step, step) if count else slice(0, 0))
    out = np.full(shape, fill, dtype=x.dtype)
    out[tuple(target)] = x[tuple(source)]
    return out


def concatenate(xs: Sequence[Array], dimension: int) -> Array:
    """The arrays one behind the other along a dimension."""
    return np.concatenate(xs, axis=dimension)


def reverse(x: Array, dims: Sequence[int]) -> Array:
    """The elements of each of the dimensions in the opposite order."""
    return np.asarray(np.flip(x, tuple(dims)), order="C")


def clamp_starts(shape: Sequence[int], starts: Sequence[Any], sizes: Sequence[int]) -> tuple[int, ...]:
    """Start indices moved so that a block of `sizes` lies inside an array of `shape`."""
    return tuple(min(max(int(s), 0), n - w) for n, s, w in zip(shape, starts, sizes, strict=True))


def _block(shape: Sequence[int], starts: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(a, a + w) for a, w in zip(clamp_starts(shape, starts, sizes), sizes, strict=True))


def dynamic_slice(x: Array, starts: Sequence[Any], sizes: Sequence[int]) -> Array:
    """The block of `sizes` at `starts`, which are clamped so that it lies inside."""
    return np.asarray(x[_block(x.shape, starts, sizes)], order="C")


def dynamic_update_slice(x: Array, update: Array, starts: Sequence[Any]) -> Array:
    """`x` with the block at `starts`, which are clamped so that it lies inside, replaced by `update`."""
    out = np.array(x, order="C")
    out[_block(x.shape, starts, update.shape)] = update
    return out
