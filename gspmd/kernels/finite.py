"""What the element types can hold: kinds, limits, rounding step, and the wider type to compute in.

NumPy's own tables know neither bfloat16 nor the 8-bit floats; this is the one place that asks `ml_dtypes` about them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DType = np.dtype[Any]

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
_UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
_SIGNED = {1: np.dtype(np.int8), 2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


@lru_cache(maxsize=64)
def is_float(dtype: DType) -> bool:
    """Whether a dtype is real floating point, `ml_dtypes`' included."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


@lru_cache(maxsize=64)
def is_integer(dtype: DType) -> bool:
    """Whether a dtype is a signed or unsigned integer, `ml_dtypes`' 2 and 4 bit ones included (bool is not)."""
    return dtype.kind in "iu" or (dtype.kind == "V" and "int" in dtype.name)


@lru_cache(maxsize=64)
def is_packed(dtype: DType) -> bool:
    """Whether a dtype is an integer of fewer than 8 bits."""
    return dtype.kind == "V" and is_integer(dtype)


@lru_cache(maxsize=64)
def is_narrow(dtype: DType) -> bool:
    """Whether a dtype is a float of fewer than 32 bits: computed in f32 and rounded."""
    return is_float(dtype) and dtype.itemsize < 4


@lru_cache(maxsize=64)
def compute_dtype(dtype: DType) -> DType:
    """What to compute in: f32 for narrow floats, 8 bits for integers of fewer, else the dtype itself."""
    if is_narrow(dtype):
        return F32
    if is_packed(dtype):
        return _SIGNED[1] if limits(dtype)[0] else _UNSIGNED[1]
    return dtype


def widened(x: Array) -> Array:
    """The array in the dtype to compute in: narrow floats in f32, integers of fewer than 8 bits in 8."""
    return x.astype(compute_dtype(x.dtype), copy=False)


@lru_cache(maxsize=64)
def limits(dtype: DType) -> tuple[Any, Any]:
    """The least and the greatest value, infinities where the dtype has them; False and True for bool."""
    if dtype == np.bool_:
        return False, True
    if is_integer(dtype):
        info = ml_dtypes.iinfo(dtype)
        return int(info.min), int(info.max)
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf), complex(np.inf, np.inf)
    with np.errstate(all="ignore"):
        top = float(np.array(np.inf).astype(dtype))
    if np.isinf(top):
        return -np.inf, np.inf
    return _finfo(dtype, "min"), _finfo(dtype, "max")


@lru_cache(maxsize=64)
def bit_width(dtype: DType) -> int:
    """How many bits an element means: 1 of a bool; fewer than 8 lie in the low bits of a byte."""
    if dtype.kind == "b":
        return 1
    if is_integer(dtype):
        return int(ml_dtypes.iinfo(dtype).bits)
    return int(_finfo(dtype, "bits")) if is_float(dtype) else 8 * dtype.itemsize


@lru_cache(maxsize=64)
def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number of a float or complex dtype; 0 for exact dtypes."""
    return _finfo(dtype, "eps")


@lru_cache(maxsize=64)
def tiny(dtype: DType) -> float:
    """The least normal positive number of a float or complex dtype; 0 for exact dtypes."""
    return _finfo(dtype, "smallest_normal")


def leads_with_sign(dtype: DType) -> bool:
    """Whether a float's first bit in memory is its sign: not of those narrower than a byte, nor of bare exponents."""
    return bit_width(dtype) == 8 * dtype.itemsize and _finfo(dtype, "min") < 0


def unsigned_bits(x: Array) -> Array:
    """The bits of an array as unsigned integers of the same width."""
    return x.view(_UNSIGNED[x.dtype.itemsize])


def signed_bits(x: Array) -> Array:
    """The bits of an array as signed integers of the same width."""
    return x.view(_SIGNED[x.dtype.itemsize])


def _finfo(dtype: DType, field: str) -> float:
    if not (is_float(dtype) or dtype.kind == "c"):
        return 0.0
    info = cast(Any, ml_dtypes.finfo)(dtype)
    return float(getattr(info, field))
