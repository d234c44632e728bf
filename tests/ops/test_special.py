"""Special functions at ordinary values and edges, bits as other dtypes, and regions mapped over arrays."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gspmd.ir.errors import GspmdError
from gspmd.kernels import scientific
from gspmd.kernels.closeness import compare
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.ops.test_gradients import pullback
from tests.xla.one_device import run_text

EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, -2.5, 3.0, 30.0], np.float64)
# Where XLA's CHLO forms and the functions' definition part: digits of approximations are not compared, edges are.
JAX: dict[str, Any] = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh",
    "cosh": "cosh", "sinh": "sinh", "square": "square", "erfc": "erfc", "erf_inv": "erf_inv", "lgamma": "lgamma",
    "digamma": "digamma", "bessel_i0e": "bessel_i0e", "bessel_i1e": "bessel_i1e",
}  # fmt: skip


@pytest.mark.parametrize("name", JAX)
def test_edges_are_jaxs(name: str) -> None:
    import jax

    with jax.enable_x64(True):
        expected = np.asarray(getattr(jax.lax, JAX[name])(EDGES))
    found = getattr(scientific, name)(EDGES)
    verdict = compare(found, expected, terms=64)
    assert verdict.ok, verdict.message
    assert (np.signbit(found) == np.signbit(expected))[EDGES == 0].all()


@pytest.mark.parametrize("name", ["polygamma", "zeta"])
def test_functions_of_two_are_jaxs(name: str) -> None:
    import jax

    first = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.5, -1.0])[:, None]
    second = np.array([0.5, 1.0, 2.25, 10.0, 100.0, 0.0, -1.0, -2.0, -0.5, -1.5])[None, :]
    a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(first, second))
    with jax.enable_x64(True):
        expected = np.asarray(getattr(jax.lax, name)(a, b))
    verdict = compare(getattr(scientific, name)(a, b), expected, terms=64)
    assert verdict.ok, verdict.message


@pytest.mark.parametrize("example", ["polygamma(f64[4], f64[4])", "zeta(f64[4], f64[4])"])
def test_functions_of_two_have_a_slope_in_the_second(example: str) -> None:
    n, x = np.array([1.0, 2.0, 3.0, 4.0]) + (example[0] == "z"), np.array([0.7, 1.3, 2.9, 6.1])
    backward = pullback(parse(example))
    assert backward is not None
    none, slope = evaluate(backward, n, x, np.ones(4))
    ahead, behind = (evaluate(parse(example), n, x + h)[0] for h in (1e-6, -1e-6))
    assert not none.any()
    assert compare(slope, (ahead - behind) / 2e-6, scale_dtype=np.float32).ok


def test_poles_and_orders() -> None:
    zeta = scientific.zeta(np.array([2.0, 2.0, 3.0, 2.5]), np.array([-0.5, -1.0, -1.5, -0.5]))
    wanted = [math.pi**2 / 2 + 4, np.inf, None, np.nan]
    assert compare(zeta[[0, 1, 3]], np.array([wanted[0], wanted[1], wanted[3]])).ok
    assert np.isnan(scientific.polygamma(np.array([0.5, -1.0, 0.0]), np.array([1.0, 1.0, -3.0]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_next_after_steps_to_the_neighbour(dtype: Any) -> None:
    x = np.array([1.0, 1.0, 0.0, -0.0, 0.0, 2.0, np.inf, np.nan, 1.0, -1.0, 0.0], dtype)
    y = np.array([2.0, 0.0, 1.0, -1.0, -0.0, 2.0, 0.0, 1.0, np.nan, -2.0, -1.0], dtype)
    found = scientific.next_after(x, y)
    assert found.dtype == x.dtype
    signed = {2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.itemsize]
    bits, top = x.view(signed).astype(object), -(2 ** (8 * x.dtype.itemsize - 1))
    expected = [bits[0] + 1, bits[1] - 1, 1, top + 1, top, bits[5], bits[6] - 1, None, None, bits[9] + 1, top + 1]
    for got, want, value in zip(found.view(signed), expected, found, strict=True):
        assert np.isnan(value) if want is None else int(got) == want


def test_infinities_are_told_apart() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert scientific.is_inf(x).tolist() == [True, True, False, False]
    assert scientific.is_pos_inf(x).tolist() == [True, False, False, False]
    assert scientific.is_neg_inf(x).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("mine", "source", "theirs", "shape", "out"),
    [
        ("f32", "ui8", "u8", (3, 4), "3xf32"),
        ("u16", "f64", "f64", (3,), "3x4xui16"),
        ("i32", "f32", "f32", (2, 3), "2x3xi32"),
        ("u8", "bf16", "bf16", (5,), "5x2xui8"),
    ],
)
def test_bits_are_regrouped_as_xla_does(mine: str, source: str, theirs: str, shape: tuple[int, ...], out: str) -> None:
    example = f"bitcast_convert({theirs}{list(shape)}) dtype={mine}"
    x = np.random.default_rng(0).integers(0, 120, shape).astype(parse(example).body.params[0].type.dtype)
    operand = f"tensor<{'x'.join(map(str, shape))}x{source}>"
    text = f"""func.func public @main(%x: {operand}) -> tensor<{out}> {{
      %0 = stablehlo.bitcast_convert %x : ({operand}) -> tensor<{out}> return %0 : tensor<{out}> }}"""
    (a,), (b,) = evaluate(parse(example), x), run_text(text, [x])
    assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_map_runs_its_region_at_every_place_and_has_its_gradient() -> None:
    example = (
        "map(f64[3], f64[3]) (%a: f64[], %b: f64[]) { %p = multiply(%a, %b) : f64[] %s = sine(%p) : f64[] return %s }"
    )
    x, y, ct = np.array([0.5, 1.0, 2.0]), np.array([1.0, -1.0, 3.0]), np.array([1.0, 2.0, -1.0])
    assert compare(evaluate(parse(example), x, y)[0], np.sin(x * y)).ok
    backward = pullback(parse(example))
    assert backward is not None
    for a, b in zip(evaluate(backward, x, y, ct), (ct * np.cos(x * y) * y, ct * np.cos(x * y) * x), strict=True):
        assert compare(a, b).ok


BROKEN = {
    "acos.C1": "acos(i32[4])",
    "next_after.C2": "next_after(f32[4], f32[5])",
    "bitcast_convert.C1": "bitcast_convert(c64[4]) dtype=u64",
    "bitcast_convert.C2": "bitcast_convert(u8[4]) dtype=bool",
    "bitcast_convert.C4": "bitcast_convert(u8[4, 3]) dtype=f32",
    "map.C1": "map(f32[4])",
    "map.C2": "map(f32[4], f32[5]) (%a: f32[], %b: f32[]) { return %a }",
    "map.C3": "map(f32[4]) (%a: f64[]) { return %a }",
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_constraint(constraint: str) -> None:
    with pytest.raises(GspmdError) as raised:
        parse(BROKEN[constraint])
    assert constraint in str(raised.value)
