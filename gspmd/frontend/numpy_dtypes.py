"""The dtypes by the array API's names, and what is said without looking at elements: sizes, kinds, promotion."""

from __future__ import annotations

from typing import Any, Literal, cast

import ml_dtypes
import numpy as np
from ml_dtypes import finfo, iinfo

from gspmd.frontend import promotion
from gspmd.frontend.numpy_core import dtype_of, shape_of
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, is_scalar, weak_kind
from gspmd.ir.dtypes import DType, as_dtype, dtype_kind

bool_ = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float8_e4m3fn, float8_e5m2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
float16, bfloat16, float32, float64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128

__all__ = [
    "bfloat16", "bool_", "can_cast", "complex64", "complex128", "finfo", "float8_e4m3fn", "float8_e5m2", "float16",
    "float32", "float64", "iinfo", "int8", "int16", "int32", "int64", "isdtype", "ndim", "result_type", "shape", "size",
    "uint8", "uint16", "uint32", "uint64",
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


_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of an operation on arrays, dtypes and Python numbers, by the rules of this module's functions."""
    if not arrays_and_dtypes:
        raise trace_error("result_type of nothing", rule="result_type.C1", fix="give arrays or dtypes")
    kinds = [weak_kind(x) for x in arrays_and_dtypes]
    typed = [_dtype(x) for x, kind in zip(arrays_and_dtypes, kinds, strict=True) if kind is None]
    return promotion.result_type(typed, [kind for kind in kinds if kind is not None])


def _dtype(x: Any) -> DType:
    """That of an array, or what names a dtype."""
    if isinstance(x, Tracer) or ((hasattr(x, "shape") and hasattr(x, "dtype")) and not isinstance(x, type)):
        return dtype_of(x)
    try:
        return as_dtype(x)
    except (TypeError, ValueError):
        raise trace_error(
            f"{x!r} is neither an array nor a dtype", rule="dtype.C1", fix="give one, such as gnp.float32"
        ) from None


def can_cast(from_: Any, to: Any, casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "safe") -> bool:
    """Whether a dtype, or that of an array, can become another by one of NumPy's rules; `safe` loses no value."""
    if is_scalar(from_):
        raise trace_error("can_cast of a Python number, which has no dtype", rule="can_cast.C1", fix="give a dtype")
    return bool(np.can_cast(_dtype(from_), as_dtype(to), casting))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another, or of a kind by the array API's names, or any of several of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in cast("tuple[Any, ...]", kind))
    if isinstance(kind, str) and kind in _KINDS:
        return dtype_kind(as_dtype(dtype)) in _KINDS[kind]
    return as_dtype(dtype) == _dtype(kind)
