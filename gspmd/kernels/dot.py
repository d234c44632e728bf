"""The general dot product through BLAS, with as few copies of the operands as their layout allows.

Operands become `[batch.., m, k]` and `[batch.., k, n]` views; `np.matmul` hands transposed and strided matrices to BLAS
as they are, if one of their two strides is one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gspmd.kernels.finite import F32, F64, Array, DType, is_integer, is_narrow

Dims = Sequence[int]


def dot_general(x: Array, y: Array, batch: tuple[Dims, Dims], contract: tuple[Dims, Dims], dtype: DType) -> Array:
    """The product summed over the contracted dims: batch dims, x's other dims, y's other dims; in `dtype`.

    Narrow floats accumulate in f32; integers wrap; of bools it is the or of ands.
    """
    x_free = [d for d in range(x.ndim) if d not in batch[0] and d not in contract[0]]
    y_free = [d for d in range(y.ndim) if d not in batch[1] and d not in contract[1]]
    shape = [x.shape[d] for d in batch[0]] + [x.shape[d] for d in x_free] + [y.shape[d] for d in y_free]
    compute = compute_dtype(x.dtype, y.dtype, dtype)
    x, y = x.astype(compute, copy=False), y.astype(compute, copy=False)
    left, right = _matrices(x, y, batch, contract, x_free, y_free)
    with np.errstate(all="ignore"):
        return finished(np.matmul(_for_blas(left), _for_blas(right)).reshape(shape), dtype)


def finished(total: Array, dtype: DType) -> Array:
    """Sums of products as numbers of the result's dtype."""
    if dtype == np.bool_:
        return total != 0
    if total.dtype == F64 and is_integer(dtype):
        return total.astype(np.int64).astype(dtype)
    return total.astype(dtype, copy=False)


def compute_dtype(x: DType, y: DType, dtype: DType) -> DType:
    """What to multiply in. Products of 16-bit integers sum exactly in f64, which BLAS knows, unlike integers."""
    if dtype == np.bool_:
        return F32
    if is_integer(dtype):
        return F64 if x.itemsize <= 2 and y.itemsize <= 2 else dtype
    return F32 if is_narrow(dtype) else dtype


def _matrices(
    x: Array, y: Array, batch: tuple[Dims, Dims], contract: tuple[Dims, Dims], x_free: Dims, y_free: Dims
) -> tuple[Array, Array]:
    """The operands as stacks of matrices; the contracted pairs are put in the order that copies least."""
    pairs = list(zip(contract[0], contract[1], strict=True))
    best: tuple[Array, Array] | None = None
    for order in (sorted(pairs), sorted(pairs, key=lambda p: p[1])) if len(pairs) > 1 else (pairs,):
        left = x.transpose([*batch[0], *x_free, *(a for a, _ in order)])
        right = y.transpose([*batch[1], *(b for _, b in order), *y_free])
        depth = prod(x.shape[a] for a, _ in order)
        heads = [x.shape[d] for d in batch[0]]
        left_shape = [*heads, prod(x.shape[d] for d in x_free), depth]
        right_shape = [*heads, depth, prod(y.shape[d] for d in y_free)]
        best = left.reshape(left_shape), right.reshape(right_shape)
        if np.may_share_memory(best[0], x) and np.may_share_memory(best[1], y):
            break
    assert best is not None
    return best


def _for_blas(x: Array) -> Array:
    """The stack itself if BLAS can read it (one stride an element, the other spanning a row), else a copy."""
    (rows, columns), (down, right) = x.shape[-2:], x.strides[-2:]
    item = x.itemsize
    if right == item and (rows == 1 or (down % item == 0 and down >= columns * item)):
        return x
    if down == item and (columns == 1 or (right % item == 0 and right >= rows * item)):
        return x
    return np.ascontiguousarray(x)
