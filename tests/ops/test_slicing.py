"""slice, pad, concatenate, reverse and the dynamic slices against the specification, their rules, gradients, bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.opdef import node_rule
from gspmd.ir.rule import Access
from gspmd.ir.types import TensorType
from gspmd.ops.moving import ConcatenateAttrs, PadAttrs, ReverseAttrs, SliceAttrs
from gspmd.ops.slicing import (
    CONCATENATE,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    REVERSE,
    SLICE,
    DynamicSliceAttrs,
)
from tests.ops import specification as spec
from tests.ops.bench import localized, node_of, pull, type_of

SHAPES = st.lists(st.integers(0, 6), min_size=0, max_size=3).map(tuple)
NAMES = st.sampled_from(sorted(DTYPES))


def values(shape: tuple[int, ...], dtype: Any = "f32", seed: int = 0) -> Any:
    """Small whole numbers, exact in every dtype, negative zeros among the floats."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, shape) if dtype in ("bool", "i2", "u2") else rng.integers(0, 5, shape)
    x = np.asarray(x).astype(np.float64)
    return (-x if dtype in ("f32", "f64", "bf16", "f16") else x).astype(DTYPES[dtype])


def same(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == np.ascontiguousarray(want).tobytes(), (got, want)


def kernel(node: Any, *arrays: Any) -> Any:
    (result,) = node.results
    out = node.op.kernel(node.attrs, *arrays)
    assert type_of(out) == result.type
    return out


@st.composite
def slices(draw: Any) -> tuple[tuple[int, ...], SliceAttrs]:
    shape = draw(SHAPES)
    start = [draw(st.integers(0, n)) for n in shape]
    limit = [draw(st.integers(a, n)) for a, n in zip(start, shape, strict=True)]
    return shape, SliceAttrs(tuple(start), tuple(limit), tuple(draw(st.integers(1, 4)) for _ in shape))


@st.composite
def pads(draw: Any) -> tuple[tuple[int, ...], PadAttrs]:
    shape = draw(SHAPES)
    gaps = [draw(st.integers(0, 3)) for _ in shape]
    low = [draw(st.integers(-4, 4)) for _ in shape]
    grown = [n + max(n - 1, 0) * g for n, g in zip(shape, gaps, strict=True)]
    high = [draw(st.integers(max(-n - lo, -4), 4)) for n, lo in zip(grown, low, strict=True)]
    high = [max(h, -n - lo) for h, n, lo in zip(high, grown, low, strict=True)]
    return shape, PadAttrs(tuple(low), tuple(high), tuple(gaps))


def read_by_accesses(node: Any, arrays: Any) -> Any:
    """The result as the rule's accesses say it, cell by cell."""
    rule = node_rule(node)
    assert rule is not None
    shape = node.results[0].type.shape
    out = np.empty(shape, node.results[0].type.dtype)
    for o in spec.cells(shape):
        found = None
        for x, dims in zip(arrays, rule.operands, strict=True):
            place, fill = [], None
            for dim, n in zip(dims, x.shape, strict=True):
                if not isinstance(dim, Access):
                    place.append(o[dim[0]])
                    continue
                at = dim.mul * o[dim.factor] + dim.add
                if at % dim.div or not 0 <= at // dim.div < n:
                    fill = arrays[dim.fill_operand] if dim.fill_operand is not None else False
                place.append(at // dim.div)
            value = x[tuple(place)] if fill is None else None if fill is False else fill
            if x.ndim == len(shape) and value is not None and found is None:
                found = value
        out[o] = found
    return out


@given(slices(), NAMES)
def test_slice(case: tuple[Any, SliceAttrs], dtype: str) -> None:
    shape, attrs = case
    x = values(shape, dtype)
    node = node_of(SLICE, [type_of(x)], attrs)
    want = spec.slice_(x, attrs.start, attrs.limit, attrs.stride)
    same(kernel(node, x), want)
    same(read_by_accesses(node, [x]), want)


@given(pads(), NAMES)
def test_pad(case: tuple[Any, PadAttrs], dtype: str) -> None:
    shape, attrs = case
    x, fill = values(shape, dtype), np.ones((), DTYPES[dtype])
    node = node_of(PAD, [type_of(x), type_of(fill)], attrs)
    want = spec.pad(x, fill, attrs.low, attrs.high, attrs.interior)
    same(kernel(node, x, fill), want)
    if shape:
        same(read_by_accesses(node, [x, fill]), want)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 2), NAMES)
