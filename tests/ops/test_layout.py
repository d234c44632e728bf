"""The factor rules of reshape and broadcast, and constants and counting."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gspmd.ir.opdef import node_rule
from gspmd.ir.rule import Rule
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate


def rule(example: str) -> Rule:
    found = node_rule(parse(example).body.nodes[-1])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ([4, 6], [24], "([i, j]) -> ([ij]) {i=4, j=6} linear {0}"),
        ([12, 5], [4, 3, 5], "([ij, k]) -> ([i, j, k]) {i=4, j=3, k=5} linear {0}"),
        ([8, 6], [4, 12], "([ij, k]) -> ([i, jk]) {i=4, j=2, k=6} linear {0}"),
        (
            [6, 4, 5],
            [4, 6, 5],
            "([ij, k, n]) -> ([il, m, n]) {i=2, j=3 whole, k=4 whole, l=2 whole, m=6 whole, n=5} linear {0}",
        ),
        ([1, 6, 1], [6, 1], "([1, i, 1]) -> ([i, 1]) {i=6} linear {0}"),
        ([1], [], "([1]) -> ([]) {} linear {0}"),
        (
            [0, 4],
            [0, 2, 2],
            "([i, j]) -> ([k, l, m]) {i=0 whole, j=4 whole, k=0 whole, l=2 whole, m=2 whole} linear {0}",
        ),
        ([3, 5], [5, 3], "([i, j]) -> ([k, l]) {i=3 whole, j=5 whole, k=5 whole, l=3 whole} linear {0}"),
    ],
)
def test_reshape_rules(source: list[int], target: list[int], text: str) -> None:
    assert rule(f"reshape(f32{source}) shape={target}").text() == text


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    def shape() -> list[int]:
        parts = draw(st.permutations([2, 2, 3, 5]))
        cuts = sorted(draw(st.lists(st.integers(0, 4), max_size=3)))
        return [prod(parts[a:b]) for a, b in itertools.pairwise([0, *cuts, 4])]

    return shape(), shape()


@given(reshapes())
def test_a_pass_factor_is_the_same_index_on_both_sides(shapes: tuple[list[int], list[int]]) -> None:
    """The index of each pass factor, read off an element's place in the operand and in the result, agrees."""
    found = rule(f"reshape(f32{shapes[0]}) shape={shapes[1]}")
    flat = np.arange(60)
    for f, factor in enumerate(found.factors):
        if factor.kind != "pass":
            continue
        seen = []
        for shape, dims in zip(shapes, found.tensors, strict=True):
            (d,) = (i for i, m in enumerate(dims) if isinstance(m, tuple) and f in m)
            mine = dims[d]
            assert isinstance(mine, tuple)
            minor = prod(found.factors[g].size for g in mine[mine.index(f) + 1 :])
            seen.append(np.unravel_index(flat, shape)[d] // minor % factor.size)
        assert (seen[0] == seen[1]).all()


def test_an_expanded_dim_is_a_factor_of_its_own() -> None:
    text = rule("broadcast_in_dim(i32[1, 7]) shape=[5, 7] dims=[0, 1]").text()
    assert text == "([k, j]) -> ([i, j]) {i=5, j=7, k=1 whole} linear {0}"


def test_broadcast_may_transpose() -> None:
    x = np.arange(24.0).reshape(4, 6)
    (out,) = evaluate(parse("broadcast_in_dim(f64[4, 6]) shape=[6, 5, 4] dims=[2, 0]"), x)
    assert (out == np.broadcast_to(x.T[:, None, :], (6, 5, 4))).all()


def test_counting_depends_on_the_position_in_one_dim() -> None:
    assert rule("iota() shape=[4, 7] dtype=f32 dimension=1").text() == "() -> ([i, j]) {i=4, j=7 position}"
    (out,) = evaluate(parse("iota() shape=[300] dtype=u8 dimension=0"))
    assert (out == np.arange(300) % 256).all()


def test_equal_elements_may_be_split_and_others_not() -> None:
    assert rule("constant() value=dense<7 : i32[4,6]>").text() == "() -> ([i, j]) {i=4, j=6}"
    assert rule("constant() value=dense<[1, 2] : i32[2]>").text() == "() -> ([i]) {i=2 whole}"
