"""Compiled folds by a region compute what the walker makes of them: every layout, any number of threads, all dtypes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gspmd
from gspmd.ir.graph import Node, Program
from gspmd.ir.parser import parse_example, parse_program
from gspmd.ir.printer import print_program
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.ops.folding import Fold, fold_of
from gspmd.ops.fused import FusedAttrs
from gspmd.optimizer.optimize import optimize, schedule
from gspmd.runtime.executor import Executor
from gspmd.runtime.fusion import fold, run, threads
from gspmd.runtime.fusion.fold_source import fold_source

# The first of the greatest, NaN among them, and where it stands.
GREATEST = """(%a: f32[], %i: i32[], %b: f32[], %j: i32[]) {
    %gt = compare(%a, %b) direction=GT : bool[]
    %ne = compare(%a, %a) direction=NE : bool[]
    %w = or(%gt, %ne) : bool[]
    %eq = compare(%a, %b) direction=EQ : bool[]
    %lt = compare(%i, %j) direction=LT : bool[]
    %tie = and(%eq, %lt) : bool[]
    %left = or(%w, %tie) : bool[]
    %v = select(%w, %a, %b) : f32[]
    %k = select(%left, %i, %j) : i32[]
    return %v, %k
  }"""
# Associative and not commutative: the composition of maps x -> scale*x + shift, modulo 2**32.
COMPOSED = """(%a: u32[], %b: u32[], %c: u32[], %d: u32[]) {
    %s = multiply(%a, %c) : u32[]
    %t = multiply(%b, %c) : u32[]
    %u = add(%t, %d) : u32[]
    return %s, %u
  }"""
REDUCED = [
    ((5000,), [0]),
    ((40, 300), [1]),
    ((40, 300), [0]),
    ((300, 5), [0]),
    ((300, 5), [1]),
    ((3, 40, 5, 70), [1, 3]),
    ((3, 40, 5, 70), [0, 2]),
    ((3, 40, 5, 70), [0, 3]),
    ((7, 11, 13), [0, 1, 2]),
    ((1, 2100, 3), [1]),
    ((33,), []),
    ((), []),
]
WINDOWS = [
    ((5000,), "size=[3]"),
    ((999,), "size=[40] stride=[40]"),
    ((20, 30), "size=[3, 3] stride=[2, 2] low=[1, 0] high=[1, 2]"),
    ((20, 30), "size=[1, 2] base_dilation=[1, 3] window_dilation=[1, 2] low=[0, -2]"),
    ((2, 18, 17, 12), "size=[1, 3, 2, 1] stride=[1, 2, 1, 1] low=[0, 1, 0, 0]"),
    ((6, 5, 4), "size=[6, 1, 4]"),
]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kernels of these tests are compiled by these tests."""
    folder = tmp_path_factory.mktemp("kernels")
    before = os.environ.get("GSPMD_CACHE")
    os.environ["GSPMD_CACHE"] = str(folder)
    yield folder
    os.environ.pop("GSPMD_CACHE") if before is None else os.environ.update(GSPMD_CACHE=before)


@pytest.fixture(autouse=True)
def no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that cannot be made fails the test."""

    def fail(*arguments: Any, **more: Any) -> None:
        raise AssertionError("no kernel was made")

    monkeypatch.setattr(run._logger, "log", fail)


def text_of(head: str, shape: Sequence[int], result: Sequence[int], dtypes: tuple[str, str], region: str) -> str:
    (s, t), (a, b) = (",".join(map(str, n)) for n in (shape, result)), dtypes
    return f"""func @f(%x: {a}[{s}], %n: {b}[{s}], %v: {a}[], %z: {b}[]) -> ({a}[{t}], {b}[{t}]) stage=optimized {{
  %p, %q = {head} monoid=custom {region} : ({a}[{t}], {b}[{t}])
  return %p, %q
}}"""


def reduced(shape: Sequence[int], dims: Sequence[int], region: str = COMPOSED, dtypes: Any = ("u32", "u32")) -> Program:
    kept = [n for d, n in enumerate(shape) if d not in dims]
    return parse_program(text_of(f"reduce(%x, %n, %v, %z) dims={list(dims)}", shape, kept, dtypes, region), OPS)


def windowed(shape: Sequence[int], window: str) -> Program:
    """A program with a window; the result's shape is the one that the type rule finds."""
    typed = f"reduce_window(u32[{','.join(map(str, shape))}]) window={{{window}}}"

    result = parse_example(typed, OPS).body.nodes[0].result.type.shape
    head = f"reduce_window(%x, %n, %v, %z) window={{{window}}}"
    return parse_program(text_of(head, shape, result, ("u32", "u32"), COMPOSED), OPS)


