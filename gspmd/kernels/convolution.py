"""Convolution through BLAS: the windows become the rows of a matrix (im2col), block by block.

Whatever the dimension numbers, the work is done on `x[batch, space.., group, in]` and `w[group, taps.., in, out]`. A
block of the matrix is a copy of a strided view, small enough to stay in the cache until it is multiplied. Depth-wise
convolutions, whose matrices would be vectors, sum their taps element-wise instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gspmd.kernels import dot
from gspmd.kernels.finite import Array, DType
from gspmd.kernels.window import Side, spaced, tap

# Elements of the matrix that is built at a time.
_BLOCK = 1 << 18
# With fewer rows a block is a part of the depth instead: thin matrices are slow.
_MANY_ROWS = 1024
# Element-wise sums of taps beat matrices of one column up to so many taps.
_FEW_TAPS = 128


@dataclass(frozen=True, slots=True)
class _Plain:
    """A dimension over which no window moves."""

    size: int = 1
    stride: int = 1
    base_dilation: int = 1
    window_dilation: int = 1
    low: int = 0
    high: int = 0
    reversed: bool = False


def convolution(
    x: Array,
    w: Array,
    sides: Sequence[Side],
    specs: tuple[Sequence[int], Sequence[int], Sequence[int]],
    feature_groups: int,
    batch_groups: int,
    dtype: DType,
) -> Array:
    """The convolution of `x` by the kernel `w`, one side a spatial dimension; in `dtype`, narrow floats summed in f32.

    The specs name each array's dimensions: x's batch, feature, spatial ones; w's output and input features, spatial
    ones; the result's batch, feature, spatial ones.
    """
    lhs, rhs, out = specs
    around: list[Side] = [_Plain()] * x.ndim
    for d, side in zip(lhs[2:], sides, strict=True):
        around[d] = side
    x = spaced(x, around, np.zeros((), x.dtype))
    x = _grouped_rows(x.transpose([lhs[0], *lhs[2:], lhs[1]]), feature_groups, batch_groups)
    w = _grouped_taps(w.transpose([*rhs[2:], rhs[1], rhs[0]]), feature_groups * batch_groups)
    turned = tuple(1 + i for i, s in enumerate(sides) if s.reversed)
    y = _multiply(x, np.flip(w, turned) if turned else w, sides, dtype)
    y = y.reshape([*y.shape[:-2], y.shape[-2] * y.shape[-1]])
    order = [0] * y.ndim
    for place, d in zip((out[0], *out[2:], out[1]), range(y.ndim), strict=True):
        order[place] = d
    return y.transpose(order)


def _grouped_rows(x: Array, feature_groups: int, batch_groups: int) -> Array:
    """`[batch, space.., feature]` as `[batch, space.., group, in]`; groups of the batch become groups of features."""
    n, *space, features = x.shape
    if batch_groups > 1:
        x = x.reshape([batch_groups, n // batch_groups, *space, features])
        return np.moveaxis(x, 0, -2)
    return x.reshape([n, *space, feature_groups, features // feature_groups])


def _grouped_taps(w: Array, groups: int) -> Array:
    """`[taps.., in, group*out]` as `[group, taps.., in, out]`."""
    *head, out = w.shape
    return np.moveaxis(w.reshape([*head, groups, out // groups]), -2, 0)


def _multiply(x: Array, w: Array, sides: Sequence[Side], dtype: DType) -> Array:
    """`y[batch, space.., group, out]` of a spaced x and a kernel the right way round."""
    groups, *taps, features, outs = w.shape
    counts = [
        max((n - (s.size - 1) * s.window_dilation - 1) // s.stride + 1, 0)
        for n, s in zip(x.shape[1:-2], sides, strict=True)
    ]
    shape = [x.shape[0], *counts, groups, outs]
    if 0 in shape or 0 in (*taps, features):
        return np.zeros(shape, dtype)
    if groups > 1 and features == 1 and prod(taps) <= _FEW_TAPS:
        return _depthwise(x, w, sides, dtype)
    return _by_matrices(_windows(x, counts, sides), w, dtype)


def _by_matrices(view: Array, w: Array, dtype: DType) -> Array:
    """Windows `[batch, space.., group, taps.., in]` times a kernel, as products of matrices of copied blocks.

    A block is copied in the order of its memory, so that what lies together stays together; rows and columns of the
    matrix follow from that.
    """
    groups, outs, rank = w.shape[0], w.shape[-1], w.ndim - 3
    rows = sorted(range(rank + 1), key=lambda d: -view.strides[d])
    depth = sorted(range(rank + 2, view.ndim), key=lambda d: -view.strides[d])
    heads, depths = [view.shape[d] for d in rows], [view.shape[d] for d in depth]
    columns_first = _innermost(view, rows) < _innermost(view, depth)
    order = [rank + 1, *depth, *rows] if columns_first else [rank + 1, *rows, *depth]
    view = view.transpose(order)
    kernel = w.transpose([0, *(d - rank - 1 for d in depth), rank + 2])
    compute = dot.compute_dtype(view.dtype, w.dtype, dtype)
    y = np.empty([groups, *heads, outs], dtype)
    by_rows = prod(heads) >= _MANY_ROWS
    total: Array | None = None
    for block in _blocks(heads, prod(depths)) if by_rows else _blocks(depths, prod(heads)):
        other = () if by_rows != columns_first else (slice(None),) * (len(depth) if by_rows else len(rows))
        part = view[(slice(None), *other, *block)]
        taken = kernel if by_rows else kernel[(slice(None), *block)]
        got = _product(part, taken.reshape([groups, -1, outs]), columns_first, compute)
        if by_rows:
            place = y[(slice(None), *block)]
            place[...] = dot.finished(got, dtype).reshape(place.shape)
        else:
            total = got if total is None else total + got
    if total is not None:
        y = dot.finished(total, dtype).reshape(y.shape)
    back = np.argsort([*rows, rank + 1])
    return np.moveaxis(y, 0, -2).transpose([*back, rank + 2])


def _innermost(view: Array, dims: Sequence[int]) -> tuple[int, int]:
    """How far apart neighbours along the innermost of some dimensions lie, and (less is better) how few there are."""
    return min(((view.strides[d], -view.shape[d]) for d in dims if view.shape[d] > 1), default=(1 << 60, 0))


def _product(part: Array, kernel: Array, columns_first: bool, dtype: DType) -> Array:
    """`[group, rows.., depth..] x [group, depth, out] -> [group, rows, out]`; the matrices may be transposed."""
    groups, depth, _ = kernel.shape
    count = part.size // (groups * depth)
    matrix = part.reshape([groups, depth, count] if columns_first else [groups, count, depth])
    inner = 1 if columns_first else 2
    if groups == 1:
        return dot.dot_general(matrix[0], kernel[0], ((), ()), ((inner - 1,), (0,)), dtype)[None]
    return dot.dot_general(matrix, kernel, ((0,), (0,)), ((inner,), (1,)), dtype)


def _windows(x: Array, counts: Sequence[int], sides: Sequence[Side]) -> Array:
    """`[batch, space.., group, taps.., in]`: a view that repeats elements that several windows share."""
    batch, *space, group, feature = x.strides
    shape = [x.shape[0], *counts, x.shape[-2], *(s.size for s in sides), x.shape[-1]]
    moves = [n * s.stride for n, s in zip(space, sides, strict=True)]
    steps = [n * s.window_dilation for n, s in zip(space, sides, strict=True)]
    strides = [batch, *moves, group, *steps, feature]
    bits = x.view(f"V{x.itemsize}")  # NumPy writes f8e5m2 as `<f1`, and cannot read that
    return cast(Array, cast(Any, as_strided)(bits, shape, strides, writeable=False)).view(x.dtype)


def _blocks(sizes: Sequence[int], width: int) -> Iterator[tuple[slice, ...]]:
    """Slices of the leading dimensions such that a block, `width` times its elements, fits the cache if possible."""
    at = 0
    while at + 1 < len(sizes) and width * prod(sizes[at + 1 :]) > _BLOCK:
        at += 1
    room = max(_BLOCK // max(width * prod(sizes[at + 1 :]), 1), 1)
    for index in np.ndindex(*sizes[:at]):
        for a in range(0, sizes[at], room):
            yield (*(slice(i, i + 1) for i in index), slice(a, a + room))


def _depthwise(x: Array, w: Array, sides: Sequence[Side], dtype: DType) -> Array:
    """One input feature a group: the taps one after the other, element by element."""
    compute = dot.compute_dtype(x.dtype, w.dtype, dtype)
    x, w = x.astype(compute, copy=False), w.astype(compute, copy=False)
    around = [_Plain(), *sides, _Plain(), _Plain()]
    upright = [_Plain(s.size, s.stride, 1, s.window_dilation) for s in sides]
    around[1:-2] = upright
    total: Array | None = None
    with np.errstate(all="ignore"):
        for index in np.ndindex(*(s.size for s in sides)):
            part = tap(x, around, (0, *index, 0, 0)) * w[(slice(None), *index, 0)]
            if total is None:
                total = part
            else:
                total += part
    assert total is not None
    return dot.finished(total, dtype)
