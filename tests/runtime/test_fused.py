"""Fused kernels compute what their regions mean: for every structure, any number of threads, at the edges of floats."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gspmd.ir.graph import Node, Program, Region
from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.ops.fused import FusedAttrs
from gspmd.optimizer.optimize import schedule
from gspmd.runtime.executor import Executor
from gspmd.runtime.fusion import run, threads
from gspmd.runtime.fusion.cache import load
from gspmd.runtime.fusion.codegen import source_of
from gspmd.runtime.fusion.plan import Plan, plan_of
from tests.ops.evaluate import evaluate
from tests.runtime.fused_cases import CASES, random_program


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kernels of these tests are compiled by these tests."""
    folder = tmp_path_factory.mktemp("kernels")
    before = os.environ.get("GSPMD_CACHE")
    os.environ["GSPMD_CACHE"] = str(folder)
    yield folder
    os.environ.pop("GSPMD_CACHE") if before is None else os.environ.update(GSPMD_CACHE=before)


def inputs_of(program: Program, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for t in program.inputs:
        if t.dtype.kind == "f":
            made.append((np.abs(rng.standard_normal(t.shape)) + 0.1).astype(t.dtype))
        else:
            made.append(rng.integers(0, 2 if t.dtype.kind == "b" else 9, t.shape).astype(t.dtype))
    return made


def executed(program: Program, arrays: Sequence[Any]) -> list[Any]:
    """What the walker makes of a local program on one device."""
    return [shards[0] for shards in Executor(program).run_shards([[x] for x in arrays])]


def fused(region: Region) -> list[Node]:
    return [n for n in region.walk() if isinstance(n.attrs, FusedAttrs)]


def scheduled(program: Program) -> Program:
    made = schedule(program, least_work=0)
    verify(made, OPS)
    return made


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_computes_what_its_region_means(name: str) -> None:
    program = parse_program(CASES[name], OPS)
    made = scheduled(program)
    assert len(fused(made.body)) == len(made.body.nodes) == 1, print_program(made)
    arrays = inputs_of(program)
    expected = executed(program, arrays)
    for got, meant in zip(executed(made, arrays), expected, strict=True):
        verdict = compare(got, meant, np.abs(meant) + 1 if meant.dtype.kind == "f" else None, terms=400)
        assert verdict.ok, f"{verdict.message}\n{print_program(made)}"


@pytest.mark.parametrize("name", CASES)
def test_a_scheduled_program_is_text_and_its_region_is_its_meaning(name: str) -> None:
    program = parse_program(CASES[name], OPS)
    made = scheduled(program)
    assert print_program(parse_program(print_program(made), OPS)) == print_program(made)
    arrays = inputs_of(program)
    for got, meant in zip(evaluate(made, *arrays), evaluate(program, *arrays), strict=True):
        assert compare(got, meant, exact=True)


@pytest.mark.parametrize("seed", range(60))
def test_groups_keep_the_meaning_of_random_programs(seed: int) -> None:
    program = random_program(seed)
    made = scheduled(program)
    for node in fused(made.body):
        assert isinstance(node.attrs, FusedAttrs)
        plan_of(node.regions[0], node.attrs)
    arrays = inputs_of(program, seed)
    for got, meant in zip(evaluate(made, *arrays), evaluate(program, *arrays), strict=True):
        assert compare(got, meant, exact=True), print_program(made)


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_kernels_of_random_programs(seed: int) -> None:
    program = random_program(seed)
    made = scheduled(program)
    assert fused(made.body)
    arrays = inputs_of(program, seed)
    for got, meant in zip(executed(made, arrays), evaluate(program, *arrays), strict=True):
        assert compare(got, meant, np.abs(meant) + 4, terms=1000), print_program(made)


def test_a_path_that_leaves_a_group_does_not_come_back() -> None:
    program = parse_program(
        """func @f(%x: f32[16, 16]) -> (f32[16, 16]) stage=optimized {
  %a = negate(%x) : f32[16, 16]
  %d = dot_general(%a, %x) lhs_contract=[1] rhs_contract=[0] : f32[16, 16]
  %b = add(%a, %d) : f32[16, 16]
  %c = multiply(%b, %a) : f32[16, 16]
  return %c }""",
        OPS,
    )
    made = scheduled(program)
    assert [len(n.regions[0].nodes) for n in fused(made.body)] == [1, 2]


def test_small_groups_are_left_alone_and_loops_are_entered() -> None:
    text = CASES["adam"]
    assert not fused(schedule(parse_program(text, OPS)).body)
    loop = parse_program(
        """func @f(%i: i32[], %x: f32[16, 16]) -> (i32[], f32[16, 16]) stage=optimized {
  %a, %b = while(%i, %x) trip_count=2 (%j: i32[], %y: f32[16, 16]) {
    %n = constant() value=dense<2 : i32[]> : i32[]
    %go = compare(%j, %n) direction=LT : bool[]
    return %go
  } (%k: i32[], %z: f32[16, 16]) {
    %one = constant() value=dense<1 : i32[]> : i32[]
    %next = add(%k, %one) : i32[]
    %u = negate(%z) : f32[16, 16]
    %v = tanh(%u) : f32[16, 16]
    return %next, %v
  } : (i32[], f32[16, 16])
  return %a, %b }""",
        OPS,
    )
    made = scheduled(loop)
    assert len(fused(made.body)) == 1
    arrays = [np.array(0, np.int32), inputs_of(loop)[1]]
    for got, meant in zip(executed(made, arrays), executed(loop, arrays), strict=True):
        assert compare(got, meant)


@pytest.mark.parametrize("name", ["cross entropy", "functions in one loop", "masked softmax"])
def test_threads_do_not_change_a_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_LEAST_FOR_THREADS", 1)
    monkeypatch.setattr(threads, "_PART", 16)
    program = parse_program(CASES[name], OPS)
    made = scheduled(program)
    arrays = inputs_of(program)
    found: list[list[bytes]] = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "threads_per_rank", lambda number=number: number)
        results = executed(made, arrays)
        found.append([r.tobytes() for r in results])
    assert found[0] == found[1] == found[2]


