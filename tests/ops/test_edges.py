"""Kernels at the edges of their dtypes against XLA through JAX, an independent implementation of the same meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.kernels.closeness import compare
from gspmd.kernels.finite import limits
from gspmd.ops import OPS
from gspmd.ops.elementwise.arithmetic import CompareAttrs
from gspmd.ops.elementwise.conversion import ConvertAttrs, ReducePrecisionAttrs

jax = pytest.importorskip("jax")
lax = jax.lax
Array = NDArray[Any]

FLOATS, INTEGERS = ("bf16", "f16", "f32", "f64"), ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
UNARY: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "abs": (lax.abs, (*FLOATS, "i8", "i32", "i64")),
    "cbrt": (lax.cbrt, FLOATS),
    "ceil": (lax.ceil, FLOATS),
    "cosine": (lax.cos, FLOATS),
    "count_leading_zeros": (lax.clz, INTEGERS),
    "erf": (lax.erf, FLOATS),
    "exponential": (lax.exp, FLOATS),
    "exponential_minus_one": (lax.expm1, FLOATS),
    "floor": (lax.floor, FLOATS),
    "is_finite": (lax.is_finite, FLOATS),
    "log": (lax.log, FLOATS),
    "log_plus_one": (lax.log1p, FLOATS),
    "logistic": (lax.logistic, FLOATS),
    "negate": (lax.neg, (*FLOATS, *INTEGERS)),
    "not": (lax.bitwise_not, ("bool", *INTEGERS)),
    "popcnt": (lax.population_count, INTEGERS),
    "round_nearest_afz": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), FLOATS),
    "round_nearest_even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), FLOATS),
    "rsqrt": (lax.rsqrt, FLOATS),
    "sign": (lax.sign, (*FLOATS, *INTEGERS)),
    "sine": (lax.sin, FLOATS),
    "sqrt": (lax.sqrt, FLOATS),
    "tan": (lax.tan, ("f32", "f64")),
    "tanh": (lax.tanh, FLOATS),
}
BINARY: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "add": (lax.add, (*FLOATS, *INTEGERS)),
    "and": (lax.bitwise_and, ("bool", *INTEGERS)),
    "atan2": (lax.atan2, FLOATS),
    "divide": (lax.div, (*FLOATS, *INTEGERS)),
    "maximum": (lax.max, ("bool", *FLOATS, *INTEGERS)),
    "minimum": (lax.min, ("bool", *FLOATS, *INTEGERS)),
    "multiply": (lax.mul, (*FLOATS, *INTEGERS)),
    "or": (lax.bitwise_or, ("bool", *INTEGERS)),
    "power": (lax.pow, ("f32", "f64")),
    "remainder": (lax.rem, ("f32", "f64", *INTEGERS)),
    "shift_left": (lax.shift_left, INTEGERS),
    "shift_right_arithmetic": (lax.shift_right_arithmetic, INTEGERS),
    "shift_right_logical": (lax.shift_right_logical, INTEGERS),
    "subtract": (lax.sub, (*FLOATS, *INTEGERS)),
    "xor": (lax.bitwise_xor, ("bool", *INTEGERS)),
}
# Equal in every bit, signs of zeros included.
EXACT = frozenset(
    ("abs", "ceil", "floor", "maximum", "minimum", "negate", "sign", "round_nearest_afz", "round_nearest_even")
)


def edge_values(dtype: str) -> Array:
    kind = dtype_kind(DTYPES[dtype])
    if kind == "bool":
        return np.array([False, True])
    low, high = limits(DTYPES[dtype])
    if kind == "float":
        found = [
            np.nan,
            np.inf,
            -np.inf,
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            0.49999997,
            3.0,
            -7.3,
            88.0,
            -100.0,
        ]
        return np.array(found).astype(DTYPES[dtype])
    return np.array([low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100], np.object_).astype(DTYPES[dtype])


def in_jax(function: Callable[..., Any], *arrays: Array) -> Array:
    with jax.enable_x64(True):
        return np.asarray(jax.jit(function)(*arrays))


def cases(table: dict[str, tuple[Callable[..., Any], tuple[str, ...]]]) -> list[Any]:
    return [pytest.param(name, t, id=f"{name}-{t}") for name, (_, dtypes) in table.items() for t in dtypes]


def judged(name: str, *arrays: Array, expected: Array) -> None:
    kernel: Any = OPS[name].kernel
    verdict = compare(kernel(None, *arrays), expected, exact=name in EXACT)
    assert verdict.ok, verdict.message


@pytest.mark.parametrize(("name", "dtype"), cases(UNARY))
def test_unary(name: str, dtype: str) -> None:
    x = edge_values(dtype)
    judged(name, x, expected=in_jax(UNARY[name][0], x))


@pytest.mark.parametrize(("name", "dtype"), cases(BINARY))
def test_binary(name: str, dtype: str) -> None:
    line = edge_values(dtype)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    judged(name, x, y, expected=in_jax(BINARY[name][0], x, y))


@pytest.mark.parametrize("source", ["bool", *FLOATS, "i8", "i32", "u8", "i64", "u64", "c64"])
@pytest.mark.parametrize("target", ["bool", *FLOATS, "i8", "i32", "u8", "i64", "u64", "c64"])
def test_convert(source: str, target: str) -> None:
    x = edge_values("f32" if source == "c64" else source)
    x = x.astype(np.complex64) if source == "c64" else x
    dtype = DTYPES[target]
    if source in FLOATS:
        x = np.concatenate([x, np.array([300.0, -300.0, 3e4, -0.9, 255.5]).astype(x.dtype)])
        if source in ("f32", "f64"):
            x = np.concatenate([x, np.array([2.0**31, -(2.0**31), 2.0**63, 1e30, -1e30, 2**31 - 1]).astype(x.dtype)])
    kernel: Any = OPS["convert"].kernel
    verdict = compare(kernel(ConvertAttrs(dtype), x), in_jax(lambda t: lax.convert_element_type(t, dtype), x))
    assert verdict.ok, verdict.message


@pytest.mark.parametrize("dtype", ["bool", *FLOATS, "i8", "u8"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_compare(dtype: str, direction: str) -> None:
    line = edge_values(dtype)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    function = getattr(lax, direction.lower())
    kernel: Any = OPS["compare"].kernel
    assert compare(kernel(CompareAttrs(direction), x, y), in_jax(function, x, y)).ok


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_total_order_sorts_everything(dtype: str) -> None:
    nan = np.array(np.nan, DTYPES[dtype])
    negative = -nan if np.signbit(-nan) else nan
    line = np.concatenate([[negative], np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf], nan.dtype), [-negative]])
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    i, j = (g.ravel() for g in np.meshgrid(np.arange(8), np.arange(8)))
    kernel: Any = OPS["compare"].kernel
    assert (kernel(CompareAttrs("LT", "TOTALORDER"), x, y) == (i < j)).all()
    assert (kernel(CompareAttrs("EQ", "TOTALORDER"), x, y) == (i == j)).all()


@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (8, 23), (5, 2)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_reduce_precision(dtype: str, exponent: int, mantissa: int) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        x = np.concatenate(
            [edge_values(dtype), (rng.standard_normal(200) * 10.0 ** rng.integers(-6, 6, 200)).astype(DTYPES[dtype])]
        )
    kernel: Any = OPS["reduce_precision"].kernel
    expected = in_jax(lambda t: lax.reduce_precision(t, exponent, mantissa), x)
    verdict = compare(kernel(ReducePrecisionAttrs(exponent, mantissa), x), expected, exact=True)
    assert verdict.ok, verdict.message


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "subtract", "exponential", "log", "sqrt", "tanh", "abs"])
def test_complex(name: str) -> None:
    line = np.array([1 + 2j, -0.5 + 0.25j, 3 - 1j, -2 - 2j, 0.1 + 0j])
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    function = {**UNARY, **BINARY}[name][0]
    arrays = (x, y) if name in BINARY else (x,)
    judged(name, *arrays, expected=in_jax(function, *arrays))


def test_powers_of_integers_wrap_and_negative_exponents_truncate() -> None:
    x = np.array([2, 3, -1, -1, 1, 2, 0, -2, 7], np.int8)
    y = np.array([7, 4, 3, -3, -5, -1, 0, -2, 1], np.int8)
    kernel: Any = OPS["power"].kernel
    assert kernel(None, x, y).tolist() == [-128, 81, -1, -1, 1, 0, 1, 0, 7]


def test_erf_is_scipys_to_the_last_bits() -> None:
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([np.linspace(-7, 7, 10_001), 10.0 ** np.arange(-300, 0, 10.0)])
    kernel: Any = OPS["erf"].kernel
    expected = special.erf(x)
    assert compare(kernel(None, x), expected, np.abs(expected)).ok


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e18])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_the_angle_of_complex_numbers(dtype: str, scale: float) -> None:
    parts = np.random.default_rng(3).standard_normal((4, 100))
    y, x = ((scale * (a + 1j * b)).astype(DTYPES[dtype]) for a, b in (parts[:2], parts[2:]))
    kernel: Any = OPS["atan2"].kernel
    # The definition in f64: squares of the greatest of these do not overflow there.
    wide_y, wide_x = y.astype("c16"), x.astype("c16")
    wanted = -1j * np.log((wide_x + 1j * wide_y) / np.sqrt(wide_x**2 + wide_y**2))
    verdict = compare(kernel(None, y, x), wanted.astype(y.dtype), np.abs(wanted) + 1)
    assert verdict.ok, verdict.message
    if scale == 1:
        verdict = compare(kernel(None, y, x), in_jax(lax.atan2, y, x), np.abs(wanted) + 1, terms=64)
        assert verdict.ok, verdict.message


def test_the_angle_of_complex_numbers_on_the_axes_is_that_of_real_ones() -> None:
    y, x = (g.ravel() for g in np.meshgrid([0.0, 1.0, -1.0, 3e38], [0.0, 2.0, -2.0, 3e38]))
    kernel: Any = OPS["atan2"].kernel
    found = kernel(None, y.astype("c8"), x.astype("c8"))
    inside = (x != 0) | (y != 0)
    np.testing.assert_allclose(found[inside].real, np.arctan2(y, x)[inside], rtol=1e-6)
    assert not found[inside].imag.any() and np.isnan(found[~inside]).all()
