"""Shardings given beside a program are as good as annotations in it, and never go against those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType
from gspmd.ir.errors import UsageError
from gspmd.kernels.closeness import compare

MESH = gspmd.Mesh({"data": 2, "model": 2})
TYPES = (TensorType("f32", (7, 6)), {"w": TensorType("f32", (6, 4))})


def plain(x: Any, params: Any) -> Any:
    """A program without annotations."""
    return gnp.tanh(x @ params["w"])


def annotated(x: Any, params: Any) -> Any:
    """The same with annotations on an input, on what is computed, and open in a dimension."""
    x = gspmd.shard(x, MESH, "data", "?")
    return gspmd.shard(gnp.tanh(x @ gspmd.shard(params["w"], MESH, None, "model")), MESH, "data", None)


def test_given_shardings_compile_as_annotations_do() -> None:
    within = gspmd.compile(
        lambda x, params: plain(
            gspmd.shard(x, MESH, "data", None), {"w": gspmd.shard(params["w"], MESH, None, "model")}
        ),
        *TYPES,
    )
    for w in ("params['w']", "params.w", "%params.w"):
        beside = gspmd.compile(plain, *TYPES, mesh=MESH, shardings={"x": "[data, _]", w: "[_, model]"})
        assert [t.sharding for t in beside.input_types] == [t.sharding for t in within.input_types]
        assert [t.sharding for t in beside.output_types] == [t.sharding for t in within.output_types]
        assert [u.kind for u in beside.collectives()] == [u.kind for u in within.collectives()]
    x, w = np.ones((7, 6), np.float32), np.eye(6, 4, dtype=np.float32)
    assert compare(beside.simulate(x, {"w": w}), np.tanh(x @ w), terms=6)
    beside.check(x, {"w": w})
    assert beside.bisect(x, {"w": w}) is None


def test_a_computed_value_is_annotated_too() -> None:
    compiled = gspmd.compile(plain, *TYPES, mesh=MESH, shardings={"%0": "[model, _]"})
    assert compiled.output_types[0].sharding == gspmd.Sharding.of(MESH, "model", None)


def test_the_mesh_is_read_off_the_shardings() -> None:
    sharding = gspmd.Sharding.of(MESH, "data", None)
    compiled = gspmd.compile(plain, *TYPES, shardings={"x": sharding})
    assert compiled.mesh == MESH and compiled.input_types[0].sharding == sharding


def test_an_open_dimension_takes_more() -> None:
    for more in ("[data, model]", "[data, _]"):
        compiled = gspmd.compile(annotated, *TYPES, shardings={"x": more, "params.w": "[_, model]"})
        found = compiled.input_types[0].sharding
        assert found is not None and found.text() == more


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": "[data, _]"}, "no value %y"),
        ({"x": "[rows, _]"}, "%x: .*no axis 'rows'"),
        ({"x": "[data]"}, "%x: .*has 1 dimensions"),
        ({"params.w": "[_, model]", "%params.w": "[_, model]"}, "for one value, as params.w and as %params.w"),
        ({"x": "[model, _]"}, r"%x is annotated \[data, _\?\] in the program, which \[model, _\] contradicts"),
        ({"params.w": "[data, model]"}, r"%params\.w is annotated \[_, model\] in the program"),
        ({"params.w": "[_, _]"}, r"%params\.w is annotated \[_, model\] in the program"),
        (["x"], "annotates no values"),
    ],
)
def test_mistakes_are_named(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gspmd.compile(annotated, *TYPES, shardings=given)


def test_there_must_be_a_mesh_and_annotations_still_to_make() -> None:
    with pytest.raises(UsageError, match=r"no mesh whose axes[\s\S]*--mesh"):
        gspmd.compile(plain, *TYPES, shardings={"x": "[data, _]"})
    for stage in ("propagated", "scheduled"):
        late = gspmd.compile(annotated, *TYPES).stage(stage)
        with pytest.raises(UsageError, match=f"at stage {stage}"):
            gspmd.compile(late, shardings={"x": "[data, _]"})
