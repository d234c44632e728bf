"""gather and scatter against the specification, with random dimension numbers; their local bodies and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gspmd.ir.dtypes import DTYPES
from gspmd.ir.errors import GspmdError, TraceError, TypeRuleError
from gspmd.ir.opdef import node_rule
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import combine
from gspmd.ops.addressing import SCATTER_MONOIDS, GatherAttrs, ScatterAttrs
from gspmd.ops.indexing import GATHER, SCATTER
from gspmd.ops.reduce import CUSTOM
from tests.ops import specification as spec
from tests.ops.bench import localized, node_of, pull, type_of
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs
from tests.ops.test_slicing import NAMES, kernel, same, values

MONOIDS = [m for m in SCATTER_MONOIDS if m != CUSTOM]
INDICES = st.sampled_from(["i8", "u8", "i32", "u32", "i64", "u64"])


@st.composite
def lookups(draw: Any, least: int = 0, most: int = 5) -> tuple[tuple[int, ...], Any, GatherAttrs]:
    """An operand's shape, indices (some outside) and any dimension numbers that fit."""
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(least, most)) for _ in range(rank)]
    roles = [draw(st.sampled_from(["batch", "gone", "kept", "kept"])) for _ in shape]
    roles = ["kept" if r == "gone" and n == 0 else r for r, n in zip(roles, shape, strict=True)]
    batching = [d for d, r in enumerate(roles) if r == "batch"]
    collapsed = tuple(d for d, r in enumerate(roles) if r == "gone")
    kept = [d for d, r in enumerate(roles) if r == "kept"]
    sizes = [draw(st.sampled_from([n, min(n, 1), draw(st.integers(0, n))])) for n in shape]
    sizes = [n if d in kept else min(1, shape[d]) for d, n in enumerate(sizes)]
    start_map = draw(st.permutations([d for d in range(rank) if d not in batching]))
    start_map = start_map[: draw(st.integers(0, len(start_map)))]
    extra = [draw(st.integers(least, 4)) for _ in range(draw(st.integers(0, 2)))]
    order = draw(st.permutations([*(("batch", d) for d in batching), *(("extra", i) for i in range(len(extra)))]))
    index_shape = [shape[i] if kind == "batch" else extra[i] for kind, i in order]
    at = draw(st.integers(0, len(order)))
    if len(start_map) != 1 or draw(st.booleans()):
        index_shape.insert(at, len(start_map))
    else:
        at = len(order)
    place = {d: order.index(("batch", d)) for d in batching}
    rank_out = len(order) + len(kept)
    offset_dims = tuple(sorted(draw(st.permutations(range(rank_out)))[: len(kept)]))
    attrs = GatherAttrs(
        offset_dims,
        collapsed,
        tuple(batching),
        tuple(place[d] + (place[d] >= at) for d in batching),
        tuple(start_map),
        at,
        tuple(sizes),
    )
    dtype = DTYPES[draw(INDICES)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    indices = rng.integers(0 if dtype.kind == "u" else -2, most + 2, index_shape).astype(dtype)
    if indices.size and draw(st.booleans()):
        indices.reshape(-1)[0] = draw(st.sampled_from([np.iinfo(dtype).min, np.iinfo(dtype).max]))
    return tuple(shape), indices, attrs


def as_scatter(attrs: GatherAttrs, monoid: str) -> ScatterAttrs:
    return ScatterAttrs(
        attrs.offset_dims,
        attrs.collapsed_slice_dims,
        attrs.operand_batching_dims,
        attrs.indices_batching_dims,
        attrs.start_index_map,
        attrs.index_vector_dim,
        monoid,
    )


def fitting(monoid: str, dtype: str) -> str:
    """The monoid, or another where the dtype has no such: bits of floats, the larger of two complex numbers."""
    kind = DTYPES[dtype].kind
    if monoid in ("max", "min") and kind == "c":
        return "mul"
    return "add" if monoid in ("and", "or", "xor") and kind not in "biu" else monoid


def fold_of(monoid: str) -> Any:
    return (lambda old, new: new) if monoid == "set" else combine(monoid)


def update_shape(shape: Sequence[int], indices: Any, attrs: GatherAttrs) -> tuple[int, ...]:
    return node_of(GATHER, [TensorType("f32", shape), type_of(indices)], attrs).results[0].type.shape


@settings(max_examples=200)
@given(lookups(), NAMES)
def test_gather(case: Any, dtype: str) -> None:
    shape, indices, attrs = case
    x = values(shape, dtype)
    node = node_of(GATHER, [type_of(x), type_of(indices)], attrs)
    same(kernel(node, x, indices), spec.gather(x, indices, attrs))


@settings(max_examples=200)
@given(lookups(), NAMES, st.sampled_from(MONOIDS))
def test_scatter(case: Any, dtype: str, monoid: str) -> None:
    shape, indices, attrs = case
    monoid = fitting(monoid, dtype)
    numbers = as_scatter(attrs, monoid)
    x = values(shape, dtype)
    updates = values(update_shape(shape, indices, attrs), dtype, 1)
    if dtype in ("f8e4m3fn", "f8e5m2", "f16", "bf16") and monoid in ("add", "mul"):
        updates = np.sign(updates)  # whatever the order and the rounding, the result is the same
    node = node_of(SCATTER, [type_of(x), type_of(indices), type_of(updates)], numbers)
    got = kernel(node, x, indices, updates)
    want = spec.scatter(x, indices, updates, numbers, fold_of(monoid))
    if monoid in ("max", "min"):  # which zero of two wins is open
        got, want = got + np.zeros((), got.dtype), want + np.zeros((), want.dtype)
    same(got, want.astype(got.dtype))


@settings(max_examples=150)
@given(
    lookups(1, 7), st.sampled_from(["f32", "i8", "bool", "bf16"]), st.lists(st.integers(1, 4), min_size=12, max_size=12)
)
def test_gather_on_split_dims(case: Any, dtype: str, parts: list[int]) -> None:
    shape, indices, attrs = case
    x = values(shape, dtype)
    node = node_of(GATHER, [type_of(x), type_of(indices)], attrs)
    same(localized(node, [x, indices], some_split(node, parts), parts[0] > 2), kernel(node, x, indices))


@settings(max_examples=150)
@given(
    lookups(1, 7),
    st.sampled_from(["f32", "i32", "bool"]),
    st.lists(st.integers(1, 4), min_size=12, max_size=12),
    st.sampled_from(MONOIDS),
)
def test_scatter_on_split_dims(case: Any, dtype: str, parts: list[int], monoid: str) -> None:
    shape, indices, attrs = case
    monoid = fitting(monoid, dtype)
    x, updates = values(shape, dtype), values(update_shape(shape, indices, attrs), dtype, 1)
    node = node_of(SCATTER, [type_of(x), type_of(indices), type_of(updates)], as_scatter(attrs, monoid))
    got, want = (
        localized(node, [x, indices, updates], some_split(node, parts), parts[0] > 2),
        kernel(node, x, indices, updates),
    )
    np.testing.assert_array_equal(got, want, strict=True)


ROWS = (
    "update_window_dims=[1] inserted_window_dims=[0] input_batching_dims=[] scatter_indices_batching_dims=[] "
    "scatter_dims_to_operand_dims=[0] index_vector_dim=1"
)


def test_a_region_takes_an_elements_updates_one_after_the_other() -> None:
    """Twice what is there plus the update: not associative, so that no two updates may be joined first."""
    program = parse(
        f"scatter(i32[4, 3], i32[6], i32[6, 3]) {ROWS} monoid=custom (%a: i32[], %b: i32[]) {{ "
        "%d = add(%a, %a) : i32[] %s = add(%d, %b) : i32[] return %s }"
    )
    x, indices, updates = np.arange(12).reshape(4, 3), np.array([1, 0, 1, 9, 1, -1]), np.arange(18).reshape(6, 3) + 5
    want = x.copy()
    for i, u in zip(indices, updates, strict=True):
        if 0 <= i < 4:
            want[i] = 2 * want[i] + u
    (got,) = evaluate(program, *(a.astype(np.int32) for a in (x, indices, updates)))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("example", [*GATHER.examples, *(e for e in SCATTER.examples if CUSTOM not in e)])
def test_examples_on_split_dims(example: str) -> None:
    """Every factor that can be split and every pair, into 2, 3 and 4 parts."""
    program = parse(example)
    (node,), rule = program.body.nodes, node_rule(program.body.nodes[0])
    assert rule is not None
    arrays = [np.round(8 * x) if x.dtype.kind == "f" else x for x in example_inputs(program)]
    if "monoid=mul" in example:
        arrays[2] = np.sign(arrays[2])
    want = kernel(node, *arrays)
    factors = [f for f, factor in enumerate(rule.factors) if factor.kind != "whole"]
    for number, (f, g) in enumerate(itertools.combinations_with_replacement(factors, 2)):
        split = {f: 2 + number % 3, g: 2 + (number + f) % 3}
        got = localized(node, arrays, split, plausible=bool(number % 2 == f % 2))
        np.testing.assert_array_equal(got, want, err_msg=str(split), strict=True)


def some_split(node: Any, parts: Sequence[int]) -> dict[int, int]:
    """Up to three factors of more than one part, none of them whole."""
    rule = node_rule(node)
    assert rule is not None
    found = {f: n for f, n in enumerate(parts[: len(rule.factors)]) if n > 1 and rule.factors[f].kind != "whole"}
    return dict(list(found.items())[:3])


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_floats_add_up_in_f32(dtype: str) -> None:
    x = np.zeros((2, 1), DTYPES[dtype])
    updates = np.ones((4096, 1), DTYPES[dtype])
    numbers = ScatterAttrs((1,), (0,), (), (), (0,), 1, "add")
    node = node_of(SCATTER, [type_of(x), TensorType("i32", (4096,)), type_of(updates)], numbers)
    got = kernel(node, x, np.zeros(4096, np.int32), updates)
    assert got.astype(np.float32).tolist() == [[4096.0], [0.0]]


@pytest.mark.parametrize(("rows", "count", "width"), [(1, 700, 3), (5, 3000, 2), (90000, 400, 4), (3, 500, 1)])
@pytest.mark.parametrize("monoid", ["add", "min"])
def test_many_updates_of_few_rows(rows: int, count: int, width: int, monoid: str) -> None:
    rng = np.random.default_rng(rows)
    x = rng.integers(-50, 50, (rows, width)).astype(np.float32)
    updates = rng.integers(-50, 50, (count, width)).astype(np.float32)
    at = (rng.integers(0, rows, count) * rng.integers(0, 2, count)).astype(np.int32)
    node = node_of(
        SCATTER, [type_of(x), type_of(at), type_of(updates)], ScatterAttrs((1,), (0,), (), (), (0,), 1, monoid)
    )
    want = x.copy()
    (np.add if monoid == "add" else np.minimum).at(want, at, updates)
    same(kernel(node, x, at, updates), want)


def test_the_last_update_wins() -> None:
    numbers = ScatterAttrs((), (0,), (), (), (0,), 1, "set")
    x, updates = np.zeros(3, np.float32), np.arange(1, 1001, dtype=np.float32)
    node = node_of(SCATTER, [type_of(x), TensorType("i32", (1000,)), type_of(updates)], numbers)
    at = np.arange(1000, dtype=np.int32) % 2
    assert kernel(node, x, at, updates).tolist() == [999.0, 1000.0, 0.0]


@settings(max_examples=60)
@given(lookups(1, 6), st.sampled_from(["gather", "add", "set"]))
def test_gradients_are_the_transposed_maps(case: Any, kind: str) -> None:
    """<ct, A x> = <A' ct, x>: exact, for whole numbers."""
    shape, indices, attrs = case
    rng = np.random.default_rng(5)
    arrays = [rng.integers(-4, 5, shape).astype(np.float64), indices]
    if kind == "gather":
        node = node_of(GATHER, [type_of(x) for x in arrays], attrs)
    else:
        arrays.append(rng.integers(-4, 5, update_shape(shape, indices, attrs)).astype(np.float64))
        node = node_of(SCATTER, [type_of(x) for x in arrays], as_scatter(attrs, kind))
    y = kernel(node, *arrays)
    ct = rng.integers(-4, 5, y.shape).astype(np.float64)
    pulled = pull(node, arrays, [ct])
    assert pulled[1] is None
    total = sum(float((p * x).sum()) for p, x in zip(pulled, arrays, strict=True) if p is not None)
    assert float((ct * y).sum()) == total


def test_other_scatters_have_no_gradient() -> None:
    numbers = ScatterAttrs((), (0,), (), (), (0,), 1, "max")
    arrays = [np.zeros(3), np.zeros(2, np.int32), np.zeros(2)]
    node = node_of(SCATTER, [type_of(x) for x in arrays], numbers)
    with pytest.raises(TraceError, match="combines by max"):
        pull(node, arrays, [np.zeros(3)])


GOOD = GatherAttrs((1,), (0,), (), (), (0,), 1, (1, 5))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"offset_dims": (0, 1)}, "gather.C2"),
        ({"slice_sizes": (1,)}, "gather.C2"),
        ({"offset_dims": (2,)}, "gather.C3"),
        ({"collapsed_slice_dims": (2,)}, "gather.C3"),
        ({"slice_sizes": (1, 6)}, "gather.C4"),
        ({"slice_sizes": (2, 5)}, "gather.C4"),
        ({"index_vector_dim": 2}, "gather.C6"),
        ({"start_index_map": ()}, "gather.C6"),
        ({"start_index_map": (2,)}, "gather.C7"),
        ({"operand_batching_dims": (0,), "collapsed_slice_dims": ()}, "gather.C7"),
        ({"indices_batching_dims": (0,)}, "gather.C8"),
    ],
)
def test_type_rules_of_gather(changes: dict[str, Any], rule: str) -> None:
    fields = {f: getattr(GOOD, f) for f in GatherAttrs.__slots__ or GatherAttrs.__dataclass_fields__}
    with pytest.raises(TypeRuleError) as error:
        node_of(GATHER, [TensorType("f32", (12, 5)), TensorType("i32", (7,))], GatherAttrs(**{**fields, **changes}))
    assert error.value.rule == rule


