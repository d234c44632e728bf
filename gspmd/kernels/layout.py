"""Functions that only rearrange: they return views of their operand wherever NumPy can, possibly read-only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gspmd.kernels.finite import Array, DType


def broadcast_in_dim(x: Array, shape: Sequence[int], dims: Sequence[int]) -> Array:
    """The operand repeated to `shape`; its dim i lies along result dim `dims[i]`."""
    order = sorted(range(x.ndim), key=lambda i: dims[i])
    along = [1] * len(shape)
    for i in order:
        along[dims[i]] = x.shape[i]
    return np.broadcast_to(x.transpose(order).reshape(along), shape)


def iota(shape: Sequence[int], dtype: DType, dimension: int) -> Array:
    """The index along one dim, wrapped or rounded into the dtype."""
    line = np.arange(shape[dimension]).astype(dtype)
    along = [1] * len(shape)
    along[dimension] = shape[dimension]
    return np.broadcast_to(line.reshape(along), shape)