def test_concatenate(sizes: list[int], dim: int, dtype: str) -> None:
    xs = [values(tuple(n if d == dim else d + 1 for d in range(3)), dtype, i) for i, n in enumerate(sizes)]
    node = node_of(CONCATENATE, [type_of(x) for x in xs], ConcatenateAttrs(dim))
    same(kernel(node, *xs), spec.concatenate(xs, dim))
    same(read_by_accesses(node, xs), spec.concatenate(xs, dim))


@given(SHAPES, st.sets(st.integers(0, 2)), NAMES)
def test_reverse(shape: tuple[int, ...], dims: set[int], dtype: str) -> None:
    attrs = ReverseAttrs(tuple(d for d in dims if d < len(shape)))
    x = values(shape, dtype)
    node = node_of(REVERSE, [type_of(x)], attrs)
    same(kernel(node, x), spec.reverse(x, attrs.dims))
    same(read_by_accesses(node, [x]), spec.reverse(x, attrs.dims))


@st.composite
def blocks(draw: Any) -> tuple[Any, Any, Any]:
    shape = draw(SHAPES)
    sizes = tuple(draw(st.integers(0, n)) for n in shape)
    dtype = DTYPES[draw(st.sampled_from(["i8", "u8", "i32", "u32", "i64", "u64"]))]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    extreme = st.sampled_from([low, high, max(low, -1), 0, 1, 7])
    starts = [np.array(draw(st.integers(max(low, -3), 9) | extreme), dtype) for _ in shape]
    return shape, sizes, starts


@given(blocks(), NAMES)
def test_dynamic_slices(case: Any, dtype: str) -> None:
    shape, sizes, starts = case
    x, update = values(shape, dtype), values(sizes, dtype, 1)
    types = [type_of(s) for s in starts]
    node = node_of(DYNAMIC_SLICE, [type_of(x), *types], DynamicSliceAttrs(ResultShape(sizes)))
    same(kernel(node, x, *starts), spec.dynamic_slice(x, starts, sizes))
    node = node_of(DYNAMIC_UPDATE_SLICE, [type_of(x), type_of(update), *types], Attrs())
    same(kernel(node, x, update, *starts), spec.dynamic_update_slice(x, update, starts))


@st.composite
def split_blocks(draw: Any) -> Any:
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=2, max_size=2)))
    sizes = tuple(draw(st.integers(1, n)) for n in shape)
    dtype = DTYPES[draw(st.sampled_from(["u8", "i32", "i64", "u64"]))]
    starts = [np.array(draw(st.integers(0 if dtype.kind == "u" else -3, 12)), dtype) for _ in shape]
    return shape, sizes, starts, [draw(st.integers(1, 4)) for _ in range(4)]


@settings(max_examples=60)
@given(split_blocks(), st.sampled_from(["f32", "i8", "bool", "bf16"]))
def test_dynamic_slices_on_split_dims(case: Any, dtype: str) -> None:
    shape, sizes, starts, parts = case
    x, update = values(shape, dtype), values(sizes, dtype, 1)
    types = [type_of(s) for s in starts]
    read = node_of(DYNAMIC_SLICE, [type_of(x), *types], DynamicSliceAttrs(ResultShape(sizes)))
    write = node_of(DYNAMIC_UPDATE_SLICE, [type_of(x), type_of(update), *types], Attrs())
    for node, arrays in ((read, [x, *starts]), (write, [x, update, *starts])):
        rule = node_rule(node)
        assert rule is not None
        split = {f: n for f, n in enumerate(parts[: len(rule.factors)]) if n > 1 and rule.factors[f].kind != "whole"}
        same(localized(node, arrays, split), kernel(node, *arrays))


