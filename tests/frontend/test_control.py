"""Control flow: what runs, what is captured, what a loop says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gspmd.numpy as gnp
from gspmd.frontend.control import cond, fori_loop, scan, switch, while_loop
from gspmd.ir.types import TensorType
from tests.frontend.support import assert_like_jax, run, traced
from tests.frontend.test_grad import MINE, THEIRS

X = np.arange(12, dtype="f4").reshape(3, 4)


def collatz(m: Any, n: Any) -> Any:
    def step(c: Any) -> Any:
        n, k = c
        return m.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

    return m.while_loop(lambda c: c[0] > 1, step, (n, 0))


def nested(m: Any, x: Any) -> Any:
    def outer(i: Any, c: Any) -> Any:
        return m.fori_loop(0, 2, lambda j, d: d + x[i] * j + c.sum(), c)

    return m.fori_loop(0, 3, outer, x[0])


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cond": (lambda m, x: [m.cond(x.sum() > k, lambda: x, lambda: -x) for k in (0, 100)], (X,)),
    "cond with operands": (lambda m, x: m.cond(x[0, 0] > 0, lambda a, b: (a, b), lambda a, b: (b, a), x, x * 2), (X,)),
    "switch": (
        lambda m, x: [m.switch(i, [lambda a: a, lambda a: a * 2, lambda a: a + 1], x) for i in (0, 1, 2)],
        (X,),
    ),
    "while": (collatz, (np.int32(27),)),
    "fori": (lambda m, x: m.fori_loop(1, 5, lambda i, c: c * 2 + i, x), (X,)),
    "traced bounds": (lambda m, n: m.fori_loop(0, n, lambda i, c: c + i, 0), (np.int32(6),)),
    "backwards": (lambda m, x: m.fori_loop(4, 2, lambda i, c: c + 1, x), (X,)),
    "nested": (nested, (X,)),
    "scan": (lambda m, x: m.scan(lambda c, r: (c + r.sum(), {"r": r * c, "c": c}), 0.0, x), (X,)),
    "scan without xs": (lambda m, x: m.scan(lambda c, _: (c * 2, c[0]), x, None, length=3), (X,)),
    "scan without ys": (lambda m, x: m.scan(lambda c, r: (c + r, None), x[0], x), (X,)),
    "scan of nothing": (lambda m, x: m.scan(lambda c, r: (c + 1.0, r), 0.0, x[:0]), (X,)),
    "weak start": (lambda m, x: m.fori_loop(0, 3, lambda i, c: c + x[0, i], 0), (X,)),
    "captured in both": (
        lambda m, x, y: m.while_loop(lambda c: c.sum() < y, lambda c: c + x, x * 0 + 1),
        (X, np.float32(99)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_like_jax(name: str) -> None:
    function, arguments = CASES[name]
    mine = run(lambda *xs: function(MINE, *xs), *arguments)
    assert_like_jax(mine, jax.jit(lambda *xs: function(THEIRS, *xs))(*map(jnp.asarray, arguments)), terms=4)


def test_only_one_branch_is_picked_out_of_range() -> None:
    found = run(lambda i: switch(i, [lambda: 10, lambda: 20, lambda: 30]), np.int32(-5))
    assert found == jax.lax.switch(-5, [lambda: 10, lambda: 20, lambda: 30])
    assert run(lambda i: switch(i, [lambda: 10, lambda: 20, lambda: 30]), np.int32(9)) == 30


def test_known_loops_say_how_often_they_run() -> None:
    def count(function: Callable[..., Any]) -> Any:
        (loop,) = [n for n in traced(function, TensorType("f32", (3, 4))).program.body.nodes if n.op.name == "while"]
        attrs: Any = loop.attrs
        return attrs.trip_count

    assert count(lambda x: fori_loop(2, 7, lambda i, c: c + 1, x)) == 5
    assert count(lambda x: scan(lambda c, r: (c, r), 0, x)) == 3
    assert count(lambda x: while_loop(lambda c: c.sum() < 1, lambda c: c + 1, x)) is None


def test_what_a_loop_only_reads_is_handed_on_untouched() -> None:
    made = traced(lambda x, w: fori_loop(0, 3, lambda i, c: c @ w, x), *[TensorType("f32", (4, 4))] * 2)
    (loop,) = [n for n in made.program.body.nodes if n.op.name == "while"]
    body = loop.regions[1]
    assert body.params[-1] is body.results[-1]
    assert loop.operands[-1] is made.program.body.params[1]


def test_numbers_from_outside_are_not_carried_through_twice() -> None:
    """One captured value used in both regions and several times is one carry."""
    made = traced(
        lambda x, y: while_loop(lambda c: c.sum() < y.sum(), lambda c: c + y * y, x), *[TensorType("f32", (4,))] * 2
    )
    (loop,) = [n for n in made.program.body.nodes if n.op.name == "while"]
    assert len(loop.operands) == 2


def test_cond_of_a_python_bool() -> None:
    assert run(lambda x: cond(True, lambda: gnp.sum(x), lambda: 0.0), X) == X.sum()


def test_rows_of_a_scan_have_the_dtype_that_the_carry_settles_on() -> None:
    x = np.full(3, 0.5, "f4")
    last, rows = run(lambda x: scan(lambda c, a: (c + a, c), 0, x), x)
    assert rows.dtype == np.float32 and rows.tolist() == [0, 0.5, 1] and last == 1.5
    last, rows = run(lambda x: scan(lambda c, a: (c + a, c), 0, x[:0]), x)
    assert rows.dtype == last.dtype == np.float32


def test_wide_indices_out_of_range_pick_the_nearest_branch() -> None:
    for i, wanted in ((np.uint32(2**32 - 1), 2), (np.uint32(0), 0), (np.int8(-3), 0), (np.int8(100), 2)):
        assert run(lambda i: switch(i, [lambda: 0, lambda: 1, lambda: 2]), i) == wanted
