"""Where XLA on a CPU is no judge: what is compared with instead, and why; what is not drawn at all, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gspmd.kernels.finite import is_narrow
from tests.xla.sweep.cases import Array, Case

# What generators leave out, since XLA's CPU differs from the specification or the specification says nothing.
NOT_DRAWN: Mapping[str, str] = {
    "subnormal numbers in arithmetic": "XLA's CPU client sets the processor to take and make zeros for them",
    "the sign of a zero maximum, minimum or clamp": "of zeros of either sign NumPy gives any",
    "integer powers of 64 and more": "XLA looks at the lowest six bits of an exponent alone",
    "negative integer powers": "XLA's emitters do not agree on those of -1",
    "reduced precision without a mantissa": "there is no NaN in it",
    "popcnt of i4": "XLA counts the bits of the sign that fill a byte",
    "complex infinities and NaN": "StableHLO leaves open what functions make of them",
    "complex numbers that overflow on the way": "StableHLO leaves open whether the result does",
    "the square root below the negative numbers": "XLA does not tell the sides of the cut by the sign of a zero",
    "scatters whose indices are empty": "XLA applies the last of the updates alone, which all go to the same place",
    "loops up to a constant less than a step above their start": "XLA takes their number of trips for another",
    "inits of reductions of one element": "XLA takes them for identities, and drops them",
    "division by and powers of complex zeros": "XLA makes NaN or infinities of any sign of them",
}

_Function = Callable[..., Any]


def _log_plus_one(z: Any) -> Any:
    if z.dtype.kind != "c":
        return np.log1p(z)
    re, im = z.real, z.imag
    small = np.maximum(np.abs(re), np.abs(im)) < 0.5
    near = np.where(small, re * (2 + re) + im * im, 0)
    return np.where(small, np.log1p(near) / 2, np.log(1 + z).real) + 1j * np.arctan2(im, 1 + re)


def _by_element(function: Callable[..., float]) -> _Function:
    """A function of numbers on arrays; NaN where it raises."""

    def call(*numbers: float) -> float:
        try:
            return function(*map(float, numbers))
        except (ValueError, OverflowError):
            return math.nan

    return np.vectorize(call, otypes=[np.float64])


def _lgamma(x: Any) -> Any:
    """C's function, infinite at the poles and at both ends."""
    found = _by_element(math.lgamma)(x) if x.size else x
    return np.where(np.isinf(x) | ((x <= 0) & (x == np.floor(x))), np.inf, np.where(x > 1e300, np.inf, found))


def _digamma(x: Any) -> Any:
    """By reflection, the recurrence up to a large argument, and the asymptotic series there."""
    rest = x - np.rint(x)
    pole = (x <= 0) & (rest == 0)
    total = np.where(x < 0, -np.longdouble(np.pi) / np.tan(np.longdouble(np.pi) * np.where(rest == 0, 1, rest)), 0)
    y = np.where(pole, 1, np.where(x < 0, 1 - x, x))
    for _ in range(20):
        small = y < 20
        total = np.where(small, total - 1 / np.where(small, y, 1), total)
        y = np.where(small, y + 1, y)
    square = 1 / (y * y)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return np.where(pole, np.nan, total + np.log(y) - 1 / (2 * y) - series)


def _polygamma(n: Any, x: Any) -> Any:
    """For positive x: the derivatives' recurrence up to a large argument, and Euler and Maclaurin's sum there."""
    order = n.astype(np.int64)
    factorial = np.vectorize(math.factorial, otypes=[object])(order).astype(np.longdouble) if n.size else n
    total = np.zeros_like(x)
    y = x.copy()
    for _ in range(40):
        total = total + y ** -(n + 1)
        y = y + 1
    s = n + 1
    at_one = np.where(s == 1, 2, s)
    tail = y ** (1 - at_one) / (at_one - 1) + y**-s / 2
    for k, b in ((1, 1 / 6), (2, -1 / 30), (3, 1 / 42), (4, -1 / 30), (5, 5 / 66)):
        rising = np.ones_like(x)
        for j in range(2 * k - 1):
            rising = rising * (s + j)
        tail = tail + b / math.factorial(2 * k) * rising * y ** -(s + 2 * k - 1)
    out = np.where(n % 2 == 0, -1, 1) * factorial * (total + tail)
    return np.where(n == 0, _digamma(x), out)


_erfc = _by_element(math.erfc)

# By op and dtype: functions in NumPy's longest floats that stand in for XLA, whose own error exceeds the bound.
_COARSE = "XLA's approximation is coarser than the bound"
_CANCELS = "XLA's formula loses digits where terms cancel"
REFERENCES: Mapping[tuple[str, str], tuple[_Function, str]] = {
    ("sine", "c64"): (np.sin, _CANCELS),
    ("sine", "c128"): (np.sin, _CANCELS),
    ("cosine", "c64"): (np.cos, _CANCELS),
    ("cosine", "c128"): (np.cos, _CANCELS),
    ("tan", "c64"): (np.tan, _CANCELS),
    ("tan", "c128"): (np.tan, _CANCELS),
    ("log", "c128"): (np.log, _CANCELS),
    ("log_plus_one", "f64"): (_log_plus_one, _CANCELS),
    ("log_plus_one", "c128"): (_log_plus_one, _CANCELS),
    ("cbrt", "f64"): (np.cbrt, _COARSE),
    ("tanh", "c128"): (np.tanh, _CANCELS),
    ("cosh", "c64"): (np.cosh, _CANCELS),
    ("atanh", "f64"): (np.arctanh, _COARSE),
    ("cosh", "c128"): (np.cosh, _CANCELS),
    ("sinh", "c64"): (np.sinh, _CANCELS),
    ("sinh", "c128"): (np.sinh, _CANCELS),
    **{("lgamma", d): (_lgamma, _COARSE) for d in ("f16", "bf16", "f32", "f64")},
    ("digamma", "f32"): (_digamma, _COARSE),
    ("polygamma", "f32"): (_polygamma, _COARSE),
    ("polygamma", "f64"): (_polygamma, _COARSE),
    ("erfc", "f32"): (_erfc, _COARSE),
    ("power", "c64"): (np.power, "XLA multiplies the exponent with a rounded logarithm"),
    ("power", "c128"): (np.power, "XLA multiplies the exponent with a rounded logarithm"),
}


def reference(case: Case, theirs: Sequence[Array]) -> Sequence[Array]:
    """What our results are compared with: XLA's, or what stands in for them."""
    found = REFERENCES.get((case.op, case.dtype))
    if found is None:
        return theirs
    with np.errstate(all="ignore"):
        wide = np.clongdouble if case.arrays[0].dtype.kind == "c" else np.longdouble
        exact = np.asarray(found[0](*(x.astype(np.float32).astype(wide) if is_narrow(x.dtype) else x.astype(wide)
                                      for x in case.arrays)))  # fmt: skip
        return [exact.astype(theirs[0].dtype)]
