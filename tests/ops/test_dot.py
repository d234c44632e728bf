"""dot_general in every layout against einsum, its integers exactly, and its factor rule."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gspmd.ir.opdef import node_rule
from gspmd.kernels.closeness import compare
from gspmd.kernels.dot import dot_general
from tests.ops.cases import parse

SIZES = {"a": 2, "b": 3, "m": 4, "l": 5, "n": 6, "o": 1, "k": 7, "j": 8}


@st.composite
def einsums(draw: st.DrawFn) -> tuple[str, str, str]:
    batch = draw(st.sampled_from(["", "a", "ab", "ba"]))
    contract = draw(st.sampled_from(["", "k", "kj", "jk"]))
    left = draw(st.permutations(batch + contract + draw(st.sampled_from(["", "m", "ml"]))))
    right = draw(st.permutations(batch + contract + draw(st.sampled_from(["", "n", "no"]))))
    return "".join(left), "".join(right), batch + "|" + contract


@given(einsums(), st.integers(0, 2**16), st.booleans())
def test_every_layout_is_einsum(case: tuple[str, str, str], seed: int, strided: bool) -> None:
    left, right, (batch, _, contract) = case[0], case[1], case[2].partition("|")
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal([SIZES[c] * (1 + strided) for c in s]) for s in (left, right)]
    x, y = (a[tuple(slice(None, None, 1 + strided) for _ in range(a.ndim))] for a in arrays)
    dims = [tuple(tuple(s.index(c) for c in group) for s in (left, right)) for group in (batch, contract)]
    out = dot_general(x, y, (dims[0][0], dims[0][1]), (dims[1][0], dims[1][1]), x.dtype)
    result = batch + "".join(c for c in left + right if c not in batch + contract)
    formula = f"{left},{right}->{result}"
    terms = int(np.prod([SIZES[c] for c in contract], initial=1))
    verdict = compare(out, np.einsum(formula, x, y), np.einsum(formula, abs(x), abs(y)), terms)
    assert verdict.ok, f"{formula}: {verdict.message}"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("result", [np.int8, np.int32, np.int64])
def test_integers_wrap_exactly(dtype: type, result: type) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(info.min, info.max, s, dtype, endpoint=True) for s in ((5, 70), (70, 4)))
    exact = np.array([[sum(int(a) * int(b) for a, b in zip(r, c, strict=True)) for c in y.T] for r in x], object)
    bits = np.iinfo(result).bits
    wrapped = ((exact + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)).astype(result)
    assert compare(dot_general(x, y, ((), ()), ((1,), (0,)), np.dtype(result)), wrapped).ok


def test_narrow_floats_accumulate_in_f32() -> None:
    ones = np.ones((1, 4096), ml_dtypes.bfloat16)
    assert float(dot_general(ones, ones, ((), ()), ((1,), (1,)), ones.dtype)[0, 0]) == 4096
    thirds = (ones.astype(np.float32) / 3).astype(ones.dtype)
    wide = dot_general(thirds, ones, ((), ()), ((1,), (1,)), np.dtype(np.float32))
    assert compare(wide, (thirds.astype(np.float32).sum(1, keepdims=True)), terms=4096).ok


def test_bools_are_the_or_of_ands() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((5, 6)) < 0.3, rng.random((6, 4)) < 0.3
    out = dot_general(x, y, ((), ()), ((1,), (0,)), np.dtype(bool))
    assert (out == (x[:, :, None] & y).any(1)).all()


@pytest.mark.parametrize(("m", "k", "n"), list(itertools.product((0, 2), (0, 3), (0, 4))))
def test_empty_dims(m: int, k: int, n: int) -> None:
    out = dot_general(np.ones((m, k)), np.ones((k, n)), ((), ()), ((1,), (0,)), np.dtype(float))
    assert out.shape == (m, n) and (out == k).all()


def test_the_rule_is_bmk_bkn_bmn() -> None:
    program = parse(
        "dot_general(f32[5, 4, 6], f32[5, 6, 7]) lhs_batch=[0] rhs_batch=[0] lhs_contract=[2] rhs_contract=[1]"
    )
    rule = node_rule(program.body.nodes[-1])
    assert rule is not None
    assert rule.text() == "([i, j, l], [i, l, k]) -> ([i, j, k]) {i=5, j=4, k=7, l=6 reduce(add)} linear {0} {1}"
    assert rule.flops == 2 * 5 * 4 * 6 * 7
