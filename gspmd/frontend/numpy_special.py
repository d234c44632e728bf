"""Exponentials, logarithms, trigonometry and rounding, element by element; integers become the default float."""

from __future__ import annotations

from math import inf
from math import log as _log
from typing import Any

from gspmd.frontend.numpy_core import as_inexact, as_weak_as, common_dtype, full_of, lift, together
from gspmd.frontend.numpy_logic import isnan, logical_or
from gspmd.frontend.numpy_math import abs as absolute
from gspmd.frontend.numpy_math import maximum, minimum, square, where
from gspmd.frontend.promotion import inexact
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.dtypes import dtype_kind, is_float
from gspmd.ir.opdef import OpDef
from gspmd.ops import elementwise as ew
from gspmd.ops import special as sp


def _apply(op: OpDef[Any], x: ArrayLike) -> Tracer:
    return as_weak_as(emit(op, as_inexact(x)), x)


def exp(x: ArrayLike) -> Tracer:
    """E to the power of x."""
    return _apply(ew.EXPONENTIAL, x)


def expm1(x: ArrayLike) -> Tracer:
    """exp(x) - 1, exact near 0."""
    return _apply(ew.EXPONENTIAL_MINUS_ONE, x)


def log(x: ArrayLike) -> Tracer:
    """The natural logarithm."""
    return _apply(ew.LOG, x)


def log1p(x: ArrayLike) -> Tracer:
    """log(1 + x), exact near 0."""
    return _apply(ew.LOG_PLUS_ONE, x)


def sqrt(x: ArrayLike) -> Tracer:
    """The square root."""
    return _apply(ew.SQRT, x)


def rsqrt(x: ArrayLike) -> Tracer:
    """1 / sqrt(x)."""
    return _apply(ew.RSQRT, x)


def cbrt(x: ArrayLike) -> Tracer:
    """The cube root."""
    return _apply(ew.CBRT, x)


def sin(x: ArrayLike) -> Tracer:
    """The sine."""
    return _apply(ew.SINE, x)


def cos(x: ArrayLike) -> Tracer:
    """The cosine."""
    return _apply(ew.COSINE, x)


def tan(x: ArrayLike) -> Tracer:
    """The tangent."""
    return _apply(ew.TAN, x)


def tanh(x: ArrayLike) -> Tracer:
    """The hyperbolic tangent."""
    return _apply(ew.TANH, x)


def sigmoid(x: ArrayLike) -> Tracer:
    """1 / (1 + exp(-x))."""
    return _apply(ew.LOGISTIC, x)


def erf(x: ArrayLike) -> Tracer:
    """The error function."""
    return _apply(ew.ERF, x)


def exp2(x: ArrayLike) -> Tracer:
    """2 to the power of x."""
    lifted = as_inexact(x)
    return emit(ew.POWER, full_of(2, lifted.dtype, lifted.shape), lifted)


def log2(x: ArrayLike) -> Tracer:
    """The logarithm to base 2."""
    return log(x) / _log(2)


def log10(x: ArrayLike) -> Tracer:
    """The logarithm to base 10."""
    return log(x) / _log(10)


def logaddexp(x: ArrayLike, y: ArrayLike) -> Tracer:
    """log(exp(x) + exp(y)) without overflow."""
    a, b = together(x, y, dtype=inexact(common_dtype(x, y)))
    high, gap = maximum(a, b), a - b
    # Equal infinities give a gap of NaN: the sum is then the infinity itself, or NaN if an operand is.
    return where(isnan(gap), a + b, high + log1p(exp(-absolute(gap))))


def arctan2(y: ArrayLike, x: ArrayLike) -> Tracer:
    """The angle of the point (x, y)."""
    a, b = together(y, x, dtype=inexact(common_dtype(y, x)))
    return emit(ew.ATAN2, a, b)


def arcsin(x: ArrayLike) -> Tracer:
    """The inverse of the sine."""
    return _apply(sp.ASIN, x)


def arccos(x: ArrayLike) -> Tracer:
    """The inverse of the cosine."""
    return _apply(sp.ACOS, x)


