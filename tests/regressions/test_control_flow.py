"""A value at two places of a loop or branch is held at each place as that place is."""

from __future__ import annotations

from typing import Any

import gspmd
import gspmd.numpy as gnp
from tests.regressions.support import survives

_MESH = gspmd.Mesh({"x": 2, "y": 2})


def test_a_branch_hands_its_operand_on_under_another_sharding() -> None:
    """The identity branch: its parameter lies as the operand does, its result as the result does."""

    def program(a: Any) -> Any:
        v = gspmd.shard(a, _MESH, "x", None)
        return gspmd.cond(gnp.sum(v) > 0, lambda c: gspmd.shard(gnp.tanh(c), _MESH, None, "y"), lambda c: c, v)

    survives(program, (5, 4))


def test_a_loop_swaps_carries_of_two_shardings() -> None:
    """A parameter of the body that is the next round's other carry."""

    def program(a: Any, b: Any) -> Any:
        v, w = gspmd.shard(a, _MESH, "x", "y"), gspmd.shard(b, _MESH, "y", None)
        return gspmd.fori_loop(0, 3, lambda i, c: (c[1] + 1, gspmd.shard(c[0], _MESH, None, "x")), (v, w))

    survives(program, (4, 5), (4, 5))


def test_a_loop_starts_two_carries_from_one_value() -> None:
    """One operand at two places, each carry with a sharding of its own."""

    def program(a: Any) -> Any:
        def body(_: Any, c: Any) -> Any:
            return gspmd.shard(c[0] * 2, _MESH, "x", None), gspmd.shard(c[1] + 1, _MESH, None, "x")

        return gspmd.fori_loop(0, 3, body, (a, a))

    survives(program, (4, 5))
