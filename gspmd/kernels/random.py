"""Counter-based random bits: every element is a function of a key and of its own place (Salmon et al. 2011).

Threefry-2x32-20 and Philox-4x32-10, laid out over an array as XLA lays them out, so that the bits are XLA's. A block of
an array can be made without the rest of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gspmd.kernels.finite import Array, DType

U32, U64 = np.uint32, np.uint64
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
# Elements that are mixed at a time: what a round touches stays in the cache.
_CHUNK = 1 << 14


def threefry2x32(k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """The pair (x0, x1) of u32 arrays mixed under the key (k0, k1), scalars or arrays of the same shape."""
    keys = [np.broadcast_to(k, x0.shape).reshape(-1) if k.ndim else k for k in (k0, k1)]
    y0, y1 = (np.array(x, U32, order="C").reshape(-1) for x in (x0, x1))
    with np.errstate(over="ignore"):
        for start in range(0, y0.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            _mix(y0[part], y1[part], *(k[part] if k.ndim else k for k in keys))
    return y0.reshape(x0.shape), y1.reshape(x0.shape)


def _mix(x0: Array, x1: Array, k0: Array, k1: Array) -> None:
    """Twenty rounds, in place."""
    schedule = (k0, k1, k0 ^ k1 ^ U32(0x1BD11BDA))
    x0 += schedule[0]
    x1 += schedule[1]
    moved = np.empty_like(x1)
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 += x1
            np.right_shift(x1, U32(32 - r), out=moved)
            np.left_shift(x1, U32(r), out=x1)
            x1 |= moved
            x1 ^= x0
        x0 += schedule[(i + 1) % 3]
        x1 += schedule[(i + 2) % 3] + U32(i + 1)


def philox4x32(key: tuple[Any, Any], counter: Sequence[Array]) -> list[Array]:
    """Four u32 arrays mixed under a key of two u32 numbers, ten rounds."""
    s0, s1, s2, s3 = counter
    k0, k1 = (int(k) for k in key)
    for _ in range(10):
        wide0, wide1 = s0.astype(U64) * U64(0xD2511F53), s2.astype(U64) * U64(0xCD9E8D57)
        s0, s2 = _high(wide1) ^ s1 ^ U32(k0), _high(wide0) ^ s3 ^ U32(k1)
        s1, s3 = wide1.astype(U32), wide0.astype(U32)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [s0, s1, s2, s3]


def _high(x: Array) -> Array:
    return (x >> U64(32)).astype(U32)


def _halves(x: Any) -> tuple[Any, Any]:
    """The low and the high word of u64 numbers."""
    wide = np.asarray(x, U64)
    return wide.astype(U32), _high(wide)


# -- laid out over an array ------------------------------------------------------------------------------------------


def random_block(
    philox: bool, dtype: DType, state: Array, shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int]
) -> tuple[Array, Array]:
    """The state after drawing an array of random bits, and the block of it that starts at `starts`.

    The state is u64[2], a key and a counter, of Philox also u64[3] with a counter of 128 bits. Cells of the block
    beyond the array hold anything.
    """
    wide = dtype.itemsize == 8
    if philox:
        bits = _philox_block(wide, state, shape, starts, sizes)
        used = -(-prod(shape) // (2 if wide else 4))
    elif wide:
        pair = threefry2x32(*_halves(state[0]), *_halves(_places(shape, starts, sizes) + state[1]))
        bits = pair[0] | pair[1].astype(U64) << U64(32)
        used = prod(shape)
    else:
        bits, used = _threefry_block(state, shape, starts, sizes)
    return _advanced(state, used), bits.astype(dtype, copy=False)


def _advanced(state: Array, used: int) -> Array:
    """The state with its counter moved on, carrying into the third word if there is one."""
    counter = sum(int(word) << (64 * i) for i, word in enumerate(state[1:])) + used
    words = [(counter >> (64 * i)) & 0xFFFFFFFFFFFFFFFF for i in range(len(state) - 1)]
    return np.array([int(state[0]), *words], U64)


def _places(shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int]) -> Array:
    """The row-major place in the array of every cell of a block, as u64."""
    out = np.zeros((1,) * len(shape), np.int64)
    stride = 1
    for d in reversed(range(len(shape))):
        line = (starts[d] + np.arange(sizes[d], dtype=np.int64)) * stride
        out = out + line.reshape([-1 if e == d else 1 for e in range(len(shape))])
        stride *= shape[d]
    return out.astype(U64)


def _threefry_block(
    state: Array, shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int]
) -> tuple[Array, int]:
    """Bits of 32: the two words of a pair are neighbours along the first even dim, else along the longest."""
    if not shape:
        bits, used = _threefry_block(state, (1,), (0,), (1,))
        return bits.reshape(()), used
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    d = even[0] if even else max(range(len(shape)), key=lambda e: shape[e])
    first, end = starts[d] // 2, -(-(starts[d] + sizes[d]) // 2)

    def put(values: Sequence[int], n: int) -> list[int]:
        return [n if e == d else v for e, v in enumerate(values)]

    half = put(shape, -(-shape[d] // 2))
    counters = _places(half, put(starts, first), put(sizes, end - first)) + state[1]
    pair = threefry2x32(*_halves(state[0]), *_halves(counters))
    both = np.stack(pair, axis=d + 1).reshape(put(sizes, 2 * (end - first)))
    skipped = starts[d] - 2 * first
    return both[(slice(None),) * d + (slice(skipped, skipped + sizes[d]),)], prod(half)


def _philox_block(wide: bool, state: Array, shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int]) -> Array:
    """Every counter gives four words in a row, of which two make an element of 64 bits; run by run of neighbours."""
    if 0 in sizes:
        return np.zeros(sizes, U64 if wide else U32)
    inner = len(shape)
    while inner and sizes[inner - 1] == shape[inner - 1]:
        inner -= 1
    inner = max(inner - 1, 0)
    length, per = prod(sizes[inner:]), 2 if wide else 4
    heads = [*sizes[:inner], *(1 for _ in sizes[inner:])]
    begins = _places(shape, starts, heads).reshape(-1)
    count = -(-length // per) + 1
    counters = begins[:, None] // U64(per) + np.arange(count, dtype=U64)
    words = np.stack(philox4x32(_halves(state[0]), _counter(state, counters)), axis=-1)
    values = np.ascontiguousarray(words).view(U64) if wide else words
    rows = values.reshape(len(begins), -1)
    skipped = (begins % U64(per)).astype(np.int64)
    if not skipped.any():
        return np.ascontiguousarray(rows[:, :length]).reshape(tuple(sizes))
    return np.take_along_axis(rows, skipped[:, None] + np.arange(length), axis=1).reshape(tuple(sizes))


def _counter(state: Array, steps: Array) -> list[Array]:
    """The 128-bit counter of a state moved on by each of the steps, as four words, low to high.

    A state of two words has its key as the high half, as in XLA.
    """
    low = steps + state[1]
    high = (low < steps).astype(U64) + (state[2] if len(state) == 3 else state[0])
    return [*_halves(low), *_halves(high)]