def numbers(program: Program, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 1 << 32, t.shape, np.uint32) for t in program.inputs]


def executed(program: Program, arrays: Sequence[Any]) -> list[Any]:
    return [shards[0] for shards in Executor(program).run_shards([[np.asarray(x)] for x in arrays])]


def compiled(program: Program, least_work: int = 0) -> Program:
    """The scheduled program, in which the only node is a fold of its own."""
    made = schedule(program, least_work)
    verify(made, OPS)
    assert [isinstance(n.attrs, FusedAttrs) for n in made.body.nodes] == [True], print_program(made)
    assert print_program(parse_program(print_program(made), OPS)) == print_program(made)
    return made


def found_fold(program: Program) -> Fold:
    made = fold_of(program.body.nodes[0])
    assert made is not None
    return made


def check(program: Program, arrays: Sequence[Any]) -> None:
    for got, meant in zip(executed(compiled(program), arrays), executed(program, arrays), strict=True):
        assert compare(got, meant, exact=True)


@pytest.mark.parametrize(("shape", "dims"), REDUCED)
def test_reductions_keep_the_order_of_elements(shape: tuple[int, ...], dims: list[int]) -> None:
    program = reduced(shape, dims)
    check(program, numbers(program))


@pytest.mark.parametrize(("shape", "window"), WINDOWS)
def test_windows_keep_the_order_of_elements(shape: tuple[int, ...], window: str) -> None:
    program = windowed(shape, window)
    check(program, numbers(program))


def test_both_forms_of_kernels_are_among_the_cases() -> None:
    for cases, make in ((REDUCED, reduced), (WINDOWS, windowed)):
        made: list[Fold] = [found_fold(make(*case)) for case in cases]  # type: ignore[operator]
        assert {f.side_by_side for f in made} == {True, False}
        assert {f.inner[1] == 1 for f in made} == {True, False}


@pytest.mark.parametrize(("shape", "dims"), [((5000,), [0]), ((40, 90), [0]), ((40, 90), [1])])
def test_the_greatest_and_its_place(shape: tuple[int, ...], dims: list[int]) -> None:
    program = reduced(shape, dims, GREATEST, ("f32", "i32"))
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 9, shape).astype(np.float32)
    x[rng.random(shape) < 0.01] = np.nan
    places = np.argsort(np.argsort(rng.random(x.size))).astype(np.int32).reshape(shape)
    check(program, [x, places, np.float32(-np.inf), np.int32(2**31 - 1)])


@pytest.mark.parametrize("dtype", ["bool", "u8", "i16", "u64", "f64"])
def test_all_widths(dtype: str) -> None:
    region = f"""(%a: {dtype}[], %b: i32[], %c: {dtype}[], %d: i32[]) {{
    %lt = compare(%a, %c) direction=LT : bool[]
    %eq = compare(%a, %c) direction=EQ : bool[]
    %first = compare(%b, %d) direction=LE : bool[]
    %tie = and(%eq, %first) : bool[]
    %left = or(%lt, %tie) : bool[]
    %v = select(%left, %a, %c) : {dtype}[]
    %k = select(%left, %b, %d) : i32[]
    return %v, %k
  }}"""
    rng = np.random.default_rng(2)
    for shape, dims in (((3, 50), [1]), ((50, 16), [0])):
        program = reduced(shape, dims, region, (dtype, "i32"))
        arrays = [rng.integers(0, 2 if dtype == "bool" else 100, t.shape).astype(t.dtype) for t in program.inputs]
        check(program, arrays)


@pytest.mark.parametrize("name", ["f16", "bf16", "c64", "i4"])
def test_other_dtypes_stay_with_the_walker(name: str) -> None:
    region = f"(%a: {name}[], %b: {name}[]) {{ %s = add(%a, %b) : {name}[] return %s }}"
    text = f"""func @f(%x: {name}[64], %v: {name}[]) -> ({name}[]) stage=optimized {{
  %y = reduce(%x, %v) dims=[0] monoid=custom {region} : {name}[]
  return %y }}"""
    program = parse_program(text, OPS)
    assert fold_of(program.body.nodes[0]) is None
    made = schedule(program, 0)
    assert not any(isinstance(n.attrs, FusedAttrs) for n in made.body.nodes)


