"""Control flow in which one value stands at several places: each is held as the place needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gspmd

MESH = gspmd.Mesh({"a": 2, "b": 3})
Function = Callable[..., Any]


def by_a(x: Any) -> Any:
    return gspmd.shard(x, MESH, "a", None)


def by_b(x: Any) -> Any:
    return gspmd.shard(x, MESH, "b", None)


def one_start_two_carries(x: Any, y: Any) -> Any:
    return gspmd.fori_loop(0, 3, lambda i, c: (by_a(c[0] * 2), by_b(c[1] + 1)), (x, x))


def swapped_carries(x: Any, y: Any) -> Any:
    return gspmd.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (by_a(x), by_b(y)))


def one_result_two_carries(x: Any, y: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        r = c[0] + c[1]
        return r, r

    return gspmd.fori_loop(0, 3, body, (by_a(x), by_b(y)))


def branch_gives_a_value_twice(x: Any, y: Any) -> Any:
    x = gspmd.shard(x, MESH, "b", "a")
    return gspmd.cond(y[0, 0] > 0, lambda v: (v, v), lambda v: (v * 2, gspmd.shard(v, MESH, "a", "b")), x)


def swapped_branch(x: Any, y: Any) -> Any:
    return gspmd.cond(x[0, 0] > 0, lambda a, b: (a, b), lambda a, b: (b, a), by_a(x), by_b(y))


def one_operand_two_parameters(x: Any, y: Any) -> Any:
    return gspmd.cond(y[0, 0] > 0, lambda a, b: (by_a(a), by_b(b)), lambda a, b: (b, a), x, x)


@pytest.mark.parametrize(
    "function",
    [
        one_start_two_carries,
        swapped_carries,
        one_result_two_carries,
        branch_gives_a_value_twice,
        swapped_branch,
        one_operand_two_parameters,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_value_at_two_places(function: Function, sign: int) -> None:
    x = np.arange(35, dtype=np.float32).reshape(7, 5) + 1
    given = (x, sign * (x + 3))
    compiled = gspmd.compile(function, *(gspmd.TensorType("f32", (7, 5)) for _ in given), mesh=MESH)
    compiled.check(*given)
