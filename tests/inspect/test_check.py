"""What is left over where numbers cancel passes a check and bisection; a mistake does not, however well hidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType
from gspmd.driver import steps as driver_steps
from gspmd.inspect.check import Tally, compare_results
from gspmd.inspect.reference import UNITS, Reference, moved
from gspmd.ir.errors import ExecutionError
from gspmd.ir.graph import Program
from gspmd.kernels.finite import epsilon
from gspmd.ops.elementwise import ADD, SUBTRACT

Arrays = list[Any]
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128")


def _arrays(*shapes: tuple[int, ...]) -> Arrays:
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def _residual(devices: int) -> Callable[[Any, Any], Any]:
    mesh = gspmd.Mesh({"d": devices})

    def residual(a: Any, b: Any) -> Any:
        a = gspmd.shard(a, mesh, "d", None)
        left = b - a @ gnp.linalg.solve(a.T @ a, a.T @ b)
        return gnp.linalg.norm(left), left

    return residual


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_a_residual_passes_checks_and_bisection(devices: int) -> None:
    arrays = _arrays((6, 6), (6,))
    compiled = gspmd.compile(_residual(devices), *(TensorType("f32", x.shape) for x in arrays))
    report = compiled.check(*arrays)
    assert any(tally.uncertain for tally in report.stages.values())
    assert "8 times what moving the inputs by 2 units in the last place changes" in report.text()
    assert compiled.bisect(*arrays) is None


def test_a_mistake_in_a_residual_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = _arrays((6, 6), (6,))
    compiled = gspmd.compile(_residual(2), *(TensorType("f32", x.shape) for x in arrays))
    right = driver_steps.steps

    def steps(without: Any = ()) -> tuple[driver_steps.Step, ...]:
        return tuple(
            replace(s, run=lambda p, s=s: _added(s.run(p))) if s.name == "localize" else s for s in right(without)
        )

    monkeypatch.setattr(driver_steps, "steps", steps)
    culprit = compiled.bisect(*arrays)
    assert culprit is not None and culprit.name == "localize"
    assert "subtract(%b" in culprit.op


def _added(program: Program) -> Program:
    """Adds wherever it should subtract."""
    nodes = tuple(replace(n, op=ADD) if n.op is SUBTRACT else n for n in program.body.nodes)
    return replace(program, body=replace(program.body, nodes=nodes))


def _attention(scores: Any, values: Any, shift: int) -> Any:
    """Causal attention in NumPy."""
    mask = np.tril(np.ones(scores.shape, bool), shift)
    weights = np.exp(np.where(mask, scores, -np.inf) - scores.max())
    return (weights / weights.sum(-1, keepdims=True)) @ values


Pair = tuple[Callable[..., Any], Callable[..., Any], Arrays]
WRONG: dict[str, Pair] = {
    "mask": (lambda s, v: _attention(s, v, 0), lambda s, v: _attention(s, v, 1), _arrays((6, 6), (6, 4))),
    "mean": (lambda x: x.mean(0), lambda x: x.sum(0) / np.float32(len(x) - 1), _arrays((300, 4))),
    "sum for maximum": (lambda x: x.max(-1), lambda x: x.sum(-1), _arrays((5, 7))),
    "term": (lambda a, b, c: a @ b + c, lambda a, b, c: a @ b, _arrays((6, 5), (5, 4), (4,))),
    "padding": (lambda x: np.exp(x).sum(), lambda x: np.exp(x).sum() + np.float32(1), _arrays((37,))),
    "lost term of a residual": (lambda a, b: a @ b - a @ b[::1], lambda a, b: a @ b, _arrays((6, 6), (6,))),
    "mask of floats": (
        lambda m, x: np.where(m == 1, x, 0),
        lambda m, x: np.where(m == 1, x + x, 0),
        [np.tile(np.float32(1) - np.arange(2, dtype=np.float32), 4), *_arrays((8,))],
    ),
    "one element": (
        lambda x: np.float32(x * 2),
        lambda x: np.where(np.arange(8) == 3, x, x * 2).astype(np.float32),
        _arrays((8,)),
    ),
    "whole numbers": (lambda x: (x * x).sum(), lambda x: (x * x).sum() + 1, [np.arange(9, dtype=np.float32)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_no_rounding(name: str) -> None:
    right, wrong, arrays = WRONG[name]
    expected = Reference(lambda given: [np.asarray(right(*given))], arrays)
    assert compare_results([np.asarray(right(*arrays))], expected, "the same").uncertain == 0
    with pytest.raises(ExecutionError, match="more than rounding"):
        compare_results([np.asarray(wrong(*arrays))], expected, "another")


def test_integers_and_bools_have_no_allowance() -> None:
    def ranks(x: Any) -> Any:
        return [np.argsort(x), x > x.mean()]

    x = np.float32(1) + np.arange(5, dtype=np.float32) * np.float32(1e-7)
    expected = Reference(lambda given: ranks(*given), [x])
    for i, found in enumerate(expected.results):
        others = list(expected.results)
        others[i] = ~found if found.dtype == bool else found[::-1]
        assert expected.allowance(i) is None
        with pytest.raises(ExecutionError, match=f"result {i} differs"):
            compare_results(others, expected, "another")


def test_the_reference_runs_again_only_where_something_differs() -> None:
    calls: list[int] = []

    def run(given: Any) -> Any:
        calls.append(1)
        return [given[0] * 2]

    expected = Reference(run, _arrays((4,)))
    tally = compare_results(expected.results, expected, "the same")
    assert (len(calls), tally.uncertain) == (1, 0) and "moving" not in tally.text()
    for _ in range(2):
        with pytest.raises(ExecutionError):
            compare_results([expected.results[0] + 1], expected, "another")
    assert len(calls) == 4
    assert (Tally(2, 1.0, 2.0, 1) + Tally(3, 0.5, 9.0, 2)) == Tally(5, 1.0, 2.0, 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_moved_numbers_keep_dtype_and_stay_near_and_finite(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(2)
    top = float(ml_dtypes.finfo(kind).max)
    x = np.append(rng.standard_normal(200), [0.0, top, -top, np.inf, np.nan]).astype(kind)
    found = moved(x, np.random.default_rng(0))
    assert found.dtype == kind and found.shape == x.shape
    assert found.tobytes() == moved(x, np.random.default_rng(0)).tobytes()
    wide = np.complex128 if kind.kind == "c" else np.float64
    before, after = x.astype(wide), found.astype(wide)
    finite = np.isfinite(before)
    assert np.array_equal(np.isfinite(after), finite) and found[200] == 0
    with np.errstate(all="ignore"):
        steps = np.abs(after - before)[finite] / (np.abs(before)[finite] * epsilon(kind) + epsilon(kind) ** 2)
    assert steps.max() <= UNITS + 1 and (steps[:200] > 0).mean() > 0.4
