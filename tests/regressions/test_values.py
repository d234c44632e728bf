"""Values that were wrong once, of programs that other front ends wrote."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gspmd
from gspmd.ir.attrs import WindowDim
from gspmd.kernels import elementwise, scientific, window
from gspmd.kernels.closeness import compare
from gspmd.kernels.conversion import bitcast, convert, reduce_precision


def _run(body: str, types: str, result: str, *arrays: Any) -> Any:
    """What a function computes; `%r` is its result."""
    params = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types.split()))
    text = f"func.func @main({params}) -> {result} {{\n  {body}\n  return %r : {result}\n}}"
    return gspmd.from_stablehlo(text).run(*arrays)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.complex128])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_arguments_of_64_bits_stay_as_they_are(dtype: Any, shape: tuple[int, ...]) -> None:
    names = {np.float64: "f64", np.int64: "i64", np.uint64: "ui64", np.complex128: "complex<f64>"}
    type_ = f"tensor<{'3x' * len(shape)}{names[dtype]}>"
    x = np.full(shape, 2**40 + 1, dtype)
    got = _run(f"%r = stablehlo.add %a0, %a0 : {type_}", type_, type_, x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x + x)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_barrier_of_one_value(shape: tuple[int, ...]) -> None:
    type_ = f"tensor<{'3x' * len(shape)}f32>"
    x = np.ones(shape, np.float32)
    got = _run(f'%r = "stablehlo.optimization_barrier"(%a0) : ({type_}) -> {type_}', type_, type_, x)
    assert got.shape == shape


def test_the_init_of_a_windowed_sum_counts_once() -> None:
    body = """%r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {window_dimensions = array<i64: 2>, padding = dense<[[3, 1]]> : tensor<1x2xi64>}
    : (tensor<3xf32>, tensor<f32>) -> tensor<6xf32>"""
    got = _run(body, "tensor<3xf32> tensor<f32>", "tensor<6xf32>", np.array([1, 2, 3], np.float32), np.float32(100))
    np.testing.assert_array_equal(got, [100, 100, 101, 103, 105, 103])


INT4, UINT4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)


@pytest.mark.parametrize("name", ["absolute", "negate", "maximum", "bit_and", "shift_right_arithmetic", "bit_not"])
@pytest.mark.parametrize("dtype", [INT4, UINT4])
def test_four_bits_stay_four_bits(name: str, dtype: Any) -> None:
    function = getattr(elementwise, name)
    x, y = (v.reshape(-1) for v in np.meshgrid(*[np.arange(16, dtype=np.int8)] * 2))
    low = 8 if dtype == INT4 else 0
    x, y = x - low, y - low
    arity = 1 if name in ("absolute", "negate", "bit_not") else 2
    got = function(*(v.astype(dtype) for v in (x, y)[:arity]))
    assert got.dtype == dtype
    by_name = {
        "absolute": lambda: np.abs(x),
        "negate": lambda: -x,
        "bit_not": lambda: ~x,
        "maximum": lambda: np.maximum(x, y),
        "bit_and": lambda: x & y,
        # The bits of an unsigned number are moved as if its highest were a sign; a shift by 4 or more leaves the sign.
        "shift_right_arithmetic": lambda: (((x ^ 8) & 15) - 8) >> np.where((y < 0) | (y > 7), 7, y),
    }
    np.testing.assert_array_equal(got, np.asarray(by_name[name]()).astype(dtype))


def test_conversions_between_integers_of_four_bits() -> None:
    x = np.arange(-8, 8).astype(np.int8).astype(INT4)
    np.testing.assert_array_equal(convert(x, UINT4).astype(np.int8), np.arange(-8, 8) & 15)
    np.testing.assert_array_equal(convert(convert(x, UINT4), INT4), x)
    assert elementwise.count_leading_zeros(np.array([0, 1, 7, -1]).astype(INT4)).tolist() == [4, 3, 1, 0]


def test_floats_of_fewer_than_8_bits_are_as_wide_as_their_names_say() -> None:
    """Two of four bits fill a byte, the first in its low half; they are bits of integers of four."""
    x = np.array([[1, -1], [6, -6], [0.5, 0]], np.float32).astype(ml_dtypes.float4_e2m1fn)
    text = "func.func @main(%a: tensor<3x2xf4E2M1FN>) -> tensor<3xui8> {\n"
    text += (
        "  %r = stablehlo.bitcast_convert %a : (tensor<3x2xf4E2M1FN>) -> tensor<3xui8>\n  return %r : tensor<3xui8>\n}"
    )
    bytes_ = gspmd.from_stablehlo(text).run(x)
    assert bytes_.tolist() == [0xA2, 0xF7, 0x01]
    assert np.array_equal(bitcast(bytes_, x.dtype), x) and np.array_equal(bitcast(bitcast(x, INT4), x.dtype), x)
    assert bitcast(x, UINT4).astype(int).tolist() == [[2, 10], [7, 15], [1, 0]]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_logarithm_of_one_plus_a_small_complex_number(dtype: Any) -> None:
    z = np.array([1e-10 + 1e-12j, 1e-30 - 3e-3j, 2e-20, -1e-9 - 1e-30j], dtype)
    got = elementwise.log_plus_one(z)
    exact = z.astype(np.clongdouble)
    re, im = np.real(exact), np.imag(exact)
    expected = np.log1p(re * (2 + re) + im * im) / 2 + 1j * np.arctan2(im, 1 + re)
    for part in (np.real, np.imag):
        wanted = part(expected).astype(part(got).dtype)
        assert compare(part(got), wanted, np.abs(wanted))
    top = np.finfo(dtype).max
    assert np.isfinite(elementwise.log_plus_one(np.array(complex(top, top), dtype)))


def test_the_sigmoid_of_very_negative_complex_numbers() -> None:
    got = elementwise.logistic(np.array([-1e10 + 3j, 1e10 - 1j, -2 + 1j], np.complex64))
    assert compare(got, np.array([0, 1, 1 / (1 + np.exp(2 - 1j))], np.complex64))


def test_digamma_beside_its_poles() -> None:
    h = 2.0**-50
    got = scientific.digamma(np.array([-1 + h, -1 - h, -3 + h, -2.0]))
    assert compare(got, np.array([-1 / h, 1 / h, -1 / h, np.nan]))


def test_powers_of_complex_numbers_with_large_exponents() -> None:
    x, y = np.array([0.2 - 2.5j, 1.3 + 0.7j], np.complex64), np.array([20 + 3j, -15 - 9j], np.complex64)
    expected = np.power(x.astype(np.complex128), y.astype(np.complex128)).astype(np.complex64)
    assert compare(elementwise.power(x, y), expected, np.abs(expected))


def test_windows_of_a_float_without_infinity() -> None:
    x = np.array([1, 2]).astype(ml_dtypes.float8_e4m3fn)
    got = window.reduce_window("max", x, [WindowDim(size=2, low=2)])
    np.testing.assert_array_equal(got.astype(np.float32), [-448, 1, 2])


def test_eight_bit_floats_with_reduced_precision() -> None:
    x = np.array([1.125, 1.875, 2.0**-9, 448]).astype(ml_dtypes.float8_e4m3fn)
    got = reduce_precision(x, 4, 2).astype(np.float32)
    np.testing.assert_array_equal(got[:2], [1.0, 2.0])
    np.testing.assert_array_equal(reduce_precision(x, 8, 3), x)


def test_bits_of_bytes_as_integers_of_four_bits() -> None:
    x = np.array([0x12, -3], np.int8)
    halves = bitcast(x, INT4)
    np.testing.assert_array_equal(halves.astype(np.int8), [[2, 1], [-3, -1]])
    np.testing.assert_array_equal(bitcast(halves, x.dtype), x)
    wide = np.array([1.5, -2.0], np.float32)
    np.testing.assert_array_equal(bitcast(bitcast(wide, UINT4), wide.dtype), wide)
