"""The array API's element-wise arithmetic."""

from __future__ import annotations

from typing import Any

from gspmd.frontend.numpy_core import (
    as_weak_as,
    binary,
    broadcast_shapes,
    broadcast_to,
    common_dtype,
    full_of,
    lift,
    shape_of,
    spread,
    together,
)
from gspmd.frontend.numpy_logic import equal, less, not_equal, truth
from gspmd.frontend.promotion import inexact
from gspmd.frontend.scope import trace_error
from gspmd.frontend.stop import STOP_GRADIENT
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.dtypes import dtype_kind, is_integer
from gspmd.ir.opdef import OpDef
from gspmd.ops import elementwise as ew


def _inexact_binary(op: OpDef[Any], x: ArrayLike, y: ArrayLike) -> Tracer:
    left, right = together(x, y, dtype=inexact(common_dtype(x, y)))
    return as_weak_as(emit(op, left, right), x, y)


def add(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X + y."""
    return binary(ew.ADD, x, y)


def subtract(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X - y."""
    return binary(ew.SUBTRACT, x, y)


def multiply(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X * y."""
    return binary(ew.MULTIPLY, x, y)


def divide(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X / y; integers give the default float."""
    return _inexact_binary(ew.DIVIDE, x, y)


def negative(x: ArrayLike) -> Tracer:
    """-x."""
    return as_weak_as(emit(ew.NEGATE, lift(x)), x)


def positive(x: ArrayLike) -> Tracer:
    """X itself."""
    return lift(x)


def abs(x: ArrayLike) -> Tracer:
    """The absolute value; real for complex numbers. Unsigned integers and bools are their own."""
    lifted = lift(x)
    return lifted if dtype_kind(lifted.dtype) in ("bool", "uint") else as_weak_as(emit(ew.ABS, lifted), x)


def remainder(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The remainder with the sign of y, as Python's %."""
    a, b = together(x, y)
    rest = emit(ew.REMAINDER, a, b)
    if dtype_kind(a.dtype) == "uint":
        return rest
    found = where(_needs_shift(rest, b), rest + b, rest)
    return found if is_integer(a.dtype) else where(equal(rest, 0), where(less(b, 0), -0.0, 0.0), found)


def _needs_shift(rest: Tracer, divisor: Tracer) -> Tracer:
    zero = full_of(0, rest.dtype, rest.shape)
    differ = emit(ew.XOR, less(rest, zero), less(divisor, zero))
    return emit(ew.AND, differ, not_equal(rest, zero))


def floor_divide(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The quotient rounded towards minus infinity, as Python's //."""
    a, b = together(x, y)
    if dtype_kind(a.dtype) == "uint":
        return emit(ew.DIVIDE, a, b)
    rest = emit(ew.REMAINDER, a, b)
    if is_integer(a.dtype):
        quotient = emit(ew.DIVIDE, a, b)
        return where(_needs_shift(rest, b), quotient - 1, quotient)
    # a - rest is a multiple of b, so that the quotient is a whole number but for rounding.
    quotient = (a - rest) / b
    whole = emit(ew.ROUND_NEAREST_EVEN, where(_needs_shift(rest, b), quotient - 1, quotient))
    exact = stop_gradient(a / b)
    return where(equal(b, 0), exact, where(equal(whole, 0), exact * 0, whole))  # infinities, and the sign of zeros


def power(x: ArrayLike, y: ArrayLike) -> Tracer:
    """X to the power of y; a small Python integer becomes multiplications."""
    if isinstance(y, int) and not isinstance(y, bool) and -64 <= y <= 64 and isinstance(x, Tracer):
        if y >= 0:
            return _integer_power(x, y)
        if not is_integer(x.dtype):
            return 1 / _integer_power(x, -y)
    return binary(ew.POWER, x, y)


def _integer_power(x: Tracer, n: int) -> Tracer:
    if n == 0:
        return full_of(1, x.dtype, x.shape)
    found: Tracer | None = None
    while True:
        if n & 1:
            found = x if found is None else found * x
        n >>= 1
        if not n:
            assert found is not None
            return found
        x = x * x


def square(x: ArrayLike) -> Tracer:
    """X * x."""
    lifted = lift(x)
    return as_weak_as(emit(ew.MULTIPLY, lifted, lifted), x)


def reciprocal(x: ArrayLike) -> Tracer:
    """1 / x."""
    return divide(1, x)


def maximum(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The larger of two, NaN if either is."""
    return binary(ew.MAXIMUM, x, y)


def minimum(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The smaller of two, NaN if either is."""
    return binary(ew.MINIMUM, x, y)


def clip(x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tracer:
    """x, no less than min and no more than max; it keeps its dtype if these are Python numbers."""
    found = lift(x)
    if min is not None:
        found = maximum(found, min)
    return found if max is None else minimum(found, max)


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Tracer:
    """X where the condition holds, else y."""
    if x is None or y is None:
        raise trace_error(
            "where of a condition alone, or with one alternative, has a shape that depends on data",
            rule="where.C1",
            fix="give both alternatives; for the first so many places that hold use top_k or sort",
        )
    dtype = common_dtype(x, y)
    test = truth(condition)
    shape = broadcast_shapes(test.shape, shape_of(x), shape_of(y))
    # A scalar condition may stay one.
    picked = test if not test.shape else broadcast_to(test, shape)
    return as_weak_as(emit(ew.SELECT, picked, spread(x, dtype, shape), spread(y, dtype, shape)), x, y)


def stop_gradient(x: ArrayLike) -> Tracer:
    """X itself, through which no gradient flows."""
    return emit(STOP_GRADIENT, lift(x))
