"""Divisors of integers, and the order of rows by several keys."""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.frontend.control import while_loop
from gspmd.frontend.numpy_core import common_dtype, lift, normal_axis, together
from gspmd.frontend.numpy_index import take_along_axis
from gspmd.frontend.numpy_logic import not_equal
from gspmd.frontend.numpy_math import abs as absolute
from gspmd.frontend.numpy_math import floor_divide, maximum, remainder, where
from gspmd.frontend.numpy_reduce import any
from gspmd.frontend.numpy_sort import argsort
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer
from gspmd.ir.dtypes import is_integer

__all__ = ["gcd", "lcm", "lexsort"]


def _integers(name: str, x: ArrayLike, y: ArrayLike) -> list[Tracer]:
    dtype = common_dtype(x, y)
    if not is_integer(dtype):
        raise trace_error(f"{name} takes integers, got {dtype}", rule=f"{name}.C1", fix="convert with .astype")
    return [absolute(v) for v in together(x, y, dtype=dtype)]


def gcd(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The greatest common divisor, by Euclid's algorithm: as many steps as the slowest pair takes."""
    return _gcd(*_integers("gcd", x, y))


def _gcd(a: Tracer, b: Tracer) -> Tracer:
    def step(pair: tuple[Tracer, Tracer]) -> tuple[Tracer, Tracer]:
        left, right = pair
        done = right == 0
        return where(done, left, right), where(done, right, remainder(left, where(done, 1, right)))

    return while_loop(lambda pair: any(not_equal(pair[1], 0)), step, (a, b))[0]


def lcm(x: ArrayLike, y: ArrayLike) -> Tracer:
    """The least common multiple; zero if either is."""
    a, b = _integers("lcm", x, y)
    return floor_divide(a, maximum(_gcd(a, b), 1)) * b


def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Tracer:
    """Where the elements in order come from, by the last key; of equal ones by the one before it, and so on."""
    rows = [lift(k) for k in keys] if isinstance(keys, (tuple, list)) else [*lift(keys)]  # type: ignore[arg-type]
    if len({r.shape for r in rows}) != 1:
        shapes = ", ".join(str(list(r.shape)) for r in rows)
        raise trace_error(f"lexsort takes keys of one shape, got {shapes or 'none'}", rule="lexsort.C1")
    d = normal_axis(axis, rows[0].ndim)
    order = argsort(rows[0], d)
    for row in rows[1:]:
        order = take_along_axis(order, argsort(take_along_axis(row, order, d), d), d)
    return order