def arctan(x: ArrayLike) -> Tracer:
    """The inverse of the tangent."""
    return _apply(sp.ATAN, x)


def sinh(x: ArrayLike) -> Tracer:
    """The hyperbolic sine."""
    return _apply(sp.SINH, x)


def cosh(x: ArrayLike) -> Tracer:
    """The hyperbolic cosine."""
    return _apply(sp.COSH, x)


def arcsinh(x: ArrayLike) -> Tracer:
    """The inverse of the hyperbolic sine."""
    return _apply(sp.ASINH, x)


def arccosh(x: ArrayLike) -> Tracer:
    """The inverse of the hyperbolic cosine."""
    return _apply(sp.ACOSH, x)


def arctanh(x: ArrayLike) -> Tracer:
    """The inverse of the hyperbolic tangent."""
    return _apply(sp.ATANH, x)


def hypot(x: ArrayLike, y: ArrayLike) -> Tracer:
    """sqrt(x^2 + y^2) without overflow."""
    a, b = map(absolute, together(x, y, dtype=inexact(common_dtype(x, y))))
    high, low = maximum(a, b), minimum(a, b)
    endless = logical_or(a == inf, b == inf)  # whatever the other is, NaN too
    divisor = where(logical_or(high == 0, endless), 1, high)
    return where(endless, inf, high * sqrt(1 + square(low / divisor)))


def floor(x: ArrayLike) -> Tracer:
    """The largest whole number that is not above x; integers are their own."""
    return emit(ew.FLOOR, as_inexact(x)) if _has_fractions(x) else lift(x)


def ceil(x: ArrayLike) -> Tracer:
    """The smallest whole number that is not below x; integers are their own."""
    return emit(ew.CEIL, as_inexact(x)) if _has_fractions(x) else lift(x)


def _has_fractions(x: ArrayLike) -> bool:
    return is_float(lift(x).dtype)


def trunc(x: ArrayLike) -> Tracer:
    """The whole number towards zero; integers are their own."""
    if not _has_fractions(x):
        return lift(x)
    lifted = lift(x)
    return where(lifted < 0, ceil(lifted), floor(lifted))


def round(x: ArrayLike, decimals: int = 0) -> Tracer:
    """The nearest number with so many decimals, of two the even one; integers are their own."""
    if not _has_fractions(x):
        return lift(x)
    lifted = lift(x)
    if decimals == 0:
        return emit(ew.ROUND_NEAREST_EVEN, lifted)
    scale = 10.0**decimals
    return emit(ew.ROUND_NEAREST_EVEN, lifted * scale) / scale


def sign(x: ArrayLike) -> Tracer:
    """-1, 0 or 1 (NaN for NaN); x / |x| for complex numbers."""
    lifted = lift(x)
    if dtype_kind(lifted.dtype) == "uint":
        return where(lifted > 0, full_of(1, lifted.dtype, lifted.shape), lifted)
    return emit(ew.SIGN, lifted)


def signbit(x: ArrayLike) -> Tracer:
    """Whether the sign is negative, of zeros too."""
    lifted = as_inexact(x)
    return logical_or(lifted < 0, (lifted == 0) & (1 / lifted < 0))


def copysign(x: ArrayLike, y: ArrayLike) -> Tracer:
    """|x| with the sign of y."""
    a, b = together(x, y, dtype=inexact(common_dtype(x, y)))
    size = absolute(a)
    return where(signbit(b), -size, size)


def real(x: ArrayLike) -> Tracer:
    """The real part."""
    lifted = lift(x)
    return emit(ew.REAL, lifted) if dtype_kind(lifted.dtype) == "complex" else lifted


def imag(x: ArrayLike) -> Tracer:
    """The imaginary part; zeros for real numbers."""
    lifted = lift(x)
    if dtype_kind(lifted.dtype) == "complex":
        return emit(ew.IMAG, lifted)
    return full_of(0, lifted.dtype, lifted.shape)


def conj(x: ArrayLike) -> Tracer:
    """The complex conjugate."""
    lifted = lift(x)
    return emit(sp.CONJ, lifted) if dtype_kind(lifted.dtype) == "complex" else lifted