def test_small_folds_wait_for_no_compiler() -> None:
    made = schedule(reduced((1 << 19,), [0]))
    assert [n.attrs for n in made.body.nodes if isinstance(n.attrs, FusedAttrs)] == []
    compiled(reduced((1 << 20,), [0]), 1 << 17)


@pytest.mark.parametrize(("shape", "dims"), [((5000,), [0]), ((2, 50, 3, 70), [1, 3]), ((50, 4000), [0])])
def test_threads_do_not_change_a_bit(shape: tuple[int, ...], dims: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_LEAST_FOR_THREADS", 1)
    monkeypatch.setattr(threads, "_PART", 300)
    region = """(%a: f32[], %b: f32[], %c: f32[], %d: f32[]) {
    %s = add(%a, %c) : f32[]
    %t = add(%b, %d) : f32[]
    return %s, %t
  }"""
    program = reduced(shape, dims, region, ("f32", "f32"))
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs]
    made = compiled(program)
    results: list[list[bytes]] = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "threads_per_rank", lambda number=number: number)
        results.append([x.tobytes() for x in executed(made, arrays)])
    assert results[0] == results[1] == results[2]
    size = np.abs(np.asarray(arrays[0], np.float64)).sum(axis=tuple(dims))
    for got, meant in zip(executed(made, arrays), executed(program, arrays), strict=True):
        assert compare(got, meant, size + 1, terms=5000)


def test_parts_keep_the_order_of_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PART", 64)
    for shape, dims in (((5000,), [0]), ((3, 40, 5, 70), [1, 3]), ((300, 5), [0])):
        program = reduced(shape, dims)
        check(program, numbers(program))


def test_equal_folds_of_other_sizes_are_one_kernel() -> None:
    def source(shape: tuple[int, ...], dims: list[int]) -> str:
        program = reduced(shape, dims)
        return fold_source(found_fold(program), program.body.nodes[0].regions[0])

    assert source((40, 300), [1]) == source((50, 70), [1]) == source((2, 5, 70), [2])


def test_without_a_kernel_the_region_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> Any:
        raise RuntimeError("this machine has no compiler")

    warned: list[Any] = []
    monkeypatch.setattr(run._logger, "log", lambda *a, **k: warned.append(a))
    monkeypatch.setattr(run, "_FAILURES", count())
    monkeypatch.setattr(fold, "load", fails)
    program = reduced((40, 30), [1])
    check(program, numbers(program))
    assert len(warned) == 1


# -- updates by a region ---------------------------------------------------------------------------------------------

_PUT = "input_batching_dims=[] scatter_indices_batching_dims=[] scatter_dims_to_operand_dims=[0]"
ROWS = f"update_window_dims=[1] inserted_window_dims=[0] {_PUT} index_vector_dim=1"
PLACES = f"update_window_dims=[] inserted_window_dims=[0] {_PUT} index_vector_dim=1"


@pytest.mark.parametrize(("row", "numbers_"), [((), PLACES), ((7,), ROWS)])
def test_updates_come_in_their_order(row: tuple[int, ...], numbers_: str) -> None:
    x, u = (",".join(map(str, (n, *row))) for n in (20, 300))
    text = f"""func @f(%x: u32[{x}], %y: u32[{x}], %i: i32[300], %u: u32[{u}], %v: u32[{u}])
  -> (u32[{x}], u32[{x}]) stage=optimized {{
  %p, %q = scatter(%x, %y, %i, %u, %v) {numbers_} monoid=custom {COMPOSED} : (u32[{x}], u32[{x}])
  return %p, %q
}}"""
    program = parse_program(text, OPS)
    arrays = numbers(program)
    arrays[2] = np.random.default_rng(5).integers(-3, 23, 300).astype(np.int32)
    check(program, arrays)


