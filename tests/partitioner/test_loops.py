"""What a loop's body would send in every trip is sent once: sums behind it, what no trip changes before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.partitioner import loops
from gspmd.partitioner.planner import plan

MESH = gspmd.Mesh({"a": 2, "b": 2})
TRIPS = 6
Array = np.ndarray[Any, Any]


def split(*entries: str | None) -> gspmd.Sharding:
    return gspmd.Sharding.of(MESH, *entries)


def typed(shape: tuple[int, ...], *entries: str | None) -> gspmd.TensorType:
    return gspmd.TensorType("f32", shape, split(*entries) if entries else None)


def compiled(function: Callable[..., Any], *types: gspmd.TensorType) -> gspmd.Compiled:
    """Compile, and check every stage on arrays without structure."""
    c = gspmd.compile(function, *types)
    rng = np.random.default_rng(0)
    c.check(*(rng.standard_normal(t.shape).astype(np.float32) for t in types))
    return c


def uses(c: gspmd.Compiled) -> set[tuple[str, int]]:
    return {(use.kind, use.count) for use in c.collectives()}


def total(xs: Any, ys: Any, start: Any) -> Any:
    return gspmd.scan(lambda acc, at: (acc + at[0].T @ at[1], None), start, (xs, ys))[0]


@pytest.mark.parametrize("rows", [8, 7])
def test_a_sum_is_combined_behind_the_loop(rows: int) -> None:
    """It starts from a value that is not zero: only one device of a group may start from it."""
    xs, ys = typed((TRIPS, rows, 5), None, "a", None), typed((TRIPS, rows, 3), None, "a", None)
    assert uses(compiled(total, xs, ys, typed((5, 3)))) == {("all_reduce", 1)}


@pytest.mark.parametrize("rows", [16, 15])
def test_a_sum_that_is_split_over_the_same_axis_is_scattered_behind_the_loop(rows: int) -> None:
    xs, ys = typed((TRIPS, 512, rows), None, "a", None), typed((TRIPS, 512, 32), None, "a", None)
    c = compiled(total, xs, ys, typed((rows, 32), "a", None))
    (use,) = c.collectives()
    assert (use.kind, use.count, c.output_types[0].sharding) == ("reduce_scatter", 1, split("a", None))


def test_sums_that_go_through_linear_ops_are_combined_behind_the_loop() -> None:
    """As gradients of a part of the weights do: padded, scaled, turned and added up with others."""

    def f(xs: Any, ys: Any) -> Any:
        def step(acc: Any, at: tuple[Any, Any]) -> Any:
            x, y = at
            upper, lower = gnp.pad(x.T @ y, ((0, 5), (0, 0))), gnp.pad((y.T @ x).T * 0.5, ((5, 0), (0, 0)))
            return acc + upper + lower, None

        return gspmd.scan(step, gnp.zeros((10, 3)), (xs, ys))[0]

    xs, ys = typed((TRIPS, 8, 5), None, "a", None), typed((TRIPS, 8, 3), None, "a", None)
    assert uses(compiled(f, xs, ys)) == {("all_reduce", 1)}


def test_a_sum_that_the_body_reads_is_combined_in_every_trip() -> None:
    def f(xs: Any, ys: Any, start: Any) -> Any:
        return gspmd.scan(lambda acc, at: (acc + at[0].T @ at[1] * gnp.max(acc), None), start, (xs, ys))[0]

    xs, ys = typed((TRIPS, 8, 5), None, "a", None), typed((TRIPS, 8, 3), None, "a", None)
    assert uses(compiled(f, xs, ys, typed((5, 3)))) == {("all_reduce", TRIPS)}


def test_sums_in_nested_loops_are_combined_behind_the_outer_one() -> None:
    def f(xs: Any, ys: Any, start: Any) -> Any:
        return gspmd.scan(lambda acc, at: (acc + total(at[0], at[1], gnp.zeros((5, 3))), None), start, (xs, ys))[0]

    xs, ys = typed((3, TRIPS, 8, 5), None, None, "a", None), typed((3, TRIPS, 8, 3), None, None, "a", None)
    assert uses(compiled(f, xs, ys, typed((5, 3)))) == {("all_reduce", 1)}


def repeated(x: Any, w: Any) -> Any:
    return gspmd.fori_loop(0, TRIPS, lambda _, h: gspmd.shard(gnp.tanh(h @ w), MESH, "a", None), x)


def test_weights_are_gathered_before_the_loop() -> None:
    c = compiled(repeated, typed((64, 12), "a", None), typed((12, 12), "a", None))
    assert uses(c) == {("all_gather", 1)}


def test_what_does_not_fit_a_device_is_gathered_in_every_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_ROOM", 0)
    c = compiled(repeated, typed((64, 12), "a", None), typed((12, 12), "a", None))
    assert uses(c) == {("all_gather", TRIPS)}


@pytest.mark.parametrize("held", [("b", None), ("b", "a")])
def test_a_value_becomes_a_sum_for_nothing(held: tuple[str, str | None]) -> None:
    steps = plan((4, 4), 4, split(*held), gspmd.Sharding.of(MESH, "b", None, unreduced="a"))
    assert ([s.op.name for s in steps.steps], steps.wire_bytes) == (["hold_once"], 0.0)
