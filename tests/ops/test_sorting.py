"""sort and top_k: against XLA and Python's own sort, comparators as keys and as they are, ties and NaN."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest

from gspmd.ir.dtypes import DTYPES, is_float
from gspmd.ir.errors import GspmdError
from gspmd.ir.parser import parse_example
from gspmd.kernels import sorting
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.ops.comparator import comparator_keys
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.xla.one_device import run_text

NEGATIVE_NAN = np.copysign(np.float32(np.nan), np.float32(-1))
EDGES = np.array([3, np.nan, -0.0, 1, NEGATIVE_NAN, 0.0, np.inf, 1, -np.inf, -0.0, 2, np.nan], np.float32)
# What JAX writes for floats: zeros are one, NaN are one and last.
CANONICAL = (
    "%zero{0} = constant() value=dense<0.0 : f32[]> : f32[] "
    "%is{0} = compare({0}, %zero{0}) direction=EQ : bool[] "
    "%z{0} = select(%is{0}, %zero{0}, {0}) : f32[] "
    "%no{0} = compare({0}, {0}) direction=NE : bool[] "
    "%nan{0} = constant() value=dense<nan : f32[]> : f32[] "
    "%key{0} = select(%no{0}, %nan{0}, %z{0}) : f32[] "
)


def canonical(name: str) -> str:
    return (
        CANONICAL.replace("%is{0}", f"%is{name}")
        .replace("({0}", f"(%{name}")
        .replace(", {0}", f", %{name}")
        .replace("{0}", name)
    )


def comparator(kind: str) -> str:
    two = "(%a: f32[], %b: f32[], %i: i32[], %j: i32[])"
    return {
        "less": f"{two} {{ %lt = compare(%a, %b) direction=LT : bool[] return %lt }}",
        "greater": f"{two} {{ %gt = compare(%a, %b) direction=GT : bool[] return %gt }}",
        "turned": f"{two} {{ %gt = compare(%b, %a) direction=GT : bool[] return %gt }}",
        "total": f"{two} {{ %lt = compare(%a, %b) direction=LT compare_type=TOTALORDER : bool[] return %lt }}",
        "jax": f"{two} {{ {canonical('a')} {canonical('b')} "
        "%lt = compare(%keya, %keyb) direction=LT compare_type=TOTALORDER : bool[] return %lt }",
        "chain": f"{two} {{ %lt = compare(%i, %j) direction=GT : bool[] %eq = compare(%i, %j) direction=EQ : bool[] "
        "%lo = compare(%a, %b) direction=LT : bool[] %both = and(%eq, %lo) : bool[] "
        "%any = or(%lt, %both) : bool[] return %any }",
        "choice": f"{two} {{ %lt = compare(%i, %j) direction=LT : bool[] %ne = compare(%i, %j) direction=NE : bool[] "
        "%lo = compare(%a, %b) direction=GT : bool[] %any = select(%ne, %lt, %lo) : bool[] return %any }",
        "magnitude": f"{two} {{ %x = abs(%a) : f32[] %y = abs(%b) : f32[] "
        "%lt = compare(%x, %y) direction=LT : bool[] return %lt }",
        "difference": f"{two} {{ %d = subtract(%a, %b) : f32[] %z = constant() value=dense<0.0 : f32[]> : f32[] "
        "%lt = compare(%d, %z) direction=LT : bool[] return %lt }",
        "crossed": f"{two} {{ %x = add(%a, %b) : f32[] %p = multiply(%x, %a) : f32[] %q = multiply(%x, %b) : f32[] "
        "%lt = compare(%p, %q) direction=LT : bool[] return %lt }",
    }[kind]


PYTHON: dict[str, Any] = {
    "less": lambda a, b, i, j: a < b,
    "greater": lambda a, b, i, j: a > b,
    "turned": lambda a, b, i, j: b > a,
    "chain": lambda a, b, i, j: i > j or (i == j and a < b),
    "choice": lambda a, b, i, j: i < j if i != j else a > b,
    "magnitude": lambda a, b, i, j: abs(a) < abs(b),
    "difference": lambda a, b, i, j: a - b < 0,
    "crossed": lambda a, b, i, j: (a + b) * a < (a + b) * b,
}
DIRECT = ("less", "greater", "turned", "total", "jax", "chain", "choice", "magnitude")


def sorted_by(kind: str, x: Any, y: Any, dimension: int = 0) -> list[Any]:
    n = list(x.shape)
    program = parse(f"sort(f32{n}, i32{n}) dimension={dimension} is_stable=true {comparator(kind)}")
    return evaluate(program, x, y)


@pytest.mark.parametrize("kind", (*DIRECT, "difference", "crossed"))
def test_comparators_are_read_as_keys_where_they_are_keys(kind: str) -> None:
    region = parse(f"sort(f32[4], i32[4]) {comparator(kind)}").body.nodes[0].regions[0]
    assert (comparator_keys(region) is not None) == (kind in DIRECT)


@pytest.mark.parametrize("kind", PYTHON)
@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_sort_is_pythons_stable_sort(kind: str, length: int) -> None:
    rng = np.random.default_rng(length)
    x = rng.integers(-3, 4, length).astype(np.float32)
    y = rng.integers(0, 3, length).astype(np.int32)
    less = PYTHON[kind]
    rows: list[Any] = list(zip(x, y, strict=True))

    def order(p: Any, q: Any) -> int:
        return -1 if less(p[0], q[0], p[1], q[1]) else int(less(q[0], p[0], q[1], p[1]))

    a, b = sorted_by(kind, x, y)
    assert list(zip(a, b, strict=True)) == sorted(rows, key=cmp_to_key(order))


def test_a_network_sorts_along_any_dimension() -> None:
    rng = np.random.default_rng(0)
    x = rng.permutation(60).reshape(3, 5, 4).astype(np.float32)
    y = np.arange(60, dtype=np.int32).reshape(3, 5, 4)
    for dim in range(3):
        a, b = sorted_by("difference", x, y, dim)
        order = np.argsort(x, dim, kind="stable")
        assert compare(a, np.take_along_axis(x, order, dim), exact=True).ok
        assert compare(b, np.take_along_axis(y, order, dim), exact=True).ok


STABLEHLO = {
    "total": "%p = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
    "jax": """
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %0 = stablehlo.compare EQ, %a, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = stablehlo.select %0, %z, %a : tensor<i1>, tensor<f32>
  %2 = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %3 = stablehlo.select %2, %n, %1 : tensor<i1>, tensor<f32>
  %4 = stablehlo.compare EQ, %b, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %5 = stablehlo.select %4, %z, %b : tensor<i1>, tensor<f32>
  %6 = stablehlo.compare NE, %b, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %7 = stablehlo.select %6, %n, %5 : tensor<i1>, tensor<f32>
  %p = stablehlo.compare LT, %3, %7, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>""",
}


@pytest.mark.parametrize("kind", STABLEHLO)
def test_edges_are_sorted_as_xla_does(kind: str) -> None:
    n = len(EDGES)
    text = f"""func.func public @main(%x: tensor<{n}xf32>, %y: tensor<{n}xi32>) -> (tensor<{n}xf32>, tensor<{n}xi32>) {{
  %s:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
  {STABLEHLO[kind]}
  stablehlo.return %p : tensor<i1> }}) : (tensor<{n}xf32>, tensor<{n}xi32>) -> (tensor<{n}xf32>, tensor<{n}xi32>)
  return %s#0, %s#1 : tensor<{n}xf32>, tensor<{n}xi32> }}"""
    places = np.arange(n, dtype=np.int32)
    for mine, theirs in zip(sorted_by(kind, EDGES, places), run_text(text, [EDGES, places]), strict=True):
        assert mine.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("order", ["", "compare_type=TOTALORDER"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8", "u16", "i64", "bool"])
def test_one_operand_is_sorted_by_itself(dtype: str, order: str, direction: str) -> None:
    if (order and dtype[0] not in "fb") or (order and dtype == "bool"):
        return
    name = dtype
    text = (
        f"sort({name}[3, 11]) dimension=1 (%a: {name}[], %b: {name}[]) "
        f"{{ %p = compare(%a, %b) direction={direction} {order} : bool[] return %p }}"
    )
    program = parse_example(text, OPS)
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((3, 11)) * 4).round().astype(program.body.params[0].type.dtype)
    (y,) = evaluate(program, x)
    wide = np.float64 if dtype[0] in "fb" else np.int64
    expected = np.sort(x.astype(wide) * (1 if direction == "LT" else -1), axis=1)
    assert (y.astype(wide) * (1 if direction == "LT" else -1) == expected).all()


@pytest.mark.parametrize("name", [n for n, t in DTYPES.items() if is_float(t) and t.itemsize == 1])
@pytest.mark.parametrize("total", [False, True])
def test_narrow_floats_are_ordered_as_wide_ones(name: str, total: bool) -> None:
    x = np.array([3, 0.5, 6, -3, 1, -0.5, 2, -6, 4], np.float32).astype(DTYPES[name])
    x = x[~np.isnan(x.astype(np.float32))]
    order = np.argsort(sorting.order_codes(x, total), kind="stable")
    assert np.array_equal(order, np.argsort(x.astype(np.float32), kind="stable"))


def test_codes_are_ordered_as_the_values_and_can_be_read_back() -> None:
    for x in (EDGES, EDGES.astype(np.float64), np.array([-128, 3, 127, 0], np.int8), np.array([0, 9, 255], np.uint8)):
        for descending in (False, True):
            codes = sorting.order_codes(x, total=True, descending=descending)
            assert sorting.from_codes(codes, x, descending).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
def test_top_k_takes_the_first_of_equals(dtype: Any) -> None:
    x = np.array([[3, 1, 3, 2, 3, 0, 1], [5, 5, 5, 5, 5, 5, 9]], dtype)
    for k in range(8):
        values, places = sorting.top_k(x, k)
        order = np.argsort(-x.astype(np.int64), axis=1, kind="stable")[:, :k]
        assert places.dtype == np.int32 and (places == order).all()
        assert (values == np.take_along_axis(x, order, 1)).all()


@pytest.mark.parametrize("k", [1, 3, 16])
@pytest.mark.parametrize("levels", [1, 7, 1 << 30])
def test_top_k_of_long_rows(k: int, levels: int) -> None:
    rng = np.random.default_rng(k)
    x = rng.integers(0, levels, (3, 2, 1037)).astype(np.float32)
    x[0, 1, ::100] = np.nan
    values, places = sorting.top_k(x, k)
    order = np.argsort(sorting.order_codes(x, True, True), axis=-1, kind="stable")[..., :k]
    assert np.array_equal(places, order) and np.array_equal(values, np.take_along_axis(x, order, -1), equal_nan=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_codes_turn_back_into_elements(dtype: str) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 6e-8], dtype)
    for descending in (False, True):
        codes = sorting.order_codes(x, True, descending)
        assert sorting.from_codes(codes, x, descending).tobytes() == x.tobytes()
        ordered = x[np.argsort(codes)]
        if descending:
            ordered = ordered[::-1]
        wanted = np.array([-np.nan, -np.inf, -1.5, -0.0, 0.0, 6e-8, 1.5, np.inf, np.nan], dtype)
        assert ordered.tobytes() == wanted.tobytes()


