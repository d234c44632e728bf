"""What JAX computes is what we compute of what JAX lowers; sharded programs compile and give the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

import gspmd
from gspmd.ir.errors import UsageError
from gspmd.kernels.closeness import compare
from tests.interop import jax_programs
from tests.interop.jax_programs import CASES, Case


def check(got: Any, wanted: Any, case: Case | None = None) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    dtype, terms = (None, 16) if case is None else (case.dtype, case.terms)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert compare(np.asarray(mine), np.asarray(theirs), terms=terms, scale_dtype=dtype).message == ""


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_we_compute_what_jax_computes(case: Case) -> None:
    module = gspmd.from_jax(case.function, *case.arguments)
    check(module.run(*case.arguments), jax.jit(case.function)(*case.arguments), case)


# -- shardings ---------------------------------------------------------------------------------------------------------

MESH = AbstractMesh((2, 4), ("data", "model"))


def sharded(*entries: Any) -> NamedSharding:
    return NamedSharding(MESH, PartitionSpec(*entries))


def like(x: Any, *entries: Any) -> Any:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharded(*entries) if entries else None)


def layer(x: Any, params: Any) -> Any:
    h = jax.nn.gelu(x @ params["up"])
    h = jax.lax.with_sharding_constraint(h, sharded(PartitionSpec.UNCONSTRAINED, "model"))
    return {"y": h @ params["down"], "norm": jnp.sum(h * h)}


def test_named_shardings_become_annotations_and_the_program_runs_sharded() -> None:
    x, up, down = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((8, 6), (6, 16), (16, 6)))
    types = like(x, "data", None), {"up": like(up, None, "model"), "down": like(down, ("model", "data"), None)}
    module = gspmd.from_jax(layer, *types)
    text = module.text()
    assert "mesh @mesh = [data=2, model=4]" in text
    assert "%x: f32[8@data, 6]" in text and "f32[6, 16@model]" in text and "f32[16@model+data, 6]" in text
    assert "sharding=[_?, model]" in text
    compiled = gspmd.compile(module)
    params = {"up": up, "down": down}
    check(compiled.simulate(x, params), layer_alone(x, params))
    assert compiled.shardings()["dot_general"].text() == "[data, model]"
    assert compiled.explain("dot_general").text()


def layer_alone(x: Any, params: Any) -> Any:
    h = jax.nn.gelu(x @ params["up"])
    return {"y": h @ params["down"], "norm": jnp.sum(h * h)}


def test_shardings_of_a_jitted_function_are_kept() -> None:
    f = jax.jit(
        lambda x, w: x @ w, in_shardings=(sharded("data"), sharded(None, "model")), out_shardings=sharded("data")
    )
    x, w = np.ones((8, 6), np.float32), np.ones((6, 4), np.float32)
    compiled = gspmd.compile(gspmd.from_jax(f, like(x), like(w)))
    assert compiled.output_types[0].sharding == gspmd.Sharding.of(compiled.mesh, "data", None)
    check(compiled.simulate(x, w), x @ w)


@pytest.mark.parametrize(
    "name", ["rnn_gradient", "attention_gradient", "conv_gradient", "embedding_gradient", "cumsum", "sort"]
)
def test_programs_compile_for_many_devices(name: str) -> None:
    case = next(c for c in CASES if c.name == name)
    first, *rest = case.arguments
    mesh = AbstractMesh((2, 2), ("a", "b"))
    split = NamedSharding(mesh, PartitionSpec("a", *[None] * (first.ndim - 2), "b"))
    types = (jax.ShapeDtypeStruct(first.shape, first.dtype, sharding=split), *rest)
    compiled = gspmd.compile(gspmd.from_jax(case.function, *types))
    check(compiled.simulate(*case.arguments), jax.jit(case.function)(*case.arguments), case)


# -- names, lines, nesting ---------------------------------------------------------------------------------------------


def test_values_are_called_as_jax_calls_them_and_know_their_lines() -> None:
    def scoped(params: Any, x: Any) -> Any:
        with jax.named_scope("first"):
            return jnp.tanh(x @ params["w"])

    module = gspmd.from_jax(scoped, {"w": np.ones((3, 2), np.float32)}, np.ones((4, 3), np.float32))
    assert "%params.w: f32[3, 2], %x: f32[4, 3]" in module.text()
    (dot, tanh) = module.program.body.nodes
    assert (dot.result.name, tanh.result.name) == ("first.dot_general", "first.tanh")
    assert tanh.loc is not None and tanh.loc.file == __file__
    assert "jnp.tanh(x @" in Path(__file__).read_text("utf-8").splitlines()[tanh.loc.line - 1]


def test_a_scan_gets_its_trip_count() -> None:
    module = gspmd.from_jax(jax_programs.rnn, *jax_programs.RNN)
    assert "trip_count=5" in module.text()


def test_keywords_are_fixed_and_dtypes_are_those_of_jax() -> None:
    module = gspmd.from_jax(lambda x, power: x**power, np.arange(4, dtype=np.int8), power=3)
    assert [t.text() for t in module.input_types] == ["i8[4]"]
    assert module.run(np.arange(4, dtype=np.int8)).tolist() == [0, 1, 8, 27]


@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, x: Any) -> None:
        self.x = x

    def tree_flatten(self) -> Any:
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Box:
        return cls(*children)


def test_containers_of_jax_alone_are_refused() -> None:
    with pytest.raises(UsageError, match="an argument nests in Box"):
        gspmd.from_jax(lambda b: b.x + 1, Box(np.ones(3, np.float32)))
