"""gspmd.random: jax.random's numbers, the same for every layout, and distributions that are what they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import random
from gspmd.ir.errors import TraceError
from gspmd.kernels.closeness import compare
from tests.frontend.support import run

SEED = 20240607

# Each is given gspmd.random and gspmd.numpy, or jax's.
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "key": lambda r, n: n.asarray(_key(r)),
    "split": lambda r, n: r.split(_key(r)),
    "split to a shape": lambda r, n: r.split(_key(r), (2, 3)),
    "split of a split": lambda r, n: r.split(r.split(_key(r), 3)[1]),
    "fold_in": lambda r, n: r.fold_in(_key(r), 77),
    "fold_in of a traced number": lambda r, n: r.fold_in(_key(r), n.asarray(np.int32(5)) + 1),
    "bits": lambda r, n: r.bits(_key(r), (4, 6)),
    "bits of 8": lambda r, n: r.bits(_key(r), (4, 6), np.uint8),
    "bits of a scalar": lambda r, n: r.bits(_key(r)),
    "uniform": lambda r, n: r.uniform(_key(r), (3, 5, 2)),
    "uniform f16": lambda r, n: r.uniform(_key(r), (4, 6), np.float16),
    "uniform bf16": lambda r, n: r.uniform(_key(r), (4, 6), jnp.bfloat16),
    "bernoulli": lambda r, n: r.bernoulli(_key(r), 0.3, (4, 6)),
    "bernoulli of an array": lambda r, n: r.bernoulli(_key(r), n.asarray(np.linspace(0, 1, 9, dtype=np.float32))),
    "randint": lambda r, n: r.randint(_key(r), (4, 6), -5, 100),
    "randint i8": lambda r, n: r.randint(_key(r), (4, 6), -128, 128, np.int8),
    "randint u32": lambda r, n: r.randint(_key(r), (4, 6), 3, np.uint32(4000000000), np.uint32),
    "randint of all": lambda r, n: r.randint(_key(r), (4, 6), -(2**31), 2**31 - 1),
    "randint of nothing": lambda r, n: r.randint(_key(r), (4,), 3, 3),
    "randint below a traced number": lambda r, n: r.randint(_key(r), (4, 6), 0, n.asarray(np.int32(9)) + 1),
}
CLOSE: dict[str, Callable[[Any, Any], Any]] = {
    "uniform between": lambda r, n: r.uniform(_key(r), (4, 6), minval=-2.0, maxval=3.0),
    "normal": lambda r, n: r.normal(_key(r), (4, 6)),
    "exponential": lambda r, n: r.exponential(_key(r), (4, 6)),
    "truncated_normal": lambda r, n: r.truncated_normal(_key(r), -1.0, 2.0, (4, 6)),
}


def _key(module: Any) -> Any:
    return module.key(SEED) if module is random else module.PRNGKey(SEED)


@pytest.mark.parametrize("name", (*EXACT, *CLOSE))
def test_numbers_are_jaxs(name: str) -> None:
    function = (EXACT | CLOSE)[name]
    mine, theirs = run(lambda: function(random, gnp)), np.asarray(function(jax.random, jnp))
    # JAX's own erf_inv in f32 is an approximation of some digits.
    verdict = compare(mine, theirs, exact=name in EXACT, terms=64)
    assert verdict.ok, verdict.message


def test_numbers_do_not_depend_on_the_layout() -> None:
    def draw(x: Any) -> Any:
        key = random.key(3)
        return x + random.normal(key, (6, 10)), random.randint(random.split(key)[0], (6, 10), 0, 50)

    x = np.zeros((6, 10), np.float32)
    plain = run(draw, x)
    for axes in (("a", None), (None, "a"), ("a", "b"), (("a", "b"), None)):
        mesh = gspmd.Mesh({"a": 2, "b": 3})

        def sharded(x: Any, axes: Any = axes, mesh: gspmd.Mesh = mesh) -> Any:
            noisy, whole = draw(gspmd.shard(x, mesh, *axes))
            return gspmd.shard(noisy, mesh, *axes), gspmd.shard(whole, mesh, *axes)

        compiled = gspmd.compile(gspmd.trace(sharded, gspmd.TensorType("f32", (6, 10))), mesh=mesh)
        found = compiled.simulate(x)
        assert [c for c in compiled.collectives() if c.wire_bytes] == []
        for a, b in zip(found, plain, strict=True):
            verdict = compare(np.asarray(a), b, exact=True)
            assert verdict.ok, f"{axes}: {verdict.message}"


def test_distributions_have_their_moments() -> None:
    def draw() -> Any:
        a, b, c, d, e = (random.split(random.key(1), 5)[i] for i in range(5))
        return (
            random.normal(a, (20000,)),
            random.exponential(b, (20000,)),
            random.gumbel(c, (20000,)),
            random.uniform(d, (20000,)),
            random.categorical(e, gnp.log(gnp.full((20000, 2), np.array([0.25, 0.75], np.float32)))),
        )

    expected = [(0, 1), (1, 1), (0.5772, np.pi / np.sqrt(6)), (0.5, 12**-0.5), (0.75, (3 / 16) ** 0.5)]
    for x, (mean, deviation) in zip(run(draw), expected, strict=True):
        assert abs(x.mean() - mean) < 5 * deviation / np.sqrt(20000)
        assert abs(x.std() / deviation - 1) < 0.05


def test_a_permutation_has_every_element_once() -> None:
    order, rows = run(lambda x: (random.permutation(random.key(4), 30), random.permutation(random.key(5), x)), ROWS)
    assert sorted(order) == list(range(30)) and list(order) != sorted(order)
    assert sorted(rows[:, 0]) == list(ROWS[:, 0]) and list(rows[:, 0]) != list(ROWS[:, 0])
    assert (rows[:, 1] == rows[:, 0] + 1).all()


ROWS = np.arange(40, dtype=np.int32).reshape(20, 2)


def test_gradients_flow_into_bounds_and_not_into_keys() -> None:
    def loss(high: Any) -> Any:
        return gnp.sum(random.uniform(random.key(2), (5,), minval=0.0, maxval=high))

    slope, unit = run(lambda h: (gspmd.grad(loss)(h), loss(1.0)), np.float32(3.0))
    assert compare(slope, unit, terms=5).ok


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: random.uniform(gnp.zeros(3), (4,)), "random.C1"),
        (lambda: random.bits(random.key(0), (4,), "i32"), "random.C2"),
        (lambda: random.normal(random.key(0), (4,), "i32"), "random.C3"),
        (lambda: random.randint(random.key(0), (4,), 0, 3, "f32"), "random.C4"),
    ],
)
def test_what_is_no_key_or_dtype_is_refused(call: Callable[[], Any], rule: str) -> None:
    with pytest.raises(TraceError, match=rule):
        run(call)