def test_codes_do_not_write_into_the_elements() -> None:
    for x in (np.arange(9, dtype=np.uint32), np.array([True, False])):
        before = x.copy()
        sorting.order_codes(x, True, True)
        assert np.array_equal(x, before)


def test_top_k_orders_edges_as_jax_does() -> None:
    from jax import lax

    for k in (1, 5, len(EDGES)):
        for mine, theirs in zip(sorting.top_k(EDGES, k), lax.top_k(EDGES, k), strict=True):
            assert mine.tobytes() == np.asarray(theirs).tobytes()


LESS = "(%a: f32[], %b: f32[]) { %lt = compare(%a, %b) direction=LT : bool[] return %lt }"
BROKEN = {
    "sort.C1": "sort(f32[4])",
    "sort.C2": "sort(f32[4], f32[5]) " + LESS,
    "sort.C3": "sort(f32[4]) dimension=1 " + LESS,
    "sort.C4": "sort(f32[4], f32[4]) " + LESS,
    "sort.C5": "sort(f32[4]) (%a: f32[], %b: f32[]) { return %a }",
    "top_k.C1": "top_k(c64[4]) k=2",
    "top_k.C2": "top_k(f32[4]) k=5",
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_constraint(constraint: str) -> None:
    with pytest.raises(GspmdError) as raised:
        parse(BROKEN[constraint])
    assert constraint in str(raised.value)
