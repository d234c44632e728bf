"""Arrays for cases: ordinary numbers mixed with all that is special about a dtype."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from gspmd.ir.dtypes import DTYPES, dtype_kind
from tests.xla.sweep.cases import PARTS, Array, Shape

Fill = Callable[[np.random.Generator, str, Shape], Array]


@lru_cache(maxsize=64)
def special(dtype: str) -> Array:
    """The special values of a dtype: zeros, ones, extremes, infinities, NaN, subnormal numbers, ties of rounding."""
    held = DTYPES[dtype]
    kind = dtype_kind(held)
    if kind == "bool":
        return np.array([False, True])
    if kind == "complex":
        part = special(PARTS[dtype])
        part = part[np.isfinite(part)]
        re, im = (x.reshape(-1) for x in np.meshgrid(part, part))
        out: Any = np.empty(re.size, held)
        out.real, out.imag = re, im
        return out
    if kind in ("int", "uint"):
        info = ml_dtypes.iinfo(held)
        low, high, bits = int(info.min), int(info.max), int(info.bits)
        near = {0, 1, 2, 3, high, high - 1, high // 2, bits - 1, bits, bits + 1, low, low + 1, -1, -2, -3, -bits}
        wide_ = np.array(sorted(n for n in near if low <= n <= high), np.uint64 if kind == "uint" else np.int64)
        return wide_.astype(held)
    info = ml_dtypes.finfo(held)  # type: ignore[call-overload]
    tiny, least, top, eps = (float(x) for x in (info.tiny, info.smallest_subnormal, info.max, info.eps))
    line = [0.0, 1.0, np.inf, np.nan, tiny, top, 0.5, 1.5, 2.5, least, 0.75 * tiny, 1 + eps, 1 - eps / 2, 3.0]
    with np.errstate(all="ignore"):
        both = [s * x for x in line for s in (1, -1)]
        return np.array(both).astype(held)


def ordinary(rng: np.random.Generator, dtype: str, shape: Shape, scale: float = 2.0) -> Array:
    """Numbers around zero."""
    held = DTYPES[dtype]
    kind = dtype_kind(held)
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if kind in ("int", "uint"):
        info = ml_dtypes.iinfo(held)
        low = max(int(info.min), -9) if kind == "int" else 0
        return np.asarray(rng.integers(low, min(9, int(info.max)), shape, endpoint=True)).astype(held)
    out: Any = rng.standard_normal(shape) * scale
    if kind == "complex":
        out = out + 1j * rng.standard_normal(shape) * scale
    return np.asarray(out).astype(held)


def wide(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    """Numbers of all sizes, special ones among them."""
    held = DTYPES[dtype]
    kind = dtype_kind(held)
    if kind == "bool":
        return ordinary(rng, dtype, shape)
    size = int(np.prod(shape, dtype=np.int64))
    if kind in ("int", "uint"):
        info = ml_dtypes.iinfo(held)
        drawn = rng.integers(int(info.min), int(info.max), size, np.uint64 if kind == "uint" else np.int64, True)
        small = ordinary(rng, dtype, (size,))
        drawn = np.where(rng.integers(0, 2, size) > 0, drawn.astype(held), small).astype(held)
    else:
        part = PARTS.get(dtype, dtype)
        spread = [_floats(rng, part, size) for _ in range(2 if kind == "complex" else 1)]
        drawn = spread[0]
        if kind == "complex":
            both: Any = np.empty(size, held)
            both.real, both.imag = spread
            drawn = both
    pool = special(dtype)
    out = np.where(rng.integers(0, 3, size) > 0, pool[rng.integers(0, len(pool), size)], drawn)
    return out.astype(held).reshape(shape)


def _floats(rng: np.random.Generator, dtype: str, size: int) -> Array:
    """Numbers of either sign, most near 1, some of any magnitude."""
    held = DTYPES[dtype]
    info = ml_dtypes.finfo(held)  # type: ignore[call-overload]
    low, high = np.log2(float(info.tiny)), np.log2(float(info.max))
    power = np.where(rng.integers(0, 4, size) > 0, rng.uniform(-3, 3, size), rng.uniform(low, high, size))
    with np.errstate(all="ignore"):
        return (np.exp2(power) * rng.choice([-1.0, 1.0], size)).astype(held)


def finite(rng: np.random.Generator, dtype: str, shape: Shape, scale: float = 2.0) -> Array:
    """Numbers of which sums and products stay finite, with a few zeros and ones."""
    out = ordinary(rng, dtype, shape, scale)
    few = rng.integers(0, 12, shape)
    held = DTYPES[dtype]
    return np.where(few == 0, held.type(0), np.where(few == 1, held.type(1), out)).astype(held).reshape(shape)


def moderate(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    """All of a real dtype; complex numbers whose exponentials and squares are finite, zeros of either sign among them.

    StableHLO leaves open what functions give for complex numbers that overflow on the way.
    """
    if dtype not in PARTS:
        return wide(rng, dtype, shape)
    size = int(np.prod(shape, dtype=np.int64))
    parts = [rng.standard_normal(size) * np.exp2(rng.uniform(-12, 4, size)) for _ in range(2)]
    pool = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0])
    out: Any = np.empty(size, DTYPES[dtype])
    out.real, out.imag = (np.where(rng.integers(0, 3, size) == 0, pool[rng.integers(0, 7, size)], p) for p in parts)
    return out.reshape(shape)


def cut(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    """As `moderate`, without the lower side of the branch cut along the negative numbers, which XLA does not know."""
    out: Any = moderate(rng, dtype, shape)
    if dtype in PARTS:
        out.imag = np.where(out.imag == 0, 0, out.imag)
    return out


def power(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    """As `cut`, without complex zeros, of whose powers XLA makes NaN."""
    out = nonzero(rng, dtype, shape, cut)
    return out / 8 if dtype in PARTS else out


def nonzero(rng: np.random.Generator, dtype: str, shape: Shape, fill: Fill = moderate) -> Array:
    """As `moderate`, without complex zeros."""
    out = fill(rng, dtype, shape)
    return np.where(out == 0, out.dtype.type(1), out).astype(out.dtype) if dtype in PARTS else out


def trig(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    """As `moderate`, off the branch cuts of the inverse functions, where the sign of a zero would choose the side."""
    out: Any = moderate(rng, dtype, shape)
    if dtype in PARTS:
        out.real = np.where(np.abs(out.real) < 1e-3, 0.25, out.real)
        out.imag = np.where(np.abs(out.imag) < 1e-3, 0.5, out.imag)
    return out
