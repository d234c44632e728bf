"""Batch normalisation over all dimensions but one, in f32 at least."""

from __future__ import annotations

import numpy as np

from gspmd.kernels.finite import Array, widened


def _wide(arrays: tuple[Array, ...], feature: int) -> tuple[list[Array], tuple[int, ...]]:
    """The arrays in f32 or more, vectors laid along the feature dimension; and the other dimensions."""
    rank = arrays[0].ndim
    line = tuple(-1 if d == feature else 1 for d in range(rank))
    wide = [widened(a) if a.ndim == rank else widened(a).reshape(line) for a in arrays]
    return wide, tuple(d for d in range(rank) if d != feature)


def inference(
    x: Array, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float, feature: int
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, the vectors along the feature dimension."""
    with np.errstate(all="ignore"):
        (wide, s, o, m, v), _ = _wide((x, scale, offset, mean, variance), feature)
        return ((wide - m) / np.sqrt(v + wide.dtype.type(epsilon)) * s + o).astype(x.dtype, copy=False)


def training(x: Array, scale: Array, offset: Array, epsilon: float, feature: int) -> tuple[Array, Array, Array]:
    """The operand normalised by its own mean and variance over the other dimensions; these too."""
    with np.errstate(all="ignore"):
        (wide, s, o), dims = _wide((x, scale, offset), feature)
        count = _others(wide, feature)  # 0 / 0 is NaN without NumPy's warning about means of nothing
        mean = wide.sum(axis=dims, keepdims=True) / count
        centred = wide - mean
        variance = np.square(centred).sum(axis=dims, keepdims=True) / count
        out = centred / np.sqrt(variance + wide.dtype.type(epsilon)) * s + o
        found = (out, mean.reshape(-1), variance.reshape(-1))
    return _as(x, *found)


def gradient(
    x: Array, scale: Array, mean: Array, variance: Array, ct: Array, epsilon: float, feature: int
) -> tuple[Array, Array, Array]:
    """The cotangents of operand, scale and offset of `training`, given the one of its first result."""
    with np.errstate(all="ignore"):
        (wide, s, m, v, g), dims = _wide((x, scale, mean, variance, ct), feature)
        spread = v + wide.dtype.type(epsilon)
        centred = wide - m
        count = max(_others(wide, feature), wide.dtype.type(1))
        total = g.sum(axis=dims, keepdims=True)
        along = (g * centred).sum(axis=dims, keepdims=True)
        root = 1 / np.sqrt(spread)
        back = s * root / count * (count * g - total - centred * along / spread)
        found = (back, (along * root).reshape(-1), total.reshape(-1))
    return _as(x, *found)


def _others(wide: Array, feature: int) -> np.generic:
    """The number of elements of each feature."""
    return wide.dtype.type(wide.size // max(wide.shape[feature], 1))


def _as(like: Array, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    return a.astype(like.dtype, copy=False), b.astype(like.dtype, copy=False), c.astype(like.dtype, copy=False)
