"""Reductions: monoids on every dtype, regions in order, and the laws of the monoids."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.kernels import monoids
from gspmd.kernels.closeness import compare
from gspmd.kernels.finite import limits
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate

ARG_MAX = (
    "(%a: f32[], %i: i32[], %b: f32[], %j: i32[]) { "
    "%gt = compare(%a, %b) direction=GT : bool[] "
    "%eq = compare(%a, %b) direction=EQ : bool[] "
    "%lt = compare(%i, %j) direction=LT : bool[] "
    "%tie = and(%eq, %lt) : bool[] "
    "%left = or(%gt, %tie) : bool[] "
    "%v = select(%left, %a, %b) : f32[] "
    "%k = select(%left, %i, %j) : i32[] "
    "return %v, %k }"
)
# The left operand: what is folded first shows.
FIRST = "(%a: f32[], %b: f32[]) { %n = constant() value=dense<1.0 : f32[]> : f32[] return %a }"


def kinds(monoid: str) -> list[str]:
    bits = monoid in ("and", "or", "xor")
    return [
        n
        for n in ("bool", "i8", "u16", "i64", "bf16", "f16", "f32", "f64", "c64")
        if not bits or (n[0] in "iub" and n != "bf16")
    ]


CASES = [(m, d) for m in monoids.MONOIDS for d in kinds(m)]


def sample(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    if dtype_kind(dtype) in ("int", "uint"):
        low, high = limits(dtype)
        return rng.integers(max(low, -(2**60)), min(high, 2**60), shape).astype(dtype)
    found = rng.standard_normal(shape)
    return (found > 0) if dtype == np.bool_ else (found + 1j * found**2 if dtype.kind == "c" else found).astype(dtype)


@pytest.mark.parametrize(("monoid", "dtype"), CASES)
def test_the_identity_changes_nothing(monoid: str, dtype: str) -> None:
    x = sample(DTYPES[dtype], (9,))
    if dtype_kind(x.dtype) == "float":
        x = np.concatenate([x, np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(x.dtype)])
    neutral = np.broadcast_to(monoids.identity(monoid, x.dtype), x.shape)
    for out in (
        monoids.combine(monoid)(x, neutral),
        monoids.combine(monoid)(neutral, x),
        monoids.fold(monoid, [neutral, x]),
    ):
        assert compare(out, x, exact=True).ok


@pytest.mark.parametrize(("monoid", "dtype"), CASES)
def test_reduce_is_the_fold_of_its_slices(monoid: str, dtype: str) -> None:
    x = sample(DTYPES[dtype], (4, 6, 3))
    out = monoids.reduce(monoid, x, (2, 0))
    slices = [x[i, :, j] for i in range(4) for j in range(3)]
    size = sum(abs(s.astype(np.complex128)) for s in slices) if monoid == "add" else None
    assert compare(out, monoids.fold(monoid, slices), size, 12).ok
    assert compare(
        monoids.reduce(monoid, x[:0], (0,)), np.broadcast_to(monoids.identity(monoid, x.dtype), (6, 3)), exact=True
    ).ok
    assert compare(monoids.reduce(monoid, x, ()), x, exact=True).ok


def test_narrow_sums_accumulate_in_f32() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        ones = np.ones(2048 * 3, dtype)
        assert float(monoids.reduce("add", ones, (0,))) == 2048 * 3
        assert float(monoids.fold("add", [np.ones((), dtype)] * 300)) == 300


def test_negative_zero_survives_a_sum() -> None:
    assert np.signbit(monoids.reduce("add", np.array([-0.0, -0.0], np.float32), (0,)))


def test_nan_passes_through_max() -> None:
    assert np.isnan(monoids.reduce("max", np.array([1.0, np.nan, 2.0]), (0,)))


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (1, 0), ()])
@pytest.mark.parametrize("rows", [1, 2, 5, 8])
def test_arg_max_by_a_region(rows: int, dims: tuple[int, ...]) -> None:
    rng = np.random.default_rng(rows)
    x = rng.integers(0, 4, (rows, 7)).astype(np.float32)  # ties: the lower index wins
    index = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    program = parse(f"reduce(f32[{rows}, 7], i32[{rows}, 7], f32[], i32[]) dims={list(dims)} monoid=custom {ARG_MAX}")
    value, place = evaluate(program, x, index, np.float32(-np.inf), np.int32(2**31 - 1))
    best = x.max(dims)
    assert (value == best).all()
    hit = np.where(x == np.expand_dims(best, dims), index, 2**31 - 1)
    assert (place == hit.min(dims)).all()


def test_a_region_keeps_the_order_and_takes_the_init_first() -> None:
    x = np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 6.0]], np.float32)
    first = parse(f"reduce(f32[2, 3], f32[]) dims=[1] monoid=custom {FIRST}")
    assert evaluate(first, x, np.float32(9.0))[0].tolist() == [9.0, 9.0]
    last = parse(f"reduce(f32[2, 3], f32[]) dims=[1] monoid=custom {FIRST.replace('return %a', 'return %b')}")
    assert evaluate(last, x, np.float32(9.0))[0].tolist() == [2.0, 6.0]
    empty = parse(f"reduce(f32[2, 0], f32[]) dims=[1] monoid=custom {FIRST}")
    assert evaluate(empty, x[:, :0], np.float32(9.0))[0].tolist() == [9.0, 9.0]


def test_bits_of_floats_have_no_identity() -> None:
    with pytest.raises(ValueError, match="bits"):
        monoids.identity("xor", np.dtype(np.float32))
