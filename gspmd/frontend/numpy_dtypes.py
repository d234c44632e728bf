"""The dtypes by the array API's names, and what NumPy says of arrays without looking at their elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from ml_dtypes import finfo, iinfo

from gspmd.frontend.numpy_core import shape_of
from gspmd.frontend.tracer import ArrayLike

bool_ = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float8_e4m3fn, float8_e5m2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
float16, bfloat16, float32, float64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128

__all__ = [
    "bfloat16", "bool_", "complex64", "complex128", "finfo", "float8_e4m3fn", "float8_e5m2", "float16", "float32",
    "float64", "iinfo", "int8", "int16", "int32", "int64", "ndim", "shape", "size", "uint8", "uint16", "uint32",
    "uint64",
]  # fmt: skip


def shape(x: ArrayLike) -> tuple[int, ...]:
    """The sizes of the dimensions."""
    return shape_of(x)


def ndim(x: ArrayLike) -> int:
    """The number of dimensions."""
    return len(shape_of(x))


def size(x: ArrayLike, axis: int | None = None) -> int:
    """The number of elements, or the size of one dimension."""
    return int(np.prod(shape_of(x))) if axis is None else shape_of(x)[axis]
