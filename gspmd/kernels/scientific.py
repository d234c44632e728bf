"""Special functions element by element, by SciPy: computed in f64, rounded to the array's dtype; without warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gspmd.kernels.elementwise import Function, pointwise
from gspmd.kernels.finite import Array, signed_bits
from gspmd.kernels.libraries import scipy_module

acos = pointwise(np.arccos)
acosh = pointwise(np.arccosh)
asin = pointwise(np.arcsin)
asinh = pointwise(np.arcsinh)
atan = pointwise(np.arctan)
atanh = pointwise(np.arctanh)
conj = pointwise(np.conjugate)
cosh = pointwise(np.cosh)
is_inf = pointwise(np.isinf)
is_neg_inf = pointwise(np.isneginf)
is_pos_inf = pointwise(np.isposinf)
sinh = pointwise(np.sinh)
square = pointwise(np.square)


def _in_double(function: Callable[..., Any]) -> Function:
    """A function on f64 arrays as one on arrays of any float dtype."""

    def wrapped(*arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            out = np.asarray(function(*(x.astype(np.float64, copy=False) for x in arrays)))
            return out.astype(arrays[0].dtype, copy=False)

    return wrapped


def _scipy(name: str) -> Function:
    """One of SciPy's functions by name, `special.i0e`, looked up when called."""
    module, _, function = name.partition(".")
    return _in_double(lambda *arrays: getattr(scipy_module(module), function)(*arrays))


def _odd(name: str) -> Function:
    """One of SciPy's functions with f(-x) = -f(x), of zeros too, whose sign SciPy loses."""
    function = _scipy(name)

    def signed(x: Array) -> Array:
        return np.where(x == 0, x, function(x))

    return signed


bessel_i0e = _scipy("special.i0e")
bessel_i1e = _odd("special.i1e")
erf_inv = _odd("special.erfinv")
erfc = _scipy("special.erfc")


@_in_double
def lgamma(x: Array) -> Array:
    """The logarithm of the gamma function's magnitude; infinite at both ends and at the poles."""
    return np.where(np.isneginf(x), np.inf, scipy_module("special").gammaln(x))


@_in_double
def digamma(x: Array) -> Array:
    """The logarithmic derivative of the gamma function; NaN at its poles 0, -1, -2 ... and at -inf."""
    return _digamma(x)


def _digamma(x: Array) -> Array:
    psi = scipy_module("special").psi
    if not (x < 0).any():
        return np.where(x == 0, np.nan, psi(x))
    # By reflection where x is negative; what is left of the nearest whole number is exact, also beside a pole.
    left, rest = x < 0, x - np.rint(x)
    out = psi(np.where(left, 1 - x, x)) - np.where(left, np.pi / np.tan(np.pi * rest), 0)
    return np.where((x <= 0) & (rest == 0), np.nan, out)


@_in_double
def zeta(x: Array, q: Array) -> Array:
    """The Hurwitz zeta function, the sum of (q + n)**-x over n = 0, 1, 2 ...; NaN below x = 1.

    At its poles q = 0, -1, -2 ... it is infinite for even x, and NaN for others, whose sides differ in sign.
    """
    return _zeta(x, q)


def _zeta(x: Array, q: Array) -> Array:
    out = scipy_module("special").zeta(x, q)
    # Where q is not positive it has poles, and is defined between them for whole x alone.
    low = q <= 0
    if not low.any():
        return out
    shift = np.where(low, np.ceil(-q), 0)
    base = np.where(low, q + shift, q)
    whole = (x == np.floor(x)) & (shift < 1e6)
    total = scipy_module("special").zeta(x, np.where(base == 0, 1.0, base))
    for n in range(int(np.max(np.where(whole & low, shift, 0)))):
        total = total + np.where(n < shift, np.power(q + n, -x), 0)
    pole = np.where((x == 1) | (np.mod(x, 2) == 0), np.inf, np.nan)
    return np.where(low, np.where(q == np.floor(q), pole, np.where(whole, total, np.nan)), out)


@_in_double
def polygamma(n: Array, x: Array) -> Array:
    """The derivative of digamma of order n, a whole number of at least 0, else NaN."""
    special: Any = scipy_module("special")
    sign = np.where(np.mod(n, 2) == 0, -1.0, 1.0)
    exact, large = cast("tuple[Array, Array]", (special.gamma(n + 1), special.gammaln(n + 1)))
    factorial = np.where(n < 170, exact, np.exp(large))
    out = np.where(n == 0, _digamma(x), sign * factorial * _zeta(n + 1, x))
    return np.where((n >= 0) & (n == np.floor(n)), out, np.nan)


def next_after(x: Array, y: Array) -> Array:
    """The next float from x towards y; y itself where they are equal."""
    with np.errstate(all="ignore"):
        if x.dtype.kind == "f" and x.dtype.itemsize > 2:  # NumPy's halves lose the sign of zero
            return np.asarray(np.nextafter(x, y))
        unit = np.array(1, signed_bits(x).dtype)
        bits = signed_bits(np.ascontiguousarray(x).reshape(x.shape))
        least = np.where(np.signbit(y), np.array(np.iinfo(bits.dtype).min, bits.dtype) | unit, unit)
        moved = np.where(x == 0, least, bits + np.where((x > y) == np.signbit(x), unit, -unit)).view(x.dtype)
        return np.where(np.isnan(x) | np.isnan(y), x + y, np.where(x == y, y, moved))