@pytest.mark.parametrize(
    ("op", "types", "attrs"),
    [
        (SLICE, ["f32[9,5]"], SliceAttrs((1, 0), (8, 5), (3, 2))),
        (SLICE, ["f32[4,5]"], SliceAttrs((4, 0), (4, 5), (1, 5))),
        (PAD, ["f32[4,5]", "f32[]"], PadAttrs((2, -1), (-3, 4), (1, 2))),
        (PAD, ["f32[4]", "f32[]"], PadAttrs((-3,), (-3,), (2,))),
        (CONCATENATE, ["f32[4,2]", "f32[4,3]"], ConcatenateAttrs(1)),
        (REVERSE, ["f32[4,5]"], ReverseAttrs((1,))),
        (DYNAMIC_SLICE, ["f32[4,5]", "i32[]", "i32[]"], DynamicSliceAttrs(ResultShape((2, 3)))),
        (DYNAMIC_UPDATE_SLICE, ["f32[4,5]", "f32[2,5]", "i32[]", "i32[]"], Attrs()),
    ],
)
def test_gradients_are_the_transposed_maps(op: Any, types: list[str], attrs: Attrs) -> None:
    """<ct, A x> = <A' ct, x>: exact, for whole numbers."""
    rng = np.random.default_rng(3)
    arrays = []
    for text in types:
        name, _, dims = text[:-1].partition("[")
        shape = [int(n) for n in dims.split(",") if n]
        arrays.append(np.asarray(rng.integers(-4, 5, shape)).astype(DTYPES[name]))
    node = node_of(op, [type_of(x) for x in arrays], attrs)
    y = kernel(node, *arrays)
    ct = rng.integers(-4, 5, y.shape).astype(np.float32)
    pulled = pull(node, arrays, [ct])
    assert [p is None for p in pulled] == [x.dtype == np.int32 for x in arrays]
    assert all(p.shape == x.shape for p, x in zip(pulled, arrays, strict=True) if p is not None)
    total = sum(float((p * x).sum()) for p, x in zip(pulled, arrays, strict=True) if p is not None)
    assert float((ct * y).sum()) == total


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "rule"),
    [
        (SLICE, [(4,)], SliceAttrs((0,), (4, 1), (1,)), "slice.C2"),
        (SLICE, [(4,)], SliceAttrs((0,), (5,), (1,)), "slice.C3"),
        (SLICE, [(4,)], SliceAttrs((0,), (4,), (0,)), "slice.C4"),
        (PAD, [(4,), (1,)], PadAttrs((0,), (0,), (0,)), "pad.C2"),
        (PAD, [(4,), ()], PadAttrs((0,), (0,), (0, 0)), "pad.C3"),
        (PAD, [(4,), ()], PadAttrs((0,), (0,), (-1,)), "pad.C4"),
        (PAD, [(4,), ()], PadAttrs((-3,), (-2,), (0,)), "pad.C5"),
        (CONCATENATE, [(4,), (4, 1)], ConcatenateAttrs(0), "concatenate.C4"),
        (CONCATENATE, [(4,)], ConcatenateAttrs(1), "concatenate.C3"),
        (REVERSE, [(4,)], ReverseAttrs((0, 0)), "reverse.C2"),
        (DYNAMIC_SLICE, [(4,)], DynamicSliceAttrs(ResultShape((2,))), "dynamic_slice.C2"),
        (DYNAMIC_SLICE, [(4,), ()], DynamicSliceAttrs(ResultShape((2,))), "dynamic_slice.C2"),
        (DYNAMIC_UPDATE_SLICE, [(4,), (5,), ()], Attrs(), "dynamic_update_slice.C3"),
    ],
)
def test_type_rules(op: Any, shapes: list[tuple[int, ...]], attrs: Attrs, rule: str) -> None:
    with pytest.raises(TypeRuleError) as error:
        node_of(op, [TensorType("f32", s) for s in shapes], attrs)
    assert error.value.rule == rule
