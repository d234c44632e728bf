"""Sorting along a dimension: by keys made integers, or by a comparison of whole arrays.

A key of 32 bits or fewer and the index beside it make one number of 64 bits, all of which differ: NumPy's fastest sort
is then a stable one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gspmd.kernels.finite import Array, is_float, is_integer, leads_with_sign, unsigned_bits

_UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_INDEX_MASK = np.uint64(0xFFFFFFFF)

# Groups by whose least elements a few candidates are found, for each of the k that are wanted; their sizes.
_GROUPS = 4
_SMALLEST_GROUP = 4
_LARGEST_GROUP = 32

Before = Callable[[list[Array], list[Array]], Array]


def order_codes(x: Array, total: bool, descending: bool = False) -> Array:
    """Unsigned integers ordered as the elements.

    `total`: floats in their total order (-NaN < -inf < -0 < 0 < inf < NaN); else zeros are equal, and NaN are equal and
    last.
    """
    codes = _codes(x, total)
    if descending:
        return np.invert(codes, out=None if np.may_share_memory(codes, x) else codes)
    return codes


def _codes(x: Array, total: bool) -> Array:
    if x.dtype == np.bool_:
        return x.view(np.uint8)
    if is_float(x.dtype):
        if not total:
            x = np.where(np.isnan(x), np.array(np.nan, x.dtype), np.where(x == 0, x.dtype.type(0), x))
        if not leads_with_sign(x.dtype):
            x = x.astype(np.float32)
        bits = unsigned_bits(np.ascontiguousarray(x)).reshape(x.shape)
        # Of negative numbers all bits are turned over, of the others the sign alone.
        signed, last = bits.view(f"i{bits.dtype.itemsize}"), 8 * bits.dtype.itemsize - 1
        turned = (signed >> last).view(bits.dtype)
        turned |= bits.dtype.type(1 << last)
        turned ^= bits
        return turned
    if is_integer(x.dtype) and x.dtype.kind == "V":
        x = x.astype(np.int8)
    bits = x.view(_UNSIGNED[x.dtype.itemsize])
    return bits if x.dtype.kind == "u" else bits ^ bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))


def from_codes(codes: Array, like: Array, descending: bool) -> Array:
    """The elements that have these total-order codes."""
    bits = ~codes if descending else codes
    top = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    if is_float(like.dtype):
        bits = np.where(bits & top, bits ^ top, ~bits)
    elif like.dtype.kind == "i":
        bits = bits ^ top
    return bits.view(like.dtype)


def plain(x: Array) -> bool:
    """Whether the order of the elements is their total order: equal ones are the same in every bit."""
    if not is_float(x.dtype):
        return x.dtype.kind in "biu"
    with np.errstate(all="ignore"):
        return not (np.isnan(x) | ((x == 0) & np.signbit(x))).any()


def argsort(codes: Sequence[Array], dim: int) -> Array:
    """The stable order along a dimension, as int64, by the first codes, of equal ones by the second, and so on."""
    first = codes[0]
    if len(codes) > 1:
        return np.lexsort(tuple(reversed(codes)), axis=dim)
    length = first.shape[dim]
    if first.dtype.itemsize > 4 or length >= 1 << 32:
        return np.argsort(first, axis=dim, kind="stable")
    return (np.sort(_tagged(first, dim), axis=dim) & _INDEX_MASK).astype(np.int64)


def _tagged(codes: Array, dim: int) -> Array:
    """Each code above its index along the dimension."""
    line = [-1 if d == dim else 1 for d in range(codes.ndim)]
    return codes.astype(np.uint64) << np.uint64(32) | np.arange(codes.shape[dim], dtype=np.uint64).reshape(line)


def top_k(x: Array, k: int) -> tuple[Array, Array]:
    """The k largest along the last dimension in the total order and their places as i32, of equal ones the first."""
    codes = order_codes(x, total=True, descending=True)
    if k == 0 or x.size == 0 or codes.dtype.itemsize > 4:
        order = argsort([codes], codes.ndim - 1)[..., :k]
    else:
        tagged = _candidates(codes, k)
        if k < tagged.shape[-1]:
            tagged = np.partition(tagged, k - 1, axis=-1)[..., :k]
        order = (np.sort(tagged, axis=-1) & _INDEX_MASK).astype(np.int64)
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int32)


def _candidates(codes: Array, k: int) -> Array:
    """Codes above their indices, along the last dimension, with the k least among them.

    Of the least codes of many groups of elements, the k-th is one that at least k elements do not exceed: where k is
    small, few elements are left to look at.
    """
    n = codes.shape[-1]
    size = min(n // (_GROUPS * k), _LARGEST_GROUP)
    if size < _SMALLEST_GROUP:
        return _tagged(codes, codes.ndim - 1)
    rows = codes.reshape(-1, n)
    least = rows[:, : n // size * size].reshape(len(rows), size, n // size).min(axis=1)
    limit = np.partition(least, k - 1, axis=-1)[:, k - 1 : k]
    flat = np.flatnonzero(rows <= limit)
    row, place = np.divmod(flat, n)
    counts = np.bincount(row, minlength=len(rows))
    found = np.full((len(rows), counts.max()), ~np.uint64(0))
    column = np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts)
    found[row, column] = rows.reshape(-1)[flat].astype(np.uint64) << np.uint64(32) | place.astype(np.uint64)
    return found.reshape(*codes.shape[:-1], -1)


# -- by comparison ---------------------------------------------------------------------------------------------------


def _comparators(length: int) -> Iterator[tuple[Array, Array]]:
    """Batcher's odd-even merge network: rounds of disjoint pairs of places, the lower first."""
    places = np.arange(length)
    p = 1
    while p < length:
        k = p
        while k >= 1:
            low = places[: max(length - k, 0)]
            shifted = low - k % p
            low = low[(shifted >= 0) & (shifted % (2 * k) < k) & (low // (2 * p) == (low + k) // (2 * p))]
            yield low, low + k
            k //= 2
        p *= 2


def network_order(arrays: Sequence[Array], before: Before, shape: Sequence[int]) -> Array:
    """The stable order along the first dimension, by a comparison of arrays of rows; in log2(n)^2 / 2 rounds."""
    length = shape[0]
    line = [-1, *([1] * (len(shape) - 1))]
    order = np.array(np.broadcast_to(np.arange(length).reshape(line), shape))
    held = [np.array(x) for x in arrays]
    for low, high in _comparators(length):
        if not low.size:
            continue
        left, right = [x[low] for x in held], [x[high] for x in held]
        tied = order[high] < order[low]
        wrong = before(right, left)
        if tied.any():
            wrong = wrong | (tied & ~before(left, right))
        for x, a, b in zip((*held, order), (*left, order[low]), (*right, order[high]), strict=True):
            x[low], x[high] = np.where(wrong, b, a), np.where(wrong, a, b)
    return order
