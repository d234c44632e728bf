"""Convolution through BLAS: the windows become the rows of a matrix (im2col), block by block.

Whatever the dimension numbers, the work is done on `x[batch, space.., group, in]` and `w[group, taps.., in, out]`. A
block of rows is a copy of a strided view, small enough to stay in the cache until it is multiplied. Depth-wise
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
    x = _grouped_rows(x.transpose([lhs[0], *lhs[2:], lhs[1]]), feature_groups, batch_groups)
    w = _grouped_taps(w.transpose([*rhs[2:], rhs[1], rhs[0]]), feature_groups * batch_groups)
    turned = tuple(1 + i for i, s in enumerate(sides) if s.reversed)
    w = np.flip(w, turned) if turned else w
    x = spaced(x, [_Plain(), *sides, _Plain(), _Plain()], np.zeros((), x.dtype))
    y = _multiply(x, w, sides, dtype)
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
    if prod(taps) == 1 and all(s.stride == 1 for s in sides):
        return _product(x, w[(slice(None), *(0,) * len(taps))], dtype)
    y = np.empty(shape, dtype)
    depth = prod(taps) * features
    kernel = w.reshape([groups, depth, outs])
    view = _windows(x, counts, sides)
    for rows in _blocks(shape[:1] + counts, groups * depth):
        part = view[rows]
        head = part.shape[: 1 + len(counts)]
        y[rows] = _product(part.reshape([*head, groups, depth]), kernel, dtype)
    return y


def _product(rows: Array, kernel: Array, dtype: DType) -> Array:
    """`[.., group, in] x [group, in, out] -> [.., group, out]`."""
    *head, groups, depth = rows.shape
    flat = rows.reshape([prod(head), groups, depth])
    if groups == 1:
        y = dot.dot_general(flat[:, 0], kernel[0], ((), ()), ((1,), (0,)), dtype)
        return y.reshape([*head, 1, kernel.shape[-1]])
    y = dot.dot_general(flat, kernel, ((1,), (0,)), ((2,), (1,)), dtype)
    return np.moveaxis(y, 0, 1).reshape([*head, groups, kernel.shape[-1]])


def _windows(x: Array, counts: Sequence[int], sides: Sequence[Side]) -> Array:
    """`[batch, space.., group, taps.., in]`: a view that repeats elements that several windows share."""
    batch, *space, group, feature = x.strides
    shape = [x.shape[0], *counts, x.shape[-2], *(s.size for s in sides), x.shape[-1]]
    moves = [n * s.stride for n, s in zip(space, sides, strict=True)]
    steps = [n * s.window_dilation for n, s in zip(space, sides, strict=True)]
    strides = [batch, *moves, group, *steps, feature]
    return cast(Array, cast(Any, as_strided)(x, shape, strides, writeable=False))


def _blocks(rows: Sequence[int], width: int) -> Iterator[tuple[slice, ...]]:
    """Slices of the leading dimensions such that each block of rows has about as many elements as fit the cache."""
    room = max(_BLOCK // max(width * prod(rows[1:]), 1), 1)
    inner = [slice(None)]
    if room == 1 and len(rows) > 1:
        lines = max(_BLOCK // max(width * prod(rows[2:]), 1), 1)
        inner = [slice(a, a + lines) for a in range(0, rows[1], lines)]
    for a in range(0, rows[0], room):
        for b in inner:
            yield (slice(a, a + room), b) if len(rows) > 1 else (slice(a, a + room),)


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
