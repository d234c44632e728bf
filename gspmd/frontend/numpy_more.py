"""Further element-wise functions, made of others: angles, steps, sincs, and the pairs that pass over NaN."""

from __future__ import annotations

from math import log as _log
from math import pi
from typing import Any

from gspmd.frontend.config import default_float
from gspmd.frontend.numpy_core import as_inexact, cast_to, common_dtype, full_of, lift, together
from gspmd.frontend.numpy_creation import linspace
from gspmd.frontend.numpy_logic import isinf, isnan, logical_and, logical_or
from gspmd.frontend.numpy_math import abs as absolute
from gspmd.frontend.numpy_math import floor_divide, maximum, minimum, power, remainder, where
from gspmd.frontend.numpy_special import arctan2, exp, imag, log, log1p, real, round, sign, sin, trunc
from gspmd.frontend.promotion import inexact
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.dtypes import as_dtype, is_float
from gspmd.ops import elementwise as ew
from gspmd.ops.special import BESSEL_I0E, NEXT_AFTER


def degrees(x: ArrayLike) -> Tracer:
    """Radians as degrees."""
    return as_inexact(x) * (180 / pi)


def radians(x: ArrayLike) -> Tracer:
    """Degrees as radians."""
    return as_inexact(x) * (pi / 180)


def angle(x: ArrayLike, deg: bool = False) -> Tracer:
    """The angle of complex numbers; 0 or pi for real ones."""
    found = arctan2(imag(x), real(x))
    return degrees(found) if deg else found


def heaviside(x: ArrayLike, y: ArrayLike) -> Tracer:
    """0 below zero, 1 above, y at zero; NaN for NaN."""
    a, b = together(x, y, dtype=inexact(common_dtype(x, y)))
    step = where(a == 0, b, where(a > 0, full_of(1, a.dtype, a.shape), full_of(0, a.dtype, a.shape)))
    return where(isnan(a), a, step)


def sinc(x: ArrayLike) -> Tracer:
    """sin(pi x) / (pi x), 1 at zero."""
    lifted = as_inexact(x)
    zero = lifted == 0
    # Not at zero itself, so that the gradient there is zero, too.
    arc = where(zero, 1, lifted) * pi
    return where(zero, full_of(1, lifted.dtype, lifted.shape), sin(arc) / arc)


def i0(x: ArrayLike) -> Tracer:
    """The modified Bessel function of the first kind, of order 0."""
    lifted = as_inexact(x)
    return exp(absolute(lifted)) * emit(BESSEL_I0E, lifted)


def fmax(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The larger of two; the other one where one is NaN."""
    a, b = together(x, y)
    return where(isnan(a), b, where(isnan(b), a, maximum(a, b)))


def fmin(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The smaller of two; the other one where one is NaN."""
    a, b = together(x, y)
    return where(isnan(a), b, where(isnan(b), a, minimum(a, b)))


def fmod(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The remainder with the sign of x, as C's."""
    a, b = together(x, y)
    return emit(ew.REMAINDER, a, b)


def divmod(x: ArrayLike, y: ArrayLike) -> tuple[Tracer, Tracer]:
    """Quotient rounded down, and remainder."""
    return floor_divide(x, y), remainder(x, y)


def modf(x: ArrayLike) -> tuple[Tracer, Tracer]:
    """The part behind the point, and the whole part, both with the sign of x."""
    lifted = as_inexact(x)
    whole = trunc(lifted)
    return where(isinf(lifted), full_of(0, lifted.dtype, lifted.shape), lifted - whole), whole


def float_power(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X to the power of y in floats."""
    return power(as_inexact(x), as_inexact(y))


def logaddexp2(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The logarithm to base 2 of 2**x + 2**y without overflow."""
    a, b = together(x, y, dtype=inexact(common_dtype(x, y)))
    gap = a - b
    # Equal infinities give a gap of NaN: the sum is then the infinity itself, or NaN if an operand is.
    return where(isnan(gap), a + b, maximum(a, b) + log1p(exp(-absolute(gap) * _log(2))) / _log(2))


def nextafter(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The next number after x towards y."""
    a, b = together(x, y, dtype=inexact(common_dtype(x, y)))
    return emit(NEXT_AFTER, a, b)


def rint(x: ArrayLike) -> Tracer:
    """The nearest whole number, of two the even one."""
    return round(as_inexact(x))


def isposinf(x: ArrayLike) -> Tracer:
    """Whether an element is infinite and positive."""
    return logical_and(isinf(x), lift(x) > 0)


def isneginf(x: ArrayLike) -> Tracer:
    """Whether an element is infinite and negative."""
    return logical_and(isinf(x), lift(x) < 0)


def isreal(x: ArrayLike) -> Tracer:
    """Whether an element has no imaginary part."""
    return imag(x) == 0


def iscomplex(x: ArrayLike) -> Tracer:
    """Whether an element has an imaginary part."""
    return imag(x) != 0


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None
) -> Tracer:
    """Numbers whose logarithms are evenly spaced from start to stop."""
    line = linspace(start, stop, num, endpoint, None if dtype is None else inexact(as_dtype(dtype)))
    found = exp(line * _log(base))
    return found if dtype is None else cast_to(found, as_dtype(dtype))


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Tracer:
    """Numbers from start to stop, each the one before it times a constant."""
    kind = inexact(common_dtype(start, stop)) if dtype is None else as_dtype(dtype)
    wide = kind if is_float(kind) else default_float()
    first, last = cast_to(start, wide), cast_to(stop, wide)
    line = sign(first) * exp(linspace(log(absolute(first)), log(absolute(last)), num, endpoint))
    index = linspace(0, num - 1, num) if num else line
    # The ends are exact.
    line = where(index == 0, first, line)
    ends = logical_and(index == num - 1, logical_or(index > 0, index < 0)) if endpoint else None
    return cast_to(line if ends is None else where(ends, last, line), kind)
