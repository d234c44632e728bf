"""Element-wise functions with StableHLO's meaning, at NumPy speed.

Integers wrap; division by zero gives all ones bits and its remainder the dividend; shifts by the width or more give
what shifting bit by bit would; NaN passes through maxima; narrow floats are computed in f32 and rounded. None of these
prints a warning. Results may be operands themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from gspmd.kernels import special
from gspmd.kernels.finite import Array, is_float, is_integer, is_narrow, signed_bits, unsigned_bits

Function = Callable[..., Array]


def pointwise(function: Callable[..., Any]) -> Function:
    """A function on arrays that computes narrow floats in f32, keeps them, stays silent and returns an array."""

    @wraps(function)
    def wrapped(*arrays: Array) -> Array:
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"):
            if not is_narrow(dtype):
                return np.asarray(function(*arrays))
            out = np.asarray(function(*(x.astype(np.float32) for x in arrays)))
            return out.astype(dtype) if out.dtype == np.float32 else out

    return wrapped


absolute = pointwise(np.abs)
add = pointwise(np.add)
atan2 = pointwise(np.arctan2)
bit_and = pointwise(np.bitwise_and)
bit_not = pointwise(np.invert)
bit_or = pointwise(np.bitwise_or)
bit_xor = pointwise(np.bitwise_xor)
ceil = pointwise(np.ceil)
cosine = pointwise(np.cos)
erf = special.erf
exponential = pointwise(np.exp)
exponential_minus_one = pointwise(np.expm1)
floor = pointwise(np.floor)
is_finite = pointwise(np.isfinite)
log = pointwise(np.log)
log_plus_one = pointwise(np.log1p)
maximum = pointwise(np.maximum)
minimum = pointwise(np.minimum)
multiply = pointwise(np.multiply)
negate = pointwise(np.negative)
round_nearest_even = pointwise(np.rint)
sine = pointwise(np.sin)
sqrt = pointwise(np.sqrt)
subtract = pointwise(np.subtract)
tan = pointwise(np.tan)
tanh = pointwise(np.tanh)


@pointwise
def cbrt(x: Array) -> Array:
    """The real cube root; of complex numbers the principal one."""
    return np.power(x, 1 / 3).astype(x.dtype) if x.dtype.kind == "c" else np.cbrt(x)


@pointwise
def rsqrt(x: Array) -> Array:
    """One over the square root."""
    return np.reciprocal(np.sqrt(x))


@pointwise
def logistic(x: Array) -> Array:
    """The sigmoid 1 / (1 + exp(-x)): where exp overflows, its reciprocal is the right 0."""
    out = np.asarray(np.exp(-x))
    out += 1
    return np.reciprocal(out, out=out)


@pointwise
def sign(x: Array) -> Array:
    """-1, 0 or 1, where zeros keep their sign; x / |x| for complex numbers."""
    return np.where(x == 0, x, np.sign(x)) if is_float(x.dtype) else np.sign(x)


@pointwise
def round_nearest_afz(x: Array) -> Array:
    """The nearest integer, ties away from zero."""
    whole = np.trunc(x)
    away = np.copysign(x.dtype.type(1), x)
    return np.where(np.abs(x - whole) >= 0.5, whole + away, whole)


@pointwise
def real(x: Array) -> Array:
    """The real part."""
    return np.ascontiguousarray(np.real(x)).reshape(x.shape) if x.dtype.kind == "c" else x


@pointwise
def imag(x: Array) -> Array:
    """The imaginary part, zero for real numbers."""
    return np.ascontiguousarray(np.imag(x)).reshape(x.shape) if x.dtype.kind == "c" else np.zeros_like(x)


def make_complex(re: Array, im: Array) -> Array:
    """Complex numbers from their parts."""
    out: Any = np.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


@pointwise
def divide(x: Array, y: Array) -> Array:
    """The quotient, of integers truncated towards zero; x / 0 is all ones bits, the least integer / -1 wraps."""
    if not is_integer(x.dtype):
        return np.true_divide(x, y)
    whole = x - np.fmod(x, y)  # NumPy's quotient rounds down; a multiple of y needs no rounding
    return np.where(y == 0, x.dtype.type(0) - x.dtype.type(1), np.floor_divide(whole, y))


@pointwise
def remainder(x: Array, y: Array) -> Array:
    """What truncating division leaves, with the sign of x; of integers x itself if y is zero."""
    out = np.fmod(x, y)
    return np.where(y == 0, x, out) if is_integer(x.dtype) else out


@pointwise
def power(x: Array, y: Array) -> Array:
    """X to the y; of integers it wraps, and a negative exponent gives the integer part of the reciprocal."""
    if x.dtype.kind != "i":
        return np.power(x, y)
    out = np.power(x, np.maximum(y, 0))
    unit = np.where(x == -1, np.where(y & 1, -1, 1), x == 1).astype(x.dtype)
    return np.where(y < 0, unit, out)


@pointwise
def shift_left(x: Array, y: Array) -> Array:
    """The bits moved up by y, zeros below; nothing is left of a shift by the width or more."""
    big = unsigned_bits(y) >= 8 * x.dtype.itemsize
    return np.where(big, x.dtype.type(0), np.left_shift(x, np.where(big, y.dtype.type(0), y)))


@pointwise
def shift_right_logical(x: Array, y: Array) -> Array:
    """The bits moved down by y, zeros above."""
    bits, amount = unsigned_bits(x), unsigned_bits(y)
    big = amount >= 8 * x.dtype.itemsize
    zero = bits.dtype.type(0)
    return np.where(big, zero, np.right_shift(bits, np.where(big, zero, amount))).view(x.dtype)


@pointwise
def shift_right_arithmetic(x: Array, y: Array) -> Array:
    """The bits moved down by y, the top bit repeated above."""
    amount = np.minimum(unsigned_bits(y), np.array(8 * x.dtype.itemsize - 1, unsigned_bits(y).dtype))
    return np.asarray(np.right_shift(signed_bits(x), signed_bits(amount))).view(x.dtype)


@pointwise
def popcnt(x: Array) -> Array:
    """The number of bits that are set."""
    return np.bitwise_count(unsigned_bits(x)).astype(x.dtype)


@pointwise
def count_leading_zeros(x: Array) -> Array:
    """The number of zero bits above the highest one that is set; the width for 0."""
    bits = unsigned_bits(x)
    if x.dtype.itemsize < 8:  # f64 holds these exactly, so its exponent is the position
        return (8 * x.dtype.itemsize - np.frexp(bits.astype(np.float64))[1]).astype(x.dtype)
    high, low = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
    top = np.where(high > 0, high, low)
    return (np.where(high > 0, 32, 64) - np.frexp(top.astype(np.float64))[1]).astype(x.dtype)


def select(pred: Array, on_true: Array, on_false: Array) -> Array:
    """`on_true` where `pred` holds, else `on_false`; a scalar `pred` picks one of them whole."""
    if pred.ndim == 0:
        return on_true if pred else on_false
    return np.where(pred, on_true, on_false)


@pointwise
def clamp(low: Array, x: Array, high: Array) -> Array:
    """X held between two bounds, each a scalar or of x's shape."""
    return np.minimum(np.maximum(x, low), high)
