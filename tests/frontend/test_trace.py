"""Tracing: nestings, names, meshes, locations, what the program looks like."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import gspmd.numpy as gnp
from gspmd.driver.annotate import mesh_split
from gspmd.frontend.annotate import shard_tracer
from gspmd.frontend.grad import grad
from gspmd.frontend.stop import STOP_GRADIENT
from gspmd.frontend.trace import trace
from gspmd.frontend.tree import flatten
from gspmd.ir.errors import GspmdError, ShardingError
from gspmd.ir.mesh import Mesh
from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops import OPS
from tests.frontend.support import run, traced

MESH = Mesh({"data": 2, "model": 4})
F = TensorType("f32", (8, 4))


class Layer(NamedTuple):
    w: Any
    b: Any


@dataclass
class Model:
    layers: list[Layer]
    scale: Any


def test_nestings_round_trip() -> None:
    tree = {"b": [1, (2, None)], "a": Layer(3, {"x": 4}), "m": Model([Layer(5, 6)], 7)}
    leaves, definition = flatten(tree)
    assert leaves == [3, 4, 1, 2, 5, 6, 7]
    assert definition.unflatten(leaves) == tree
    assert definition == flatten(definition.unflatten(range(7)))[1]
    assert definition.size == 7
    assert definition.paths("p") == [
        "p.a.w",
        "p.a.b.x",
        "p.b[0]",
        "p.b[1][0]",
        "p.m.layers[0].w",
        "p.m.layers[0].b",
        "p.m.scale",
    ]
    for count in (6, 8):
        with pytest.raises(ValueError, match="leaves for a nesting of 7"):
            definition.unflatten(range(count))


def test_other_nestings_are_not_equal() -> None:
    trees = [[1, 2], (1, 2), {"a": 1, "b": 2}, {"a": 1, "c": 2}, Layer(1, 2), [1, [2]], [1, 2, None]]
    definitions = [flatten(t)[1] for t in trees]
    assert len(set(definitions)) == len(trees)
    assert flatten({"b": 1, "a": 2})[1] == flatten({"a": 1, "b": 2})[1]


def test_inputs_are_named_by_their_paths() -> None:
    def f(params: Any, *xs: Any, k: Any = None) -> Any:
        return {"y": params.layers[0].w + xs[0], "z": [xs[1], 2.0]}

    made = trace(f, Model([Layer(F, TensorType("f32", ()))], 1.0), F, 3)
    names = [v.name for v in made.program.body.params]
    assert names == ["params.layers[0].w", "params.layers[0].b", "params.scale", "xs[0]", "xs[1]"]
    assert made.program.name == "f"
    assert [t.text() for t in made.program.outputs] == ["f32[8, 4]", "i32[]", "f32[]"]
    assert made.out_tree.unflatten([0, 1, 2]) == {"y": 0, "z": [1, 2]}


def test_keywords_take_their_position() -> None:
    def f(x: Any, y: Any) -> Any:
        return x - y

    made = trace(f, TensorType("f32", ()), y=TensorType("f32", ()))
    assert [v.name for v in made.program.body.params] == ["x", "y"]
    made = trace(partial(f, 1.0), TensorType("f32", ()))
    assert len(made.program.inputs) == 1


def test_arguments_and_constants_as_results() -> None:
    x = np.arange(3, dtype="f4")
    found = run(lambda x: (x, x, 1, np.ones(2, "f4"), None), x)
    assert np.array_equal(found[0], x)
    assert found[2] == 1 and found[2].dtype == np.int32
    assert found[4] is None


def test_the_program_prints_and_parses() -> None:
    made = traced(lambda x: grad(lambda x: gnp.softmax(x).max())(x), F)
    text = print_program(made.program)
    assert print_program(parse_program(text, OPS)) == text


def test_dead_ops_and_marks_are_gone() -> None:
    def f(x: Any) -> Any:
        _ = gnp.exp(x)
        return gnp.stop_gradient(gnp.stop_gradient(x) + 1)

    made = trace(f, F)
    assert [n.op.name for n in made.program.body.nodes] == ["constant", "broadcast_in_dim", "add"]
    assert all(n.op is not STOP_GRADIENT for n in made.program.body.walk())


# -- annotations -----------------------------------------------------------------------------------------------------


def test_annotations() -> None:
    made = traced(lambda x: shard_tracer(x + 1, MESH, "data?", ("model",)) * 2, F)
    (node,) = [n for n in made.program.body.nodes if n.op.name == "sharding_constraint"]
    assert node.result.type.sharding == Sharding.of(MESH, "data?", "model")
    assert made.program.mesh == MESH
    assert all(t.sharding is None for t in made.program.inputs + made.program.outputs)


def test_the_papers_way_to_annotate() -> None:
    made = traced(lambda x: mesh_split(x + 1, MESH, [1, -1]), F)
    assert made.program.outputs[0].sharding == Sharding.of(MESH, "model", None)


def test_an_annotated_input_has_an_annotated_type() -> None:
    def f(x: Any, y: Any) -> Any:
        a = shard_tracer(x, MESH, "data", None)
        b = shard_tracer(x, MESH, None, "model")
        return a + b + shard_tracer(y + 1, MESH, "data", None)

    made = traced(f, F, F)
    assert [t.sharding for t in made.program.inputs] == [Sharding.of(MESH, "data", None), None]


def test_an_input_annotated_under_a_gradient() -> None:
    made = traced(grad(lambda x: (shard_tracer(x, MESH, "data", None) ** 2).sum()), F)
    assert made.program.inputs[0].sharding == Sharding.of(MESH, "data", None)


def test_a_given_type_keeps_its_sharding() -> None:
    made = traced(lambda x: x + 1, F.with_sharding(Sharding.of(MESH, "model", None)))
    assert made.program.mesh == MESH
    assert made.program.inputs[0].sharding is not None
    assert trace(lambda x: x, F, mesh=MESH).program.mesh == MESH
    assert trace(lambda x: x, F).program.mesh is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (("data",), "1 entries for a value of 2 dimensions"),
        (("data", "rows"), r"no axis 'rows'(.|\n)*data, model"),
        (("data", "data"), "can use an axis once"),
        ((("data", "model"), "model"), "can use an axis once"),
    ],
)
def test_wrong_annotations(entries: Any, message: str) -> None:
    with pytest.raises(ShardingError, match=message) as caught:
        trace(lambda x: shard_tracer(x, MESH, *entries), F)
    assert line_of(caught.value) == "trace(lambda x: shard_tracer(x, MESH, *entries), F)"


def test_two_meshes() -> None:
    other = Mesh({"x": 4})
    with pytest.raises(ShardingError, match=r"x=4(.|\n)*data=2, model=4(.|\n)*first at .*test_trace.py"):
        trace(lambda x: shard_tracer(x, MESH, "data", None) + shard_tracer(x, other, "x", None), F)


def line_of(error: GspmdError) -> str:
    """The text of the line that an error names."""
    assert error.loc is not None
    with open(error.loc.file) as file:
        return file.read().splitlines()[error.loc.line - 1].strip()


# -- speed -----------------------------------------------------------------------------------------------------------


def test_tracing_is_fast() -> None:
    """11,000 ops in a second would be 90 us each; twice that is allowed for a busy machine."""

    def deep(x: Any) -> Any:
        for _ in range(1100):
            x = gnp.tanh(x) * x + 1.0
        return x

    trace(deep, F)
    start = time.process_time()
    made = trace(deep, F)
    spent = time.process_time() - start
    assert spent / len(made.program.body.nodes) < 180e-6
