"""What users may say besides a split: priorities, groups, barriers, and shardings on a second mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.ir.errors import ShardingError
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.runtime.layout import shard_index

MESH = gspmd.Mesh({"a": 2, "b": 4})
SQUARE = gspmd.TensorType("f32", (8, 8))


def compiled(function: Callable[..., Any], *types: gspmd.TensorType) -> gspmd.Compiled:
    """The program, checked at every stage on numbers that differ."""
    c = gspmd.compile(gspmd.trace(function, *types))
    c.check(*(np.arange(t.size, dtype=np.float32).reshape(t.shape) / t.size for t in types))
    return c


def outputs(c: gspmd.Compiled) -> list[str]:
    """The shardings of the results at stage propagated."""
    types = c.stage("propagated").output_types
    return [t.sharding.text() for t in types if t.sharding is not None]


# -- priorities ------------------------------------------------------------------------------------------------------


def dot(x_entry: str, w_entry: str) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        return gnp.tanh(gspmd.shard(x, MESH, x_entry, None)) @ gspmd.shard(w, MESH, None, w_entry)

    return f


@pytest.mark.parametrize(
    ("x", "w", "expected"),
    [("a#1", "a", "[_, a]"), ("a", "a#1", "[a, _]"), ("a?#2", "a?#1", "[_, a]"), ("a#1", "b", "[a, b]")],
)
def test_a_lower_priority_is_heard_first(x: str, w: str, expected: str) -> None:
    """Both would split the product over one axis: the earlier round decides."""
    assert outputs(compiled(dot(x, w), SQUARE, SQUARE)) == [expected]


def test_an_open_dimension_of_a_later_round_grows_only_then() -> None:
    """In round 0 the chain passes the unheard dimension by, and the axis goes to the other one."""

    def f(x: Any, y: Any) -> Any:
        x = gspmd.shard(x, MESH, "?#1", "?")
        y = gspmd.shard(y, MESH, "a", None)
        return x + y, gnp.transpose(x) * gspmd.shard(y, MESH, "a", None)

    c = compiled(f, SQUARE, SQUARE)
    held = c.stage("propagated").program.body.nodes[0].result.type.sharding
    assert held is not None and held.text() == "[_, a]"


def test_annotations_keep_their_axes_whatever_the_round() -> None:
    def f(x: Any) -> Any:
        return gspmd.shard(gnp.sin(gspmd.shard(x, MESH, "a#3", "b?#1")), MESH, "b", "a#2")

    assert outputs(compiled(f, SQUARE)) == ["[b, a]"]


def test_priority_is_text() -> None:
    sharding = Sharding.of(MESH, "a?#1", "#2", "b")
    assert sharding.text() == "[a?#1, _#2, b]"
    module = gspmd.trace(lambda x: gspmd.shard(x, MESH, "a?#7", "?#1"), SQUARE)
    assert "f32[8@a?#7, 8@?#1]" in module.text()


# -- groups ----------------------------------------------------------------------------------------------------------


def test_values_of_an_exact_group_are_sharded_alike() -> None:
    def f(x: Any, y: Any) -> Any:
        x, y = gspmd.shard(x, MESH, "a", "?"), gspmd.shard(y, MESH, "?", "a")
        return gspmd.shard_as(gnp.sin(x), gnp.cos(y))

    first, second = outputs(compiled(f, SQUARE, SQUARE))
    assert first == second != "[_, _]"


def test_a_group_carries_a_sharding_where_no_op_does() -> None:
    def grouped(x: Any, y: Any) -> Any:
        return gspmd.shard_like(gnp.sin(gspmd.shard(x, MESH, "a", "b")), gnp.cos(y))

    def alone(x: Any, y: Any) -> Any:
        return gnp.sin(gspmd.shard(x, MESH, "a", "b")), gnp.cos(y)

    assert outputs(compiled(grouped, SQUARE, SQUARE)) == ["[a, b]", "[a, b]"]
    assert outputs(compiled(alone, SQUARE, SQUARE)) == ["[a, b]", "[_, _]"]


def test_a_loose_group_lets_annotations_differ() -> None:
    def f(x: Any, y: Any) -> Any:
        x, y = gspmd.shard_like(x, y)
        return gspmd.shard(x, MESH, "a", None), gspmd.shard(y, MESH, None, "b")

    assert outputs(compiled(f, SQUARE, SQUARE)) == ["[a, _]", "[_, b]"]


def test_groups_of_different_shapes_are_refused() -> None:
    with pytest.raises(ShardingError, match=r"values of one shape.*f32\[8, ?8\], f32\[8\]"):
        gspmd.trace(lambda x, y: gspmd.shard_as(x, y), SQUARE, gspmd.TensorType("f32", (8,)))


def test_gradients_flow_through_groups_and_barriers() -> None:
    def loss(x: Any) -> Any:
        y, z = gspmd.shard_as(gnp.sin(x), gnp.cos(x))
        return gnp.sum(gspmd.propagation_barrier(y, "forward") * z)

    x = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    module = gspmd.trace(gspmd.grad(loss), SQUARE)
    np.testing.assert_allclose(module.run(x), np.cos(2 * x), rtol=1e-5)


# -- barriers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "forward", "backward"),
    [("none", "[_, _]", "[_, _]"), ("forward", "[a, _]", "[_, _]"), ("backward", "[_, _]", "[_, b]")],
)
def test_a_barrier_lets_shardings_pass_in_one_direction(allowed: Any, forward: str, backward: str) -> None:
    def into(x: Any) -> Any:
        return gspmd.propagation_barrier(gspmd.shard(x, MESH, "a", None), allowed) * 2

    def back(x: Any) -> Any:
        y = gnp.sin(x)
        return y, gspmd.shard(gspmd.propagation_barrier(y, allowed), MESH, None, "b")

    assert outputs(compiled(into, SQUARE)) == [forward]
    assert outputs(compiled(back, SQUARE))[0] == backward


# -- several meshes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mesh", "entries", "expected"),
    [
        (gspmd.Mesh({"x": 8}), ("x", None), "[a+b, _]"),
        (gspmd.Mesh({"u": 4, "v": 2}), ("u", "v"), "[a+b:(1)2, b:(2)2]"),
        (gspmd.Mesh({"u": 4, "v": 2}, [0, 4, 1, 5, 2, 6, 3, 7]), ("u", "v"), "[b, a]"),
        (gspmd.Mesh({"p": 2, "q": 2, "r": 2}, [0, 2, 1, 3, 4, 6, 5, 7]), (("q", "r"), "p"), "[b:(2)2+b:(1)2, a]"),
        (gspmd.Mesh({"one": 1, "x": 8}), ("one", "x"), "[_, a+b]"),
    ],
)
def test_a_second_mesh_is_said_in_the_axes_of_the_first(mesh: gspmd.Mesh, entries: Any, expected: str) -> None:
    def f(x: Any) -> Any:
        return gspmd.shard(gnp.sin(gspmd.shard(x, MESH, "a", None)), mesh, *entries)

    c = compiled(f, SQUARE)
    assert outputs(c) == [expected]
    # Where each device's part lies is what the second mesh says.
    said, got = Sharding.of(mesh, *entries), c.stage("propagated").output_types[0].sharding
    assert got is not None
    for i in range(mesh.size):
        at = next(j for j in range(MESH.size) if MESH.device(j) == mesh.device(i))
        assert shard_index(TensorType("f32", (8, 8), said), i) == shard_index(TensorType("f32", (8, 8), got), at)


@pytest.mark.parametrize(
    ("mesh", "words"),
    [
        (gspmd.Mesh({"x": 4}), "different devices"),
        (gspmd.Mesh({"x": 8}, [0, 1, 3, 2, 4, 5, 6, 7]), "no product of pieces"),
    ],
)
def test_a_mesh_that_does_not_fit_is_refused_at_its_line(mesh: gspmd.Mesh, words: str) -> None:
    def f(x: Any) -> Any:
        return gspmd.shard(gspmd.shard(x, MESH, "a", None), mesh, "x", None)

    with pytest.raises(ShardingError, match=words) as caught:
        gspmd.trace(f, SQUARE)
    assert caught.value.loc is not None and caught.value.loc.text().split("/")[-1].startswith("test_annotations.py:")
