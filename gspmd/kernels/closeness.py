"""The one judge of closeness: every test and `--check` asks here, and states no tolerance of its own.

Integers, bools and whatever is called exact must agree in every bit (NaN equals NaN). Otherwise the error may be
`8 * eps(dtype) * magnitude`, where the magnitude is the same computation on absolute values in f64 if it is
known, and sqrt(terms) times more for sums of so many terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from gspmd.kernels.finite import Array, epsilon, is_float, tiny

FACTOR = 8.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two arrays compare: the largest error, the bound at that place, and a message (empty if ok)."""

    ok: bool
    max_error: float
    bound: float
    message: str

    def __bool__(self) -> bool:
        return self.ok


def compare(
    actual: Any,
    expected: Any,
    magnitude: Any = None,
    terms: int = 1,
    *,
    exact: bool = False,
    scale_dtype: Any = None,
    allowance: Any = 0.0,
) -> Comparison:
    """Compare an array with what it should be; dtypes and shapes must agree.

    `terms` is the length of the longest sum behind an element. `scale_dtype` names the coarsest dtype that took part in
    the computation, when it is not the arrays' own. `allowance` is what floats may differ by whatever their size.
    """
    a, e = np.asarray(actual), np.asarray(expected)
    if a.dtype != e.dtype or a.shape != e.shape:
        return Comparison(False, np.inf, 0.0, f"got {a.dtype}{list(a.shape)}, expected {e.dtype}{list(e.shape)}")
    if a.size == 0:
        return Comparison(True, 0.0, 0.0, "")
    if exact or not (is_float(a.dtype) or a.dtype.kind == "c"):
        return _compare_bits(a, e)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    eps = max(epsilon(a.dtype), 0.0 if scale_dtype is None else epsilon(np.dtype(scale_dtype)))
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), e.astype(wide)
        size = _scale(y) if magnitude is None else np.broadcast_to(np.abs(np.asarray(magnitude, wide)), y.shape)
        bound = FACTOR * eps * sqrt(max(terms, 1)) * np.maximum(size, np.abs(y)) + tiny(a.dtype)
        bound = np.maximum(bound, allowance)
        error = np.abs(x - y)
        same = (x == y) | (_isnan(x) & _isnan(y))
        error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
        bad = ~same & ~((error <= bound) & np.isfinite(error))
    where = np.unravel_index(int(np.argmax(np.where(bad, error, -1.0) if bad.any() else error)), a.shape)
    worst, allowed = float(error[where]), float(bound[where])
    if not bad.any():
        return Comparison(True, worst, allowed, "")
    return Comparison(
        False, worst, allowed, _message(a, e, where, int(bad.sum()), f"error {worst:.3g} > {allowed:.3g}")
    )


def _compare_bits(a: Array, e: Array) -> Comparison:
    same = a == e
    if is_float(a.dtype):
        same = np.where(np.isnan(e), np.isnan(a), same & (np.signbit(a) == np.signbit(e)))
    elif a.dtype.kind == "c":
        parts = [_compare_bits(np.asarray(f(a)), np.asarray(f(e))) for f in (np.real, np.imag)]
        return next((p for p in parts if not p.ok), parts[0])
    if np.all(same):
        return Comparison(True, 0.0, 0.0, "")
    bad = ~np.asarray(same)
    where = np.unravel_index(int(np.argmax(bad)), a.shape)
    with np.errstate(all="ignore"):
        error = float(np.abs(np.float64(a[where]) - np.float64(e[where])))
    return Comparison(False, error, 0.0, _message(a, e, where, int(bad.sum()), "must be equal"))


def _scale(y: Array) -> Array:
    """A magnitude where none is known: each value's own, but at least the mean finite one of its row."""
    size = np.where(np.isfinite(y), np.abs(y), 0.0)
    row = size.mean(axis=-1, keepdims=True) if y.ndim else size
    return np.maximum(size, row)


def _isnan(x: Array) -> Array:
    return np.isnan(np.real(x)) | np.isnan(np.imag(x)) if x.dtype.kind == "c" else np.isnan(x)


def _message(a: Array, e: Array, where: tuple[Any, ...], count: int, what: str) -> str:
    place = [int(i) for i in where]
    return f"{count} of {a.size} differ, worst at {place}: got {a[where]!r}, expected {e[where]!r} ({what})"
