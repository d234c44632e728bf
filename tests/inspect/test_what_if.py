"""What if a value were annotated otherwise: the same as if the user had written it so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType
from gspmd.driver.steps import OPTIONAL
from gspmd.inspect.annotating import with_annotations
from gspmd.inspect.collectives import collectives_of, wire_of
from gspmd.ir.errors import UsageError
from gspmd.ir.printer import value_names
from gspmd.ir.sharding import parse_sharding
from tests.inspect.programs import MESH, TYPES, compiled, gathered, looped, shifted

Entries = tuple[str | None, str | None]
SHARDINGS: list[Entries] = [
    (None, None),
    ("model", None),
    (None, "model"),
    ("data", "model"),
    ("model", "data"),
    ("data", None),
]


def text(entries: Entries) -> str:
    return f"[{', '.join(e or '_' for e in entries)}]"


def on_input(entries: Entries) -> Callable[..., Any]:
    def f(x: Any, w: Any, v: Any) -> Any:
        x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, *entries)
        return gnp.tanh(x @ w) @ v

    return f


def on_result(entries: Entries | None) -> Callable[..., Any]:
    def f(x: Any, w: Any, v: Any) -> Any:
        x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, None, "model")
        h = gnp.tanh(x @ w)
        h = h if entries is None else gspmd.shard(h, MESH, *entries)
        return h @ v + gnp.sum(h)

    return f


def in_loop(entries: Entries | None) -> Callable[..., Any]:
    def f(x: Any, w: Any, v: Any) -> Any:
        x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, "model", None)

        def step(i: Any, c: Any) -> Any:
            h = gnp.tanh(c @ v)
            return (h if entries is None else gspmd.shard(h, MESH, *entries)) @ w

        return gspmd.fori_loop(0, 3, step, x @ w)

    return f


def compile(function: Callable[..., Any]) -> gspmd.Compiled:
    return gspmd.compile(function, *TYPES, mesh=MESH)


def named(c: gspmd.Compiled, op: str, last: bool = False) -> str:
    """The printed name of what the first or last op of a kind makes."""
    program = c.stage("annotated").program
    found = [value_names(program)[n.results[0]] for n in program.body.walk() if n.op.name == op]
    return found[-1 if last else 0]


@pytest.mark.parametrize("entries", SHARDINGS, ids=text)
def test_an_inputs_annotation_is_replaced(entries: Entries) -> None:
    found = compile(on_input(("data", "model"))).what_if({"w": text(entries)})
    fresh = compile(on_input(entries))
    assert found.wire_bytes[1] == fresh.cost().wire_bytes
    assert found.peak_memory[1] == fresh.memory().peak
    assert found.collectives[1] == len(fresh.collectives())


@pytest.mark.parametrize("entries", SHARDINGS, ids=text)
@pytest.mark.parametrize("function", [on_result, in_loop], ids=lambda f: f.__name__)
def test_a_value_on_the_way_is_annotated(function: Callable[..., Any], entries: Entries) -> None:
    fresh = compile(function(entries))
    for c in (compile(function(None)), compile(function(("data", "model")))):
        found = c.what_if({named(c, "tanh", last=True): text(entries)})
        assert found.wire_bytes == (c.cost().wire_bytes, fresh.cost().wire_bytes)
        assert found.peak_memory == (c.memory().peak, fresh.memory().peak)
        assert found.collectives == (len(c.collectives()), len(fresh.collectives()))
        assert {kind for kind, (_, after) in found.kinds.items() if after} == fresh.cost().kinds.keys()


def test_what_is_there_changes_nothing() -> None:
    for c, name in ((compiled(gathered), "w"), (compiled(looped), "%x")):
        sharding = c.shardings()[name.removeprefix("%")]
        found = c.what_if({name: sharding})
        assert found.wire_bytes[0] == found.wire_bytes[1] and not found.shardings
        assert "no sharding changes" in found.text() and "as before" in found.text()


@pytest.mark.parametrize("without", [(name,) for name in OPTIONAL] + [OPTIONAL], ids=",".join)
def test_what_was_left_out_is_left_out_again(without: tuple[str, ...]) -> None:
    c = gspmd.compile(shifted, *TYPES, mesh=MESH, without=without)
    found = c.what_if({"x": c.shardings()["x"]})
    assert found.wire_bytes == (c.cost().wire_bytes,) * 2
    assert found.collectives == (len(c.collectives()),) * 2
    assert found.peak_memory == (c.memory().peak,) * 2
    assert all(c.explain_collective(i, search=False).why for i in range(len(c.collectives())))


def test_names_of_other_values_stay() -> None:
    program = compiled(looped).stage("annotated").program
    before = value_names(program)
    for value, name in before.items():
        if value.type.rank == 2:
            after = with_annotations(program, {value: parse_sharding("[data, _]", MESH)})
            assert set(before.values()) <= set(value_names(after).values()) <= {*before.values(), f"{name}_annotated"}


def test_the_text() -> None:
    c = compile(on_input(("data", "model")))
    found = c.what_if({"%w": "[_,model]"})
    lines = found.text().splitlines()
    assert lines[0] == "if %w is annotated [_, model]"
    assert lines[1] == "  wire bytes a device: 2048 B -> 1024 B (-1024 B)"
    assert "    all_gather: 1024 B -> 0 B (-1024 B)" in lines
    assert "  collectives: 2 -> 1" in lines
    assert lines[-2].startswith("    %w: [16@data, 64@model] -> [16, 64@model]")
    assert [c.bytes for c in found.shardings] == sorted((c.bytes for c in found.shardings), reverse=True)
    assert found.wire_bytes[0] == wire_of(collectives_of(c.stage("optimized").program))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ww": "[_, _]"}, r"no value %ww[\s\S]*did you mean %w"),
        ({"w": "[rows, _]"}, "%w: .*no axis 'rows'"),
        ({"w": "[_]"}, "%w: .*has 1 dimensions"),
        ({"w": "model"}, "%w: 'model' is no sharding"),
        ({"w": "[data, data]"}, "%w: a sharding can use an axis once"),
        ({"w": ("model", None)}, r"%w: \('model', None\) is no sharding"),
        ({"w": gspmd.PartitionSpec("model")}, "%w: .* is no sharding"),
        ({}, "what if what"),
        (["w"], "annotates no values"),
        ({"w": gspmd.Sharding.of(gspmd.Mesh({"z": 2}), "z", None)}, "%w: the sharding is on the mesh"),
    ],
)
def test_mistakes_are_named(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compiled(gathered).what_if(given)


def test_a_program_without_its_source_cannot_be_annotated() -> None:
    for stage in ("propagated", "scheduled"):
        c = gspmd.compile(compiled(gathered).stage(stage))
        with pytest.raises(UsageError, match="no annotated stage"):
            c.what_if({"w": "[_, _]"})


def test_a_program_without_a_mesh_takes_the_one_it_is_compiled_for() -> None:
    c = gspmd.compile(lambda x: gnp.sum(x * 2.0), TensorType("f32", (8,)), mesh=gspmd.Mesh({"d": 4}))
    found = c.what_if({"x": "[d]"})
    assert found.wire_bytes[0] == 0 < found.wire_bytes[1]


def test_a_value_is_found_by_its_path_as_python_writes_it() -> None:
    def f(params: Any, x: Any) -> Any:
        return gnp.tanh(x @ gspmd.shard(params["layers"][0]["w"], MESH, None, "model"))

    types = {"layers": [{"w": TensorType("f32", (8, 8))}]}
    c = gspmd.compile(f, types, TensorType("f32", (4, 8)))
    for name in ("%params.layers_0_.w", "params.layers[0].w", "params['layers'][0]['w']", 'params["layers"][0]["w"]'):
        assert c.explain(name).text().startswith("%params.layers_0_.w: f32[8, 8@model]")
    with pytest.raises(UsageError, match=r"did you mean %params.layers_0_.w\?"):
        c.explain("w")
