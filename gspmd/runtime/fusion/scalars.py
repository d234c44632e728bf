"""Scalar functions that generated kernels call, written so that loops over them become vector code.

The single precision functions are polynomials of our own: the ones of the C library are called element by element and
cost five times as much. Sums, and only sums, may be regrouped (`sum_of`): that is what lets a reduction use vectors.
Importing this module imports Numba.
"""

# pyright: basic
# ruff: noqa: TID253
from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

f32, i32, i64 = np.float32, np.int32, np.int64


carray: Any = numba.carray  # pyright: ignore[reportPrivateImportUsage]


@intrinsic
def _pointer(typing_context, address):
    """An address as a pointer."""

    def build(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), build


pointer: Any = _pointer  # called without the typing context


def _bits(source, target, llvm) -> Any:
    @intrinsic
    def cast(typing_context, x):
        def build(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], llvm)

        return target(source), build

    return cast


float_of_bits = _bits(types.int32, types.float32, ir.FloatType())
bits_of_float = _bits(types.float32, types.int32, ir.IntType(32))
double_of_bits = _bits(types.int64, types.float64, ir.DoubleType())
bits_of_double = _bits(types.float64, types.int64, ir.IntType(64))

_contract = njit(error_model="numpy", fastmath={"contract"})
_exact = njit(error_model="numpy")
_regroup = njit(error_model="numpy", fastmath={"reassoc", "contract"})


@_exact
def vector(address, count, dtype):
    """The elements at an address."""
    return carray(pointer(address), count, dtype)


@_regroup
def sum_of(a, b):
    """A sum that may be regrouped."""
    return a + b


@_exact
def maximum(a, b):
    """The greater, NaN if either is; +0 is greater than -0."""
    greater = a if a > b or a != a else b
    return a + b if a == b and a == 0 else greater  # of two zeros the right one, in vector code


@_exact
def minimum(a, b):
    """The lesser, NaN if either is; -0 is less than +0."""
    lesser = a if a < b or a != a else b
    return -(-a - b) if a == b and a == 0 else lesser


# Floats in the order of integers: a maximum of integers is vector code, one of floats that may be NaN is not.


@_exact
def rank_high(x):
    """An integer that grows with x; NaN comes last."""
    b = bits_of_float(x)
    b = b ^ ((b >> i32(31)) & i32(0x7FFFFFFF))
    return i32(0x7FC00000) if x != x else i32(b)


@_exact
def rank_low(x):
    """An integer that grows with x; NaN comes first."""
    b = bits_of_float(x)
    b = b ^ ((b >> i32(31)) & i32(0x7FFFFFFF))
    return i32(-0x7FC00001) if x != x else i32(b)


@_exact
def unrank(k):
    """The number of a rank."""
    return float_of_bits(i32(k ^ ((k >> i32(31)) & i32(0x7FFFFFFF))))


@_exact
def rank_high64(x):
    """An integer that grows with x; NaN comes last."""
    b = bits_of_double(x)
    b = b ^ ((b >> i64(63)) & i64(0x7FFFFFFFFFFFFFFF))
    return i64(0x7FF8000000000000) if x != x else b


@_exact
def rank_low64(x):
    """An integer that grows with x; NaN comes first."""
    b = bits_of_double(x)
    b = b ^ ((b >> i64(63)) & i64(0x7FFFFFFFFFFFFFFF))
    return i64(-0x7FF8000000000001) if x != x else b


@_exact
def unrank64(k):
    """The number of a rank."""
    return double_of_bits(k ^ ((k >> i64(63)) & i64(0x7FFFFFFFFFFFFFFF)))


@_contract
def exp_f32(x):
    """e**x within one unit in the last place: 2**k times a polynomial on [-log(2)/2, log(2)/2]."""
    y = f32(-104) if x < f32(-104) else (f32(89) if x > f32(89) else x)
    k = np.rint(y * f32(1.44269504))
    r = (y - k * f32(0.693145752)) - k * f32(1.42860677e-6)
    p = f32(1.9875691500e-4)
    p = p * r + f32(1.3981999507e-3)
    p = p * r + f32(8.3334519073e-3)
    p = p * r + f32(4.1665795894e-2)
    p = p * r + f32(1.6666665459e-1)
    p = p * r + f32(5.0000001201e-1)
    p = (p * r) * r + r + f32(1)
    n = i32(k)
    half = n >> i32(1)  # in two steps, since 2**128 and 2**-149 have no bits of their own as factors
    return p * float_of_bits(i32((half + 127) << 23)) * float_of_bits(i32((n - half + 127) << 23))


@_contract
def tanh_f32(x):
    """The hyperbolic tangent: an odd polynomial near zero, else 1 - 2 / (exp(2|x|) + 1)."""
    a = abs(x)
    e = exp_f32(a + a)
    far = f32(1) - f32(2) / (e + f32(1))
    z = x * x
    p = f32(-5.70498872745e-3)
    p = p * z + f32(2.06390887954e-2)
    p = p * z + f32(-5.37397155531e-2)
    p = p * z + f32(1.33314422036e-1)
    p = p * z + f32(-3.33332819422e-1)
    near = x * (f32(1) + z * p)
    signed = -far if x < f32(0) else far
    return near if a < f32(0.625) else signed


@_contract
def log_f32(x):
    """The natural logarithm: the exponent, and a polynomial in the mantissa on [sqrt(1/2), sqrt(2)]."""
    small = x < f32(1.17549435e-38)
    y = x * f32(8388608.0) if small else x
    b = bits_of_float(y)
    e = f32((b >> i32(23)) - 126) - (f32(23) if small else f32(0))
    m = float_of_bits(i32((b & i32(0x007FFFFF)) | i32(0x3F000000)))
    low = m < f32(0.707106781)
    e = e - f32(1) if low else e
    m = m + m - f32(1) if low else m - f32(1)
    z = m * m
    p = f32(7.0376836292e-2)
    p = p * m + f32(-1.1514610310e-1)
    p = p * m + f32(1.1676998740e-1)
    p = p * m + f32(-1.2420140846e-1)
    p = p * m + f32(1.4249322787e-1)
    p = p * m + f32(-1.6668057665e-1)
    p = p * m + f32(2.0000714765e-1)
    p = p * m + f32(-2.4999993993e-1)
    p = p * m + f32(3.3333331174e-1)
    r = m * z * p + e * f32(-2.12194440e-4) - f32(0.5) * z
    r = m + r + e * f32(0.693359375)
    r = f32(np.inf) if x == f32(np.inf) else r
    r = f32(-np.inf) if x == f32(0) else r
    return r if x >= f32(0) else f32(np.nan)


__all__ = [
    "exp_f32",
    "log_f32",
    "math",
    "maximum",
    "minimum",
    "np",
    "pointer",
    "rank_high",
    "rank_high64",
    "rank_low",
    "rank_low64",
    "sum_of",
    "tanh_f32",
    "unrank",
    "unrank64",
    "vector",
]
