"""Comparisons, logic and bits, element by element."""

from __future__ import annotations

from typing import Any

from gspmd.frontend.numpy_core import (
    as_inexact,
    binary,
    common_dtype,
    dtype_of,
    full_of,
    lift,
    together,
)
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.ir.opdef import OpDef
from gspmd.ops import elementwise as ew

_BOOL = DTYPES["bool"]


def truth(x: ArrayLike) -> Tracer:
    """Whether each element is other than zero."""
    lifted = lift(x)
    if lifted.dtype == _BOOL:
        return lifted
    return emit(ew.COMPARE, lifted, full_of(0, lifted.dtype, lifted.shape), direction="NE")


def _compare(direction: str, x: ArrayLike, y: ArrayLike) -> Tracer:
    return binary(ew.COMPARE, x, y, direction=direction)


def equal(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X == y, element by element."""
    return _compare("EQ", x, y)


def not_equal(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X != y, element by element."""
    return _compare("NE", x, y)


def less(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X < y, element by element."""
    return _compare("LT", x, y)


def less_equal(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X <= y, element by element."""
    return _compare("LE", x, y)


def greater(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X > y, element by element."""
    return _compare("GT", x, y)


def greater_equal(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X >= y, element by element."""
    return _compare("GE", x, y)


def _logical(op: OpDef[Any], x: ArrayLike, y: ArrayLike) -> Tracer:
    left, right = together(truth(x), truth(y))
    return emit(op, left, right)


def logical_and(x: ArrayLike, y: ArrayLike) -> Tracer:
    """Whether both are true."""
    return _logical(ew.AND, x, y)


def logical_or(x: ArrayLike, y: ArrayLike) -> Tracer:
    """Whether either is true."""
    return _logical(ew.OR, x, y)


def logical_xor(x: ArrayLike, y: ArrayLike) -> Tracer:
    """Whether just one is true."""
    return _logical(ew.XOR, x, y)


def logical_not(x: ArrayLike) -> Tracer:
    """Whether an element is zero."""
    return emit(ew.NOT, truth(x))


def _bits(op: OpDef[Any], x: ArrayLike, y: ArrayLike) -> Tracer:
    kind = dtype_kind(common_dtype(x, y))
    if kind not in ("int", "uint", "bool"):
        raise trace_error(
            f"bits of {dtype_of(x)} and {dtype_of(y)}: only integers and bools have bits",
            rule="bits.C1",
            fix="convert with .astype, or use the logical_ functions on conditions",
        )
    return binary(op, x, y)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X & y."""
    return _bits(ew.AND, x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X | y."""
    return _bits(ew.OR, x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X ^ y."""
    return _bits(ew.XOR, x, y)


def bitwise_left_shift(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X << y."""
    return _bits(ew.SHIFT_LEFT, x, y)


def bitwise_right_shift(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X >> y; the sign of signed integers stays."""
    unsigned = dtype_kind(common_dtype(x, y)) == "uint"
    return _bits(ew.SHIFT_RIGHT_LOGICAL if unsigned else ew.SHIFT_RIGHT_ARITHMETIC, x, y)


def bitwise_invert(x: ArrayLike) -> Tracer:
    """~x: every bit, or every bool, the other way."""
    return emit(ew.NOT, lift(x))


def isnan(x: ArrayLike) -> Tracer:
    """Whether an element is not a number."""
    lifted = lift(x)
    return emit(ew.COMPARE, lifted, lifted, direction="NE")


def isfinite(x: ArrayLike) -> Tracer:
    """Whether an element is neither infinite nor NaN."""
    return emit(ew.IS_FINITE, as_inexact(x))


def isinf(x: ArrayLike) -> Tracer:
    """Whether an element is infinite."""
    lifted = as_inexact(x)
    return emit(ew.AND, logical_not(isfinite(lifted)), logical_not(isnan(lifted)))


def isclose(x: ArrayLike, y: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tracer:
    """Whether |x - y| <= atol + rtol * |y|; with `equal_nan` a NaN is close to a NaN."""
    a, b = together(as_inexact(x), as_inexact(y))
    near = less_equal(emit(ew.ABS, a - b), emit(ew.ABS, b) * rtol + atol)
    found = logical_or(equal(a, b), logical_and(near, isfinite(b)))
    return logical_or(found, logical_and(isnan(a), isnan(b))) if equal_nan else found
