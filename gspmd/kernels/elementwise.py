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
from gspmd.kernels.extrema import extremum
from gspmd.kernels.finite import (
    Array,
    bit_width,
    compute_dtype,
    is_float,
    is_integer,
    is_packed,
    limits,
    signed_bits,
    unsigned_bits,
)

Function = Callable[..., Array]


def pointwise(function: Callable[..., Any]) -> Function:
    """A function on arrays that computes narrow numbers in wider ones, keeps them, stays silent, returns an array."""

    @wraps(function)
    def wrapped(*arrays: Array) -> Array:
        dtype = arrays[0].dtype
        wide = compute_dtype(dtype)
        with np.errstate(all="ignore"):
            if wide == dtype:
                return np.asarray(function(*arrays))
            out = np.asarray(function(*(x.astype(wide) for x in arrays)))
            return out.astype(dtype) if out.dtype == wide else out

    return wrapped


def bitwise(function: Callable[..., Any]) -> Function:
    """A function on the bits of integers, of whatever width, that stays silent and returns an array."""

    @wraps(function)
    def wrapped(*arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*arrays))

    return wrapped


absolute = pointwise(np.abs)
add = pointwise(np.add)
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
multiply = pointwise(np.multiply)
negate = pointwise(np.negative)
round_nearest_even = pointwise(np.rint)
sine = pointwise(np.sin)
sqrt = pointwise(np.sqrt)
subtract = pointwise(np.subtract)
tan = pointwise(np.tan)
tanh = pointwise(np.tanh)


@pointwise
def maximum(x: Array, y: Array) -> Array:
    """The greater, NaN if either is; +0 is greater than -0."""
    return extremum(np.maximum, x, y)


@pointwise
def minimum(x: Array, y: Array) -> Array:
    """The lesser, NaN if either is; -0 is less than +0."""
    return extremum(np.minimum, x, y)


@pointwise
def atan2(y: Array, x: Array) -> Array:
    """The angle of the point (x, y); of complex numbers -i log((x + iy) / sqrt(x^2 + y^2)), as XLA defines it."""
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    size = np.asarray(np.maximum(abs(y), abs(x)))
    scale = np.where((size > 0) & np.isfinite(size), size, 1)  # so that no square overflows or vanishes
    a, b = (np.asarray(v / scale).astype(np.complex128) for v in (y, x))
    angle = np.angle((b + 1j * a) / np.sqrt(a * a + b * b))
    tilt = 2 * (b * a.conj()).imag / ((a * a.conj()).real + (b * b.conj()).real)
    # The second form, exact far from the real plane, cancels near it.
    height = np.where(np.abs(tilt) < 0.5, np.arctanh(tilt) / 2, np.log(np.abs(b + 1j * a) / np.abs(b - 1j * a)) / 2)
    return make_complex(angle, -height).astype(y.dtype)


@pointwise
def cbrt(x: Array) -> Array:
    """The real cube root; of complex numbers the principal one."""
    return np.power(x, 1 / 3).astype(x.dtype) if x.dtype.kind == "c" else np.cbrt(x)


@pointwise
def rsqrt(x: Array) -> Array:
    """One over the square root."""
    return np.reciprocal(np.sqrt(x))


@pointwise
def log_plus_one(x: Array) -> Array:
    """The logarithm of 1 + x, exact for small x; NumPy's loses the real part of small complex numbers."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    re, im = np.real(x), np.imag(x)
    small = np.maximum(np.abs(re), np.abs(im)) < 0.5
    near = np.where(small, re * (2 + re) + im * im, 0)
    size = np.where(small, np.log1p(near) / 2, np.real(np.log(1 + x)))
    return make_complex(size, np.arctan2(im, 1 + re))


@pointwise
def logistic(x: Array) -> Array:
    """The sigmoid 1 / (1 + exp(-x)): where exp overflows, its reciprocal is the right 0."""
    if x.dtype.kind == "c":
        left = np.real(x) < 0
        grown = np.exp(np.where(left, x, -x))  # at most 1 in size
        return np.asarray(np.where(left, grown, 1) / (1 + grown)).astype(x.dtype)
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
    if x.dtype == np.complex64:  # errors of the logarithm count as often as the exponent says
        return np.power(x.astype(np.complex128), y).astype(x.dtype)
    if x.dtype.kind != "i":
        return np.power(x, y)
    out = np.power(x, np.maximum(y, 0))
    unit = np.where(x == -1, np.where(y & 1, -1, 1), x == 1).astype(x.dtype)
    return np.where(y < 0, unit, out)


@bitwise
def mulhi(x: Array, y: Array) -> Array:
    """The upper half of the product's bits."""
    least, most = limits(x.dtype)
    width = (most - least).bit_length()
    if width < 64:
        wide = np.int64 if least else np.uint64
        return np.right_shift(x.astype(wide) * y.astype(wide), wide(width)).astype(x.dtype)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b = unsigned_bits(x), unsigned_bits(y)
    (ah, al), (bh, bl) = ((v >> half, v & mask) for v in (a, b))
    crossed = ah * bl + (al * bl >> half)  # at most 2^64 - 2^32
    total = ah * bh + (crossed >> half) + (al * bh + (crossed & mask) >> half)
    if least:  # a negative factor counts 2^64 too much of the other
        total = total - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return total.view(x.dtype)


@pointwise
def shift_left(x: Array, y: Array) -> Array:
    """The bits moved up by y, zeros below; nothing is left of a shift by the width or more."""
    big = unsigned_bits(y) >= 8 * x.dtype.itemsize
    return np.where(big, x.dtype.type(0), np.left_shift(x, np.where(big, y.dtype.type(0), y)))


@bitwise
def shift_right_logical(x: Array, y: Array) -> Array:
    """The bits moved down by y, zeros above."""
    bits, amount = unsigned_bits(x), unsigned_bits(y)
    big = amount >= 8 * x.dtype.itemsize
    zero = bits.dtype.type(0)
    return np.where(big, zero, np.right_shift(bits, np.where(big, zero, amount))).view(x.dtype)


@bitwise
def shift_right_arithmetic(x: Array, y: Array) -> Array:
    """The bits moved down by y, the top bit repeated above."""
    if is_packed(x.dtype):
        top = np.int8(1 << (bit_width(x.dtype) - 1))
        wide = (signed_bits(x) ^ top) - top  # the sign in all of the upper bits
        return (
            np.right_shift(wide, np.minimum(unsigned_bits(y), np.uint8(7)).view(np.int8))
            .astype(np.int8)
            .astype(x.dtype)
        )
    amount = np.minimum(unsigned_bits(y), np.array(8 * x.dtype.itemsize - 1, unsigned_bits(y).dtype))
    return np.asarray(np.right_shift(signed_bits(x), signed_bits(amount))).view(x.dtype)


@bitwise
def popcnt(x: Array) -> Array:
    """The number of bits that are set."""
    return np.bitwise_count(unsigned_bits(x)).astype(x.dtype)


@bitwise
def count_leading_zeros(x: Array) -> Array:
    """The number of zero bits above the highest one that is set; the width for 0."""
    bits = unsigned_bits(x)
    if x.dtype.itemsize < 8:  # f64 holds these exactly, so its exponent is the position
        return (bit_width(x.dtype) - np.frexp(bits.astype(np.float64))[1]).astype(x.dtype)
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
    return extremum(np.minimum, extremum(np.maximum, x, low), high)
