"""Modules as other front ends write them: XLA's export from HLO (PyTorch/XLA), TensorFlow, torch-mlir, IREE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from jaxlib import _jax  # type: ignore[attr-defined]

import gspmd
from gspmd.ir.errors import UsageError
from tests.interop.test_import_jax import check

X = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)


def loop(x: Any) -> Any:
    return jax.lax.while_loop(lambda s: jnp.max(s) < 9, lambda s: 2 * jnp.abs(s) + 1, x)


THROUGH_HLO: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: jnp.transpose(x.reshape(2, 2, 4), (2, 0, 1)),  # its result has a layout
    "inverse": jnp.linalg.inv,  # the calls to LAPACK give tuples
    "singular_values": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(x + x.T),
    "triangle": lambda x: jnp.abs(jnp.linalg.qr(x)[1]),
    "erf": jax.scipy.special.erf,  # stays in XLA's own dialect
    "asinh": jnp.arcsinh,
    "top_k": lambda x: tuple(jax.lax.top_k(x, 2)),
    "sort": jnp.sort,
    "loop": loop,
    "branches": lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "random": lambda x: x + jax.random.uniform(jax.random.key(3), x.shape),
}


@pytest.mark.parametrize("name", THROUGH_HLO)
def test_what_xla_exports_from_hlo(name: str) -> None:
    f = THROUGH_HLO[name]
    hlo: Any = jax.jit(f).lower(X).compiler_ir("hlo")
    bytecode = _jax.mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto())
    check(gspmd.from_stablehlo(bytecode).run(X), jax.jit(f)(X))


MESH = AbstractMesh((2, 2), ("a", "b"))


def split(*entries: Any) -> NamedSharding:
    return NamedSharding(MESH, PartitionSpec(*entries))


def constrained(x: Any) -> Any:
    return jax.lax.with_sharding_constraint(jnp.sin(x) @ x, split(PartitionSpec.UNCONSTRAINED, "b"))


def by_hand(x: Any) -> Any:
    body = jax.shard_map(lambda y: 2 * jax.lax.psum(y, "a"), mesh=MESH, in_specs=PartitionSpec("a", "b"),
                         out_specs=PartitionSpec(None, "b"))  # fmt: skip
    return body(jnp.cos(x))


@pytest.mark.parametrize("f", [constrained, by_hand])
def test_annotations_of_shardy_that_hlo_carries_as_texts(f: Callable[[Any], Any]) -> None:
    """With them come the names of axes and which dimensions are open, which XLA's strings do not tell."""
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=split("a"))
    hlo: Any = jax.jit(f).trace(x).lower(lowering_platforms=("cpu",)).compiler_ir("hlo")
    module = gspmd.from_stablehlo(_jax.mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto()))
    text = module.text()
    assert "mesh @mesh = [a=2, b=2]" in text and "%x: f32[4@a, 4]" in text
    if f is constrained:
        assert "sharding=[_?, b]" in text
    else:
        assert "manual_computation" in text and "in_shardings=[[a, b]] out_shardings=[[_, b]] axes=[a, b]" in text
    check(gspmd.compile(module).simulate(X), gspmd.from_jax(f, X).run(X))


PROVENANCE = [
    "module attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false} {"
    " func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {",
    "module attributes {tf.versions = {producer = 1395 : i32}, tf_saved_model.semantics} {"
    ' func.func @main(%x: tensor<4x4xf32> {tf._user_specified_name = "x", tf_saved_model.index_path = [0]})'
    ' -> (tensor<4x4xf32> {tf_saved_model.index_path = ["y"]})'
    ' attributes {tf_saved_model.exported_names = ["f"]} {',
    'module attributes {torch.debug_module_name = "M"} {'
    ' func.func @main(%x: tensor<4x4xf32> {torch.bindc_name = "x"}) -> tensor<4x4xf32> {',
    "module attributes {vm.module} {"
    " func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {iree.module.export} {",
]


@pytest.mark.parametrize("head", PROVENANCE)
def test_what_front_ends_note_for_themselves_is_left_out(head: str) -> None:
    op = '%y = stablehlo.add %x, %x {device = "", _class = ["loc:@v"], tf.device = ""} : tensor<4x4xf32>'
    assert np.array_equal(gspmd.from_stablehlo(f"{head}\n{op}\nreturn %y : tensor<4x4xf32>\n}} }}").run(X), X + X)


def test_other_attributes_are_refused_wherever_they_stand() -> None:
    text = (
        "module attributes {my.a} { func.func @main(%x: tensor<f32> {my.b}) -> (tensor<f32> {my.c}) {\n"
        "%y = stablehlo.add %x, %x {my.d} : tensor<f32>\nreturn %x : tensor<f32>\n} }"
    )
    with pytest.raises(UsageError) as error:
        gspmd.from_stablehlo(text)
    assert [name for name in "abcd" if f"not known here: my.{name}" in str(error.value)] == list("abcd")