EDGES = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, -104.0, 88.5, 1.0], np.float32)


@pytest.mark.parametrize("monoid", ["max", "min", "add", "mul"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_reductions_at_the_edges_of_floats(monoid: str, dtype: str) -> None:
    rows = np.array([[a, b, *([b] * 14)] for a in EDGES for b in EDGES], dtype=dtype.replace("f", "float"))
    program = parse_program(
        f"""func @f(%x: {dtype}[144, 16]) -> ({dtype}[144], {dtype}[16]) stage=optimized {{
  %r = reduce(%x) dims=[1] monoid={monoid} : {dtype}[144]
  %c = reduce(%x) dims=[0] monoid={monoid} : {dtype}[16]
  return %r, %c }}""",
        OPS,
    )
    for got, meant in zip(executed(scheduled(program), [rows]), evaluate(program, rows), strict=True):
        assert compare(got, meant, terms=144)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "-0.0", "1.5"])
def test_constants_are_spelled_in_the_source(value: str) -> None:
    program = parse_program(
        f"""func @f(%x: f32[512, 512]) -> (f32[512, 512]) stage=optimized {{
  %c = constant() value=dense<{value} : f32[]> : f32[]
  %b = broadcast_in_dim(%c) shape=[512, 512] dims=[] : f32[512, 512]
  %p = compare(%x, %b) direction=GT : bool[512, 512]
  %s = select(%p, %b, %x) : f32[512, 512]
  %y = add(%s, %s) : f32[512, 512]
  return %y }}""",
        OPS,
    )
    x = np.linspace(-3, 3, 512 * 512, dtype=np.float32).reshape(512, 512)
    (got,), (meant,) = executed(scheduled(program), [x]), evaluate(program, x)
    assert compare(got, meant, exact=True)


@pytest.mark.parametrize("bits", ["0xffffffff", "0x7fc00000", "0x7f800123"])
def test_a_constant_keeps_the_bits_of_its_nan(bits: str) -> None:
    """Padding below every float is the NaN with all bits set; another NaN stands above."""
    program = parse_program(
        f"""func @f(%x: f32[512, 512]) -> (f32[512, 512]) stage=optimized {{
  %c = constant() value=dense<"{bits}" : f32[]> : f32[]
  %b = broadcast_in_dim(%c) shape=[512, 512] dims=[] : f32[512, 512]
  %d = add(%x, %x) : f32[512, 512]
  %p = compare(%d, %x) direction=LT : bool[512, 512]
  %s = select(%p, %d, %b) : f32[512, 512]
  return %s }}""",
        OPS,
    )
    x = np.linspace(-3, 3, 512 * 512, dtype=np.float32).reshape(512, 512)
    small = scheduled(program)
    assert fused(small.body)
    (got,), (meant,) = executed(small, [x]), evaluate(program, x)
    assert np.array_equal(got.view(np.uint32), meant.view(np.uint32))


