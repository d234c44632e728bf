"""Dynamic ops whose shapes follow from constants and from the arguments' shapes are static ops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gspmd
from gspmd.ir.errors import UsageError
from tests.interop.test_import_jax import check

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
INDICES = np.array([[2], [0]], np.int32)


def constant(name: str, values: list[int]) -> str:
    return f"%{name} = stablehlo.constant dense<{values}> : tensor<{len(values)}xi32>\n"


SHAPE = "tensor<2xi32>"
X_TYPE = "tensor<3x4xf32>"
CASES: dict[str, tuple[str, Any]] = {
    "dynamic_iota": (
        constant("s", [2, 3]) + f"%r = stablehlo.dynamic_iota %s, dim = 1 : ({SHAPE}) -> tensor<2x3xf32>",
        np.tile(np.arange(3, dtype=np.float32), (2, 1)),
    ),
    "dynamic_reshape": (
        constant("s", [6, 2]) + f"%r = stablehlo.dynamic_reshape %x, %s : ({X_TYPE}, {SHAPE}) -> tensor<6x2xf32>",
        X.reshape(6, 2),
    ),
    "dynamic_reshape, its shape computed": (
        "%a = stablehlo.get_dimension_size %x, dim = 0 : (tensor<3x4xf32>) -> tensor<i32>\n"
        "%b = stablehlo.get_dimension_size %x, dim = 1 : (tensor<3x4xf32>) -> tensor<i32>\n"
        "%c = stablehlo.multiply %a, %b : tensor<i32>\n"
        "%s = stablehlo.reshape %c : (tensor<i32>) -> tensor<1xi32>\n"
        "%d = stablehlo.dynamic_reshape %x, %s : (tensor<3x4xf32>, tensor<1xi32>) -> tensor<?xf32>\n"
        "%r = stablehlo.convert %d : (tensor<?xf32>) -> tensor<12xf32>",
        X.reshape(12),
    ),
    "dynamic_broadcast_in_dim": (
        constant("s", [2, 3, 4]) + "%r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1, 2] : "
        f"({X_TYPE}, tensor<3xi32>) -> tensor<2x3x4xf32>",
        np.stack([X, X]),
    ),
    "dynamic_pad": (
        constant("l", [1, 0]) + constant("h", [0, 2]) + constant("s", [1, 0]) + "%z = stablehlo.constant dense<0.0> : "
        f"tensor<f32>\n%r = stablehlo.dynamic_pad %x, %z, %l, %h, %s : ({X_TYPE}, tensor<f32>, {SHAPE}, {SHAPE}, "
        f"{SHAPE}) -> tensor<6x6xf32>",
        np.pad(np.insert(X, [1, 2], 0, 0), ((1, 0), (0, 2))),
    ),
    "real_dynamic_slice": (
        constant("l", [1, 0]) + constant("h", [3, 4]) + constant("s", [1, 2]) + "%r = stablehlo.real_dynamic_slice "
        f"%x, %l, %h, %s : ({X_TYPE}, {SHAPE}, {SHAPE}, {SHAPE}) -> tensor<2x2xf32>",
        X[1:3, 0:4:2],
    ),
    "dynamic_gather": (
        constant("s", [1, 4]) + '%r = "stablehlo.dynamic_gather"(%x, %i, %s) {dimension_numbers = #stablehlo.gather<'
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>} : "
        f"({X_TYPE}, tensor<2x1xi32>, {SHAPE}) -> tensor<2x4xf32>",
        X[INDICES[:, 0]],
    ),
    "set_dimension_size": (
        "%s = stablehlo.constant dense<4> : tensor<i32>\n"
        f"%r = stablehlo.set_dimension_size %x, %s, dim = 1 : ({X_TYPE}, tensor<i32>) -> {X_TYPE}",
        X,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_shapes_that_are_constants(name: str) -> None:
    body, wanted = CASES[name]
    result = "tensor<" + "".join(f"{n}x" for n in wanted.shape) + "f32>"
    head = f"func.func @main(%x: {X_TYPE}, %i: tensor<2x1xi32>) -> {result} {{"
    module = gspmd.from_stablehlo(f"{head}\n{body}\nreturn %r : {result}\n}}")
    check(module.run(X, INDICES), wanted)


def test_a_function_exported_for_any_size_is_called_for_one() -> None:
    """Its body is on dynamic shapes, with assertions about them."""
    (b,) = jax.export.symbolic_shape("b")
    mean = jax.export.export(jax.jit(lambda x: jnp.sum(x, 0) / x.shape[0]))
    exported = mean(jax.ShapeDtypeStruct((b, 4), jnp.float32))
    check(gspmd.from_jax(lambda x: 2 * exported.call(x), X).run(X), 2 * X.mean(0))


def test_shapes_that_are_data_are_still_refused_with_their_line() -> None:
    text = (
        f"func.func @main(%x: {X_TYPE}, %s: tensor<1xi32>) -> tensor<?xf32> {{\n"
        f"%r = stablehlo.dynamic_reshape %x, %s : ({X_TYPE}, tensor<1xi32>) -> tensor<?xf32>\n"
        "return %r : tensor<?xf32>\n}"
    )
    with pytest.raises(UsageError, match="dynamic_reshape has a shape that is data") as error:
        gspmd.from_stablehlo(text)
    assert error.value.loc is not None and error.value.loc.line == 2
