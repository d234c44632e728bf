"""The rules for dtypes: the design's, case by case, and laws over all pairs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gspmd.numpy as gnp
from gspmd.frontend.config import enable_x64
from gspmd.frontend.promotion import inexact, promote_scalar, promote_types
from gspmd.frontend.trace import trace
from gspmd.ir.dtypes import DTYPES, dtype_kind, dtype_name
from gspmd.ir.errors import TraceError
from gspmd.ir.types import TensorType

TABLE = [
    ("bool", "bool", "bool"),
    ("bool", "i8", "i8"),
    ("bool", "u8", "u8"),
    ("bool", "f16", "f16"),
    ("i8", "i16", "i16"),
    ("i32", "i64", "i64"),
    ("u8", "u32", "u32"),
    ("i8", "u8", "i16"),
    ("i16", "u8", "i16"),
    ("i32", "u16", "i32"),
    ("i8", "u16", "i32"),
    ("i32", "u32", "i64"),
    ("i2", "i4", "i4"),
    ("u4", "i4", "i8"),
    ("f16", "bf16", "f32"),
    ("f16", "f32", "f32"),
    ("bf16", "f32", "f32"),
    ("f32", "f64", "f64"),
    ("f8e4m3fn", "f8e5m2", "f16"),
    ("f8e4m3fn", "bf16", "bf16"),
    ("i32", "f16", "f16"),
    ("i64", "f32", "f32"),
    ("u64", "bf16", "bf16"),
    ("f32", "c64", "c64"),
    ("f64", "c64", "c128"),
    ("i64", "c64", "c64"),
    ("c64", "c128", "c128"),
]


@pytest.mark.parametrize(("a", "b", "wanted"), TABLE)
def test_table(a: str, b: str, wanted: str) -> None:
    assert dtype_name(promote_types(DTYPES[a], DTYPES[b])) == wanted
    assert dtype_name(promote_types(DTYPES[b], DTYPES[a])) == wanted


def test_what_no_type_holds() -> None:
    with pytest.raises(TraceError, match="no integer type holds both u64 and i8"):
        promote_types(DTYPES["u64"], DTYPES["i8"])


def test_promotion_is_a_join() -> None:
    """Commutative, idempotent, and never to a lower kind."""
    rank = ["bool", "uint", "int", "float", "complex"].index
    for a in DTYPES.values():
        assert promote_types(a, a) == a
        for b in DTYPES.values():
            if {"u64"} & {dtype_name(a), dtype_name(b)} and "int" in (dtype_kind(a), dtype_kind(b)):
                continue
            found = promote_types(a, b)
            assert found == promote_types(b, a)
            assert rank(dtype_kind(found)) >= max(rank(dtype_kind(a)), rank(dtype_kind(b)))
            assert promote_types(found, a) == found


def one_kind(a: str, b: str) -> bool:
    kinds = {dtype_kind(DTYPES[a]), dtype_kind(DTYPES[b])}
    return (len(kinds) == 1 or kinds == {"int", "uint"}) and not ("u64" in (a, b) and "int" in kinds)


NUMPYS = [n for n, t in DTYPES.items() if t.isbuiltin == 1]


@pytest.mark.parametrize(("a", "b"), [(a, b) for a in NUMPYS for b in NUMPYS if one_kind(a, b)])
def test_within_a_kind_numpy_agrees(a: str, b: str) -> None:
    assert promote_types(DTYPES[a], DTYPES[b]) == np.promote_types(DTYPES[a], DTYPES[b])


SCALARS: list[tuple[str, Any, str]] = [
    ("f16", 2, "f16"),
    ("bf16", 2.5, "bf16"),
    ("f64", 2.5, "f64"),
    ("i8", 2, "i8"),
    ("i8", 2.5, "f32"),
    ("u8", True, "u8"),
    ("bool", True, "bool"),
    ("bool", 1, "i32"),
    ("bool", 1.0, "f32"),
    ("f32", 1j, "c64"),
    ("f64", 1j, "c128"),
    ("i32", 1j, "c64"),
    ("f16", np.float32(1), "f32"),
    ("f32", np.float64(1), "f32"),
    ("bf16", np.float64(1), "f32"),
    ("i32", np.int64(1), "i32"),
    ("f32", np.arange(4.0), "f32"),
    ("i8", np.arange(4), "i32"),
    ("f32", ml_dtypes.bfloat16(1), "f32"),
]


@pytest.mark.parametrize(("dtype", "other", "wanted"), SCALARS)
def test_numbers_are_weak_and_arrays_are_not(dtype: str, other: Any, wanted: str) -> None:
    made = trace(lambda x: (x * other, other * x), TensorType(dtype, (4,)))
    assert [dtype_name(t.dtype) for t in made.program.outputs] == [wanted, wanted]


def test_numbers_among_themselves() -> None:
    assert promote_scalar(None, int) == DTYPES["i32"]
    assert promote_scalar(None, float) == DTYPES["f32"]
    assert inexact(DTYPES["i8"]) == DTYPES["f32"]
    assert inexact(DTYPES["bf16"]) == DTYPES["bf16"]


def test_division_and_mean_of_integers_are_floats() -> None:
    made = trace(lambda x: (x / x, x.mean(), x.sum(), gnp.sum(x > 0), gnp.exp(x)), TensorType("i8", (4,)))
    assert [dtype_name(t.dtype) for t in made.program.outputs] == ["f32", "f32", "i8", "i32", "f32"]


def test_the_option_for_64_bits() -> None:
    def f(x: Any) -> Any:
        return x / x, x > 0, gnp.sum(x > 0), gnp.zeros(2), gnp.arange(3), x * np.arange(4.0), gnp.argmax(x)

    with enable_x64():
        wide = trace(f, TensorType("i64", (4,)))
    narrow = trace(f, TensorType("i64", (4,)))
    assert [dtype_name(t.dtype) for t in wide.program.outputs] == ["f64", "bool", "i64", "f64", "i64", "f64", "i64"]
    assert [dtype_name(t.dtype) for t in narrow.program.outputs] == ["f32", "bool", "i32", "f32", "i32", "f32", "i32"]


def test_a_named_dtype_is_kept_whatever_the_option() -> None:
    made = trace(lambda: (gnp.zeros(2, "f64"), gnp.arange(3, dtype="i64"), gnp.asarray(1.0, dtype="f64")))
    assert [dtype_name(t.dtype) for t in made.program.outputs] == ["f64", "i64", "f64"]


@pytest.mark.parametrize(("dtype", "number"), [("u8", -1), ("u8", 256), ("i8", 128), ("i32", 1 << 31)])
def test_numbers_that_do_not_fit(dtype: str, number: int) -> None:
    with pytest.raises(TraceError, match=f"the number {number} does not fit into {dtype}"):
        trace(lambda x: x + number, TensorType(dtype, (4,)))


def test_data_that_does_not_fit() -> None:
    with pytest.raises(TraceError, match="does not fit into int32"):
        trace(lambda: gnp.asarray(np.array([1 << 40])))
