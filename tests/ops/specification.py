"""The data-moving ops as StableHLO's specification states them: one element at a time, slow, independent."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def cells(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, shape))


def slice_(x: Any, start: Any, limit: Any, stride: Any) -> Any:
    shape = [len(range(a, b, s)) for a, b, s in zip(start, limit, stride, strict=True)]
    out = np.empty(shape, x.dtype)
    for o in cells(shape):
        out[o] = x[tuple(a + s * i for a, s, i in zip(start, stride, o, strict=True))]
    return out


def pad(x: Any, fill: Any, low: Any, high: Any, interior: Any) -> Any:
    shape = [lo + hi + n + max(n - 1, 0) * g for lo, hi, g, n in zip(low, high, interior, x.shape, strict=True)]
    out = np.empty(shape, x.dtype)
    out[...] = fill
    for i in cells(x.shape):
        o = tuple(lo + k * (g + 1) for lo, k, g in zip(low, i, interior, strict=True))
        if all(0 <= k < n for k, n in zip(o, shape, strict=True)):
            out[o] = x[i]
    return out


def concatenate(xs: Sequence[Any], dimension: int) -> Any:
    shape = list(xs[0].shape)
    shape[dimension] = sum(x.shape[dimension] for x in xs)
    out, at = np.empty(shape, xs[0].dtype), 0
    for x in xs:
        for i in cells(x.shape):
            out[tuple(k + at * (d == dimension) for d, k in enumerate(i))] = x[i]
        at += x.shape[dimension]
    return out


def reverse(x: Any, dims: Sequence[int]) -> Any:
    out = np.empty(x.shape, x.dtype)
    for i in cells(x.shape):
        out[i] = x[tuple(n - 1 - k if d in dims else k for d, (k, n) in enumerate(zip(i, x.shape, strict=True)))]
    return out


def clamped(starts: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [max(0, min(int(s), n - w)) for s, n, w in zip(starts, shape, sizes, strict=True)]


def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    at = clamped(starts, x.shape, sizes)
    return slice_(x, at, [a + w for a, w in zip(at, sizes, strict=True)], [1] * x.ndim)


def dynamic_update_slice(x: Any, update: Any, starts: Sequence[Any]) -> Any:
    out, at = np.array(x), clamped(starts, x.shape, update.shape)
    for i in cells(update.shape):
        out[tuple(a + k for a, k in zip(at, i, strict=True))] = np.asarray(update)[i]
    return out


def start_index(indices: Any, batch: tuple[int, ...], index_vector_dim: int) -> list[int]:
    if index_vector_dim == indices.ndim:
        return [int(indices[batch])]
    count = indices.shape[index_vector_dim]
    return [int(indices[(*batch[:index_vector_dim], k, *batch[index_vector_dim:])]) for k in range(count)]


def batching_index(batch: tuple[int, ...], dims: Sequence[int], index_vector_dim: int) -> list[int]:
    return [batch[d - (d > index_vector_dim)] for d in dims]


def gather(x: Any, indices: Any, a: Any) -> Any:
    """`a` has the attributes' fields."""
    batch_shape = [n for d, n in enumerate(indices.shape) if d != a.index_vector_dim]
    rank = len(batch_shape) + len(a.offset_dims)
    kept = [d for d in range(x.ndim) if d not in a.collapsed_slice_dims + a.operand_batching_dims]
    batch_at = [d for d in range(rank) if d not in a.offset_dims]
    shape = [0] * rank
    for d, n in zip(batch_at, batch_shape, strict=True):
        shape[d] = n
    for d, k in zip(a.offset_dims, kept, strict=True):
        shape[d] = a.slice_sizes[k]
    out = np.empty(shape, x.dtype)
    for o in cells(shape):
        batch = tuple(o[d] for d in batch_at)
        place = [0] * x.ndim
        for d, s in zip(a.start_index_map, start_index(indices, batch, a.index_vector_dim), strict=True):
            place[d] = max(0, min(s, x.shape[d] - a.slice_sizes[d]))
        for d, s in zip(
            a.operand_batching_dims, batching_index(batch, a.indices_batching_dims, a.index_vector_dim), strict=True
        ):
            place[d] = s
        for d, k in zip(a.offset_dims, kept, strict=True):
            place[k] += o[d]
        out[o] = x[tuple(place)]
    return out


def scatter(x: Any, indices: Any, updates: Any, a: Any, fold: Any) -> Any:
    """Windows that are not wholly inside are dropped; updates in row-major order of their scatter dims."""
    out = np.array(x)
    kept = [d for d in range(x.ndim) if d not in a.inserted_window_dims + a.input_batching_dims]
    batch_at = [d for d in range(updates.ndim) if d not in a.update_window_dims]
    sizes = [1] * x.ndim
    for w, d in zip(a.update_window_dims, kept, strict=True):
        sizes[d] = updates.shape[w]
    for batch in cells([updates.shape[d] for d in batch_at]):
        place = [0] * x.ndim
        starts = start_index(indices, batch, a.index_vector_dim)
        for d, s in zip(a.scatter_dims_to_operand_dims, starts, strict=True):
            place[d] = s
        for d, s in zip(
            a.input_batching_dims,
            batching_index(batch, a.scatter_indices_batching_dims, a.index_vector_dim),
            strict=True,
        ):
            place[d] = s
        if any(not 0 <= p <= n - w for p, n, w in zip(place, x.shape, sizes, strict=True)):
            continue
        for window in cells([updates.shape[w] for w in a.update_window_dims]):
            at = list(place)
            for d, k in zip(kept, window, strict=True):
                at[d] += k
            u = [0] * updates.ndim
            for d, k in zip(batch_at, batch, strict=True):
                u[d] = k
            for d, k in zip(a.update_window_dims, window, strict=True):
                u[d] = k
            out[tuple(at)] = fold(out[tuple(at)], updates[tuple(u)])
    return out
