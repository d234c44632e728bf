"""Reductions that pass over NaN, and numbers in place of NaN and infinities."""

from __future__ import annotations

from typing import Any, cast

from ml_dtypes import finfo

from gspmd.frontend.numpy_core import as_inexact, cast_to, full_of, lift
from gspmd.frontend.numpy_logic import isnan, logical_not
from gspmd.frontend.numpy_math import maximum, where
from gspmd.frontend.numpy_reduce import Axes, all, argmax, argmin, cumprod, cumsum, max, min, prod, squared_size, sum
from gspmd.frontend.numpy_special import imag, real, sqrt
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.dtypes import DTYPES, as_dtype, dtype_kind, is_float
from gspmd.ops.elementwise import COMPLEX


def nan_to_num(
    x: ArrayLike, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tracer:
    """Numbers in place of NaN and infinities: zero, and the largest that the dtype has, unless others are given."""
    lifted = lift(x)
    if dtype_kind(lifted.dtype) == "complex":
        parts = (nan_to_num(part, copy, nan, posinf, neginf) for part in (real(lifted), imag(lifted)))
        return emit(COMPLEX, *parts)
    if not is_float(lifted.dtype):
        return lifted
    held = cast("Any", finfo(lifted.dtype))
    found = _replaced(lifted, isnan(lifted), nan)
    found = _replaced(found, lifted == float("inf"), held.max if posinf is None else posinf)
    return _replaced(found, lifted == float("-inf"), held.min if neginf is None else neginf)


def _replaced(x: Tracer, where_: Tracer, value: Any) -> Tracer:
    return where(where_, full_of(float(value), x.dtype, x.shape), x)


def _without(x: ArrayLike, value: float) -> tuple[Tracer, Tracer]:
    """The array with a value in place of NaN, and where that was; integers have none."""
    lifted = lift(x)
    gone = isnan(lifted)
    return (_replaced(lifted, gone, value) if _may_be_nan(lifted) else lifted), gone


def _may_be_nan(x: Tracer) -> bool:
    return dtype_kind(x.dtype) in ("float", "complex")


def nansum(x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
    """The sum along axes of what is not NaN."""
    return sum(_without(x, 0)[0], axis, dtype, keepdims)


def nanprod(x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
    """The product along axes of what is not NaN."""
    return prod(_without(x, 1)[0], axis, dtype, keepdims)


def nancumsum(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tracer:
    """The running sum of what is not NaN."""
    return cumsum(_without(x, 0)[0], axis, dtype)


def nancumprod(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tracer:
    """The running product of what is not NaN."""
    return cumprod(_without(x, 1)[0], axis, dtype)


def nanmean(x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
    """The mean along axes of what is not NaN; NaN where there is nothing."""
    wide, result = _computed_in(x, dtype)
    found, gone = _without(wide, 0)
    return cast_to(sum(found, axis, keepdims=keepdims) / _count(gone, found.dtype, axis, keepdims), result)


def nanvar(x: ArrayLike, axis: Axes = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Tracer:
    """The variance along axes of what is not NaN; NaN where there are too few."""
    wide, result = _computed_in(x, dtype)
    known, gone = _without(wide, 0)
    squares = squared_size(_replaced(known - nanmean(wide, axis, keepdims=True), gone, 0))
    count = _count(gone, squares.dtype, axis, keepdims) - ddof
    found = sum(squares, axis, keepdims=keepdims) / maximum(count, 0)
    found = where(count <= 0, full_of(float("nan"), found.dtype, found.shape), found)
    return found if dtype_kind(result) == "complex" else cast_to(found, result)


def nanstd(x: ArrayLike, axis: Axes = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Tracer:
    """The standard deviation along axes of what is not NaN."""
    return sqrt(nanvar(x, axis, dtype, ddof, keepdims))


def _computed_in(x: ArrayLike, dtype: Any) -> tuple[Tracer, Any]:
    """The array in the dtype to compute in, and the dtype of the result: sums of many f16 would overflow f16."""
    lifted = as_inexact(x) if dtype is None else cast_to(x, as_dtype(dtype))
    narrow = is_float(lifted.dtype) and lifted.dtype.itemsize < 4
    return cast_to(lifted, DTYPES["f32"]) if narrow else lifted, lifted.dtype


def _count(gone: Tracer, dtype: Any, axis: Axes, keepdims: bool) -> Tracer:
    return sum(cast_to(logical_not(gone), dtype), axis, keepdims=keepdims)


def nanmax(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """The largest along axes of what is not NaN; NaN where there is nothing."""
    found, gone = _without(x, float("-inf"))
    return _or_nan(max(found, axis, keepdims), all(gone, axis, keepdims))


def nanmin(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """The smallest along axes of what is not NaN; NaN where there is nothing."""
    found, gone = _without(x, float("inf"))
    return _or_nan(min(found, axis, keepdims), all(gone, axis, keepdims))


def _or_nan(found: Tracer, nothing: Tracer) -> Tracer:
    return _replaced(found, nothing, float("nan")) if _may_be_nan(found) else found


def nanargmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tracer:
    """Where the largest of what is not NaN is; 0 where there is nothing."""
    return argmax(_without(x, float("-inf"))[0], axis, keepdims)


def nanargmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tracer:
    """Where the smallest of what is not NaN is; 0 where there is nothing."""
    return argmin(_without(x, float("inf"))[0], axis, keepdims)