# -- sorts by an arbitrary comparator --------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "dimension"), [((1000,), 0), ((3, 77, 2), 1), ((5, 1), 1), ((0, 4), 1)])
def test_sorts_are_stable(shape: tuple[int, ...], dimension: int) -> None:
    """By the distance from 3, which is no comparison of one expression of either side: both are in it."""
    s = ",".join(map(str, shape))
    text = f"""func @f(%x: i32[{s}], %y: u8[{s}]) -> (i32[{s}], u8[{s}]) stage=optimized {{
  %p, %q = sort(%x, %y) dimension={dimension} (%a: i32[], %b: i32[], %c: u8[], %d: u8[]) {{
    %six = constant() value=dense<6 : i32[]> : i32[]
    %zero = constant() value=dense<0 : i32[]> : i32[]
    %s = add(%a, %b) : i32[]
    %t = subtract(%s, %six) : i32[]
    %d_ = subtract(%a, %b) : i32[]
    %m = multiply(%t, %d_) : i32[]
    %lt = compare(%m, %zero) direction=LT : bool[]
    return %lt
  }} : (i32[{s}], u8[{s}])
  return %p, %q
}}"""
    program = parse_program(text, OPS)
    rng = np.random.default_rng(6)
    x, y = rng.integers(-9, 9, shape, np.int32), rng.integers(0, 255, shape, np.uint8)
    check(program, [x, y])
    order = np.argsort(np.abs(x - 3), axis=dimension, kind="stable")
    assert np.array_equal(executed(compiled(program), [x, y])[1], np.take_along_axis(y, order, dimension))


def test_sorts_by_keys_need_no_kernel() -> None:
    text = """func @f(%x: f32[64]) -> (f32[64]) stage=optimized {
  %p = sort(%x) dimension=0 (%a: f32[], %b: f32[]) {
    %gt = compare(%a, %b) direction=GT : bool[]
    return %gt
  } : f32[64]
  return %p
}"""
    made = schedule(parse_program(text, OPS), 0)
    assert not any(isinstance(n.attrs, FusedAttrs) for n in made.body.nodes)


# -- a region at every place -----------------------------------------------------------------------------------------

MAPPED = """func @f(%x: f32[64, 9], %n: i32[64, 9]) -> (f32[64, 9], i32[64, 9], f32[64, 9]) stage=local {
  %p, %q, %r = map(%x, %n) (%a: f32[], %i: i32[]) {
    %half = constant() value=dense<0.5 : f32[]> : f32[]
    %two = add(%half, %half) : f32[]
    %f = convert(%i) dtype=f32 : f32[]
    %lt = compare(%a, %f) direction=LT : bool[]
    %s = select(%lt, %half, %a) : f32[]
    %t = multiply(%s, %two) : f32[]
    return %t, %i, %two
  } : (f32[64, 9], i32[64, 9], f32[64, 9])
  return %p, %q, %r
}"""


def test_regions_lose_their_shardings_where_shapes_stay(tmp_path: Path) -> None:
    program = windowed((20, 30), "size=[3, 3]")
    path = tmp_path / "windows.gspmd"
    path.write_text(print_program(program).replace("stage=optimized", "stage=annotated"))
    arrays = numbers(program)
    for got, meant in zip(gspmd.compile(gspmd.load(path), devices=1)(*arrays), executed(program, arrays), strict=True):
        assert compare(np.asarray(got), meant, exact=True)


def nodes_with_regions(program: Program) -> list[Node]:
    return [n for n in program.body.nodes if n.regions]


def test_a_map_becomes_its_region_on_arrays() -> None:
    program = parse_program(MAPPED, OPS)
    made = optimize(program)
    verify(made, OPS)
    assert nodes_with_regions(program) and not nodes_with_regions(made)
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal((64, 9)).astype(np.float32), rng.integers(-2, 2, (64, 9), np.int32)]
    for got, meant in zip(executed(made, arrays), executed(program, arrays), strict=True):
        assert compare(got, meant, exact=True)


def test_a_map_whose_region_has_dimensions_of_its_own_stays() -> None:
    text = """func @f(%x: f32[6]) -> (f32[6]) stage=local {
  %y = map(%x) (%a: f32[]) {
    %l = reshape(%a) shape=[1] : f32[1]
    %s = reduce(%l) dims=[0] : f32[]
    return %s
  } : f32[6]
  return %y
}"""
    made = optimize(parse_program(text, OPS))
    assert len(nodes_with_regions(made)) == 1