@pytest.mark.parametrize("op", ["exponential", "tanh", "log", "logistic", "erf", "sqrt", "rsqrt"])
def test_functions_are_those_of_the_kernels(op: str) -> None:
    grid = np.concatenate(
        [EDGES, np.linspace(-110, 110, 5000), np.geomspace(1e-38, 1e38, 5000), np.linspace(-2, 2, 999)]
    )
    values = grid.astype(np.float32)
    text = f"""func @f(%x: f32[{values.size}]) -> (f32[{values.size}]) stage=optimized {{
  %y = {op}(%x) : f32[{values.size}]
  return %y }}"""
    program = parse_program(text, OPS)
    (got,), (meant,) = executed(scheduled(program), [values]), evaluate(program, values)
    verdict = compare(got, meant, np.abs(meant))
    assert verdict.ok, verdict.message


def test_another_process_loads_what_was_compiled(cache: Path) -> None:
    text = CASES["one loop"]
    arrays = inputs_of(parse_program(text, OPS))
    (expected, _) = executed(scheduled(parse_program(text, OPS)), arrays)
    before = {p: p.stat().st_mtime_ns for p in cache.rglob("*.nb*")}
    assert before and not list(cache.rglob("*.tmp"))
    code = f"""
import sys, numpy as np
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from gspmd.optimizer.optimize import schedule
from gspmd.runtime.executor import Executor
program = schedule(parse_program({text!r}, OPS), least_work=0)
x, k = np.frombuffer(bytes.fromhex({arrays[0].tobytes().hex()!r}), np.float32), np.float32({float(arrays[1].item())!r})
print(Executor(program).run_shards([[x.reshape(1, 300)], [k.reshape(1, 1)]])[0][0].tobytes().hex())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert bytes.fromhex(done.stdout.strip()) == expected.tobytes()
    assert {p: p.stat().st_mtime_ns for p in cache.rglob("*.nb*")} == before


def test_a_damaged_cache_is_compiled_anew(cache: Path) -> None:
    text = source_of(plan_of_case("adam"))
    load(text)
    for kept in cache.rglob("*.nb*"):
        kept.write_bytes(b"damaged")
    load.cache_clear()
    assert load(text) is not None


def plan_of_case(name: str) -> Plan:
    (node,) = fused(scheduled(parse_program(CASES[name], OPS)).body)
    assert isinstance(node.attrs, FusedAttrs)
    return plan_of(node.regions[0], node.attrs)


def test_equal_structures_of_other_shapes_are_one_kernel() -> None:
    text = CASES["adam"]
    (node,) = fused(scheduled(parse_program(text.replace("5, 40", "3, 80"), OPS)).body)
    assert isinstance(node.attrs, FusedAttrs)
    assert source_of(plan_of(node.regions[0], node.attrs)) == source_of(plan_of_case("adam"))


@pytest.mark.parametrize("broken", ["plan_of", "source_of", "load"])
def test_without_a_kernel_a_region_runs_op_by_op(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*arguments: Any) -> Any:
        raise RuntimeError("this machine has no compiler")

    monkeypatch.setattr(run, broken, fails)
    monkeypatch.setattr(run, "_FAILURES", count())
    caplog.set_level("DEBUG", run.__name__)
    for name in ("adam", "masked softmax"):
        program = parse_program(CASES[name], OPS)
        arrays = inputs_of(program)
        for got, meant in zip(executed(scheduled(program), arrays), executed(program, arrays), strict=True):
            assert compare(got, meant, exact=True)
    assert [(r.levelname, "this machine has no compiler" in (r.exc_text or "")) for r in caplog.records] == [
        ("WARNING", True),
        ("DEBUG", True),
    ]


def test_source_that_does_not_compile_is_no_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run, "_FAILURES", count())
    monkeypatch.setattr(run, "source_of", lambda plan: source_of(plan) + "    no_such_function(t)\n")
    program = parse_program(CASES["adam"], OPS)
    made = scheduled(program)
    arrays = inputs_of(program)
    executor = Executor(made)
    for _ in range(2):  # the second run does not try again
        results = [shards[0] for shards in executor.run_shards([[x] for x in arrays])]
        for got, meant in zip(results, executed(program, arrays), strict=True):
            assert compare(got, meant, exact=True)
    assert len(caplog.records) == 1
