"""Element types: StableHLO's short names for NumPy's dtypes (`ml_dtypes`' for the types NumPy lacks)."""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes
import numpy as np

from gspmd.ir.errors import InvalidTypeError

DType = np.dtype[Any]
DTypeKind = Literal["bool", "int", "uint", "float", "complex"]

DTYPES: dict[str, DType] = {
    "bool": np.dtype(np.bool_),
    "i2": np.dtype(ml_dtypes.int2),
    "i4": np.dtype(ml_dtypes.int4),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u2": np.dtype(ml_dtypes.uint2),
    "u4": np.dtype(ml_dtypes.uint4),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "f4e2m1fn": np.dtype(ml_dtypes.float4_e2m1fn),
    "f6e2m3fn": np.dtype(ml_dtypes.float6_e2m3fn),
    "f6e3m2fn": np.dtype(ml_dtypes.float6_e3m2fn),
    "f8e3m4": np.dtype(ml_dtypes.float8_e3m4),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "f8e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8e8m0fnu": np.dtype(ml_dtypes.float8_e8m0fnu),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
_NAMES: dict[DType, str] = {dtype: name for name, dtype in DTYPES.items()}
_KINDS: dict[DType, DTypeKind] = {
    dtype: "bool"
    if name == "bool"
    else "float"
    if name[0] in "fb"
    else "complex"
    if name[0] == "c"
    else "uint"
    if name[0] == "u"
    else "int"
    for name, dtype in DTYPES.items()
}

_KNOWN = f"use one of {', '.join(DTYPES)}"


def as_dtype(dtype: Any) -> DType:
    """The NumPy dtype of a name ("f32", "bf16"), a NumPy dtype or scalar type; InvalidTypeError if it is no such."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise InvalidTypeError(f"unknown dtype {dtype!r}", fix=_KNOWN) from None
    if found not in _NAMES:
        raise InvalidTypeError(f"unsupported dtype {found}", fix=_KNOWN)
    return found


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in this machine's byte order, in which all dtypes here are."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def dtype_name(dtype: DType) -> str:
    """The short name of a dtype: `np.dtype("float32")` is "f32"."""
    return _NAMES[dtype]


def dtype_kind(dtype: DType) -> DTypeKind:
    """Whether a dtype is "bool", "int" (signed), "uint", "float" or "complex"."""
    return _KINDS[dtype]


def is_float(dtype: DType) -> bool:
    """Whether a dtype is real floating point, `ml_dtypes`' included."""
    return _KINDS[dtype] == "float"


def is_integer(dtype: DType) -> bool:
    """Whether a dtype is a signed or unsigned integer (bool is not)."""
    return _KINDS[dtype] in ("int", "uint")