@pytest.mark.parametrize(
    ("updates", "monoid", "rule"),
    [
        (TensorType("f32", (7, 6)), "add", "scatter.C4"),
        (TensorType("f32", (8, 5)), "add", "scatter.C4"),
        (TensorType("f64", (7, 5)), "add", "scatter.C4"),
        (TensorType("f32", (7, 5)), "xor", "scatter.C10"),
        (TensorType("f32", (7, 5)), "average", "scatter.C10"),
        (TensorType("f32", (7, 5)), "custom", "scatter.C11"),
    ],
)
def test_type_rules_of_scatter(updates: TensorType, monoid: str, rule: str) -> None:
    with pytest.raises(TypeRuleError) as error:
        node_of(SCATTER, [TensorType("f32", (12, 5)), TensorType("i32", (7,)), updates], as_scatter(GOOD, monoid))
    assert error.value.rule == rule


@pytest.mark.parametrize(
    ("operands", "region", "rule"),
    [
        ("f32[4, 3], i32[6]", "(%a: f32[], %b: f32[]) { return %b }", "scatter.C1"),
        ("f32[4, 3], f32[5, 3], i32[6], f32[6, 3], f32[6, 3]", "(%a: f32[], %b: f32[]) { return %b }", "scatter.C12"),
        ("f32[4, 3], i32[6], f32[6, 3]", "(%a: f32[], %b: i32[]) { return %a }", "scatter.C13"),
        ("f32[4, 3], i32[6], f32[6, 3]", "(%a: f32[], %b: f32[]) { return %a, %b }", "scatter.C14"),
    ],
)
def test_type_rules_of_scatter_by_a_region(operands: str, region: str, rule: str) -> None:
    with pytest.raises(GspmdError) as error:
        parse(f"scatter({operands}) {ROWS} monoid=custom {region}")
    assert rule in str(error.value)
