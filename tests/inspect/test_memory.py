"""The memory estimate against the truth: what a run holds after each op, on all devices together.

The law: equal, but for scalars, where no op's result is a view of another's and all branches hold as much; else never
more than estimated, and at least half of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType
from gspmd.ir.errors import UsageError
from tests.inspect.measured import Meter
from tests.inspect.programs import ALL as PROGRAMS
from tests.inspect.programs import Function, looped, summed

MESH = gspmd.Mesh({"data": 2, "model": 2})
TYPES = TensorType("f32", (64, 64)), TensorType("f32", (64, 128)), TensorType("f32", (128, 64))
SCALARS = 128  # bytes a device: counters and constants


def matmuls(x: Any, w: Any, v: Any) -> Any:
    x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, None, "model")
    return gnp.tanh(gnp.tanh(x @ w) @ v) @ w


def reduced(x: Any, w: Any, v: Any) -> Any:
    x, w = gspmd.shard(x, MESH, "data", "model"), gspmd.shard(w, MESH, "model", None)
    return gnp.sum(x @ w @ v, axis=0)


def nested(x: Any, w: Any, v: Any) -> Any:
    x = gspmd.shard(x, MESH, "data", None)

    def outer(i: Any, c: Any) -> Any:
        return gspmd.fori_loop(0, 2, lambda j, d: gnp.exp(d) @ w @ v, c) * 2.0

    return gspmd.fori_loop(0, 3, outer, gnp.cos(x))


def either(x: Any, w: Any, v: Any) -> Any:
    x = gspmd.shard(x, MESH, "data", None)
    return gspmd.cond(gnp.sum(x) > 0.0, lambda: gnp.tanh(x @ w) @ v, lambda: gnp.cos(x @ w) @ v)


def large(x: Any, w: Any, v: Any) -> Any:
    """Groups of ops run as one kernel."""
    x = gspmd.shard(gnp.tile(gnp.concatenate([x, x]), (4, 8)), MESH, "data", "model")
    return gnp.tanh(x * 2.0 + 1.0) * gnp.exp(x), gnp.sum(gnp.exp(x) * x, axis=1)


def swapped(x: Any, w: Any, v: Any) -> Any:
    x = gspmd.shard(x, MESH, "data", None)
    return gspmd.fori_loop(0, 4, lambda i, c: (c[1], gnp.sin(c[0]), c[2]), (x, x * 2.0, w))


def viewing(x: Any, w: Any, v: Any) -> Any:
    x = gspmd.shard(x, MESH, "data", "model")
    y = gnp.reshape(gnp.transpose(gnp.tanh(x @ w)), (-1,))
    return gspmd.shard(gnp.reshape(y, (64, 128)), MESH, None, ("data", "model")) + 1.0


EXACT = (matmuls, reduced, looped, nested, either, summed)


def measured(function: Function, monkeypatch: pytest.MonkeyPatch, donate: tuple[int, ...]) -> tuple[int, int]:
    """The estimate and the truth, in bytes on all devices."""
    meter = Meter(monkeypatch)
    c = gspmd.compile(function, *TYPES, mesh=MESH, donate=donate)
    rng = np.random.default_rng(0)
    held: list[Any] = []
    for type_, placed in zip(TYPES, c.input_types, strict=True):
        x = rng.standard_normal(type_.shape).astype(np.float32)
        assert placed.sharding is not None
        held.append(gspmd.from_callback(type_, placed.sharding, lambda index, x=x: x[index].copy()))
        meter.see(held[-1].shards)
    c(*held)
    return c.memory().peak * MESH.size, meter.most


@pytest.mark.parametrize("donate", [(), (0, 1, 2)], ids=["kept", "donated"])
@pytest.mark.parametrize("function", EXACT, ids=lambda f: f.__name__)
def test_the_estimate_is_what_a_run_holds(function: Function, donate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    estimate, truth = measured(function, monkeypatch, donate)
    assert 0 <= estimate - truth <= SCALARS * MESH.size


OTHERS = [f for f in (*PROGRAMS, large, swapped, viewing) if f not in EXACT]


@pytest.mark.parametrize("donate", [(), (0, 1, 2)], ids=["kept", "donated"])
@pytest.mark.parametrize("function", OTHERS, ids=lambda f: f.__name__)
def test_a_run_never_holds_more(function: Function, donate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    estimate, truth = measured(function, monkeypatch, donate)
    assert truth <= estimate <= 2 * truth + SCALARS * MESH.size


def test_the_peak_is_told_with_what_lives_there() -> None:
    c = gspmd.compile(matmuls, *TYPES)
    memory = c.memory()
    assert sum(held.bytes for held in memory.held) == memory.peak
    assert [held.bytes for held in memory.held] == sorted((held.bytes for held in memory.held), reverse=True)
    assert memory.line.startswith("tests/inspect/test_memory.py:") and memory.op
    text = memory.text()
    assert text.startswith(f"peak memory a device: {memory.peak / 1024:.1f} KiB in {memory.op} at tests/inspect")
    assert "%w f32[64, 64]" in text
    assert gspmd.compile(matmuls, *TYPES, donate=[0]).memory().arguments < memory.arguments


def test_memory_is_known_of_whole_compilations_only() -> None:
    with pytest.raises(UsageError, match="no scheduled stage"):
        gspmd.compile(matmuls, *TYPES, until="local").memory()
