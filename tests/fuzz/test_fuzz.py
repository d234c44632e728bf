"""A small fixed budget of the fuzzer, and that it sees what it is there to see."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gspmd.driver.steps import OPTIONAL
from gspmd.ir.graph import Program
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from gspmd.optimizer import optimize
from tests.fuzz import replay
from tests.fuzz.__main__ import Campaign
from tests.fuzz.coverage import possible
from tests.fuzz.generate import Case, random_case
from tests.fuzz.inputs import arguments
from tests.fuzz.judge import judge
from tests.fuzz.noise import within_noise
from tests.fuzz.shrink import shrink
from tests.fuzz.sizes import smaller_sizes
from tests.partitioner import cases

_SECONDS, _LEAST = 9, 10


@pytest.mark.parametrize("seed", [1, 2])
def test_random_programs(seed: int) -> None:
    """As many cases as fit into a few seconds; at least some."""
    campaign, end, number = Campaign(seed), time.monotonic() + _SECONDS, 0
    while number < _LEAST or time.monotonic() < end:
        campaign.run(number)
        number += 1
    assert campaign.findings == []


def test_a_case_is_the_same_for_the_same_seed() -> None:
    texts = {replay.written(random_case(5, 3, OPTIONAL), "") for _ in range(2)}
    assert len(texts) == 1
    assert replay.written(random_case(5, 4, OPTIONAL), "") not in texts


def test_a_case_reads_back(tmp_path: Path) -> None:
    case = replace(random_case(5, 3, OPTIONAL), without=("merge", "fuse"), kernels=True)
    replay.write(case, tmp_path / "case.gspmd", "a note\nof two lines")
    again = replay.read(tmp_path / "case.gspmd")
    assert (again.seed, again.without, again.kernels) == (case.seed, case.without, case.kernels)
    assert replay.written(again, "") == replay.written(case, "")
    for a, b in zip(arguments(case.program, 1), arguments(again.program, 1), strict=True):
        assert a.tobytes() == b.tobytes()


PROGRAM = """
mesh @mesh = [x=2, y=2]
func @wrong(%x1: f64[8@x, 6], %x2: f64[8, 6@y]) -> (f64[8, 6], f64[6]) stage=annotated {
  %0 = add(%x1, %x2) : f64[8, 6]
  %1 = slice(%0) start=[1, 0] limit=[8, 6] stride=[1, 1] : f64[7, 6]
  %2 = tanh(%0) : f64[8, 6]
  %3 = reduce(%1) dims=[0] : f64[6]
  return %2, %3
}
"""


def _broken(program: Program) -> Program:
    """Merges too much: the first two parameters of alike types become one."""
    params = program.body.params
    first = next((p for p in params[1:] if p.type == params[0].type), None)
    if first is None:
        return program
    body = replace(program.body, results=tuple(params[0] if v is first else v for v in program.body.results))
    nodes = tuple(
        replace(n, operands=tuple(params[0] if v is first else v for v in n.operands)) for n in program.body.nodes
    )
    return replace(program, body=replace(body, nodes=nodes))


def test_a_broken_pass_is_seen_and_the_program_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(parse_program(PROGRAM.replace("8, 6@y", "8@x, 6"), OPS), 1)
    assert judge(case).kind == "ok"
    passes = (*optimize.PASSES[:2], ("rings", _broken), *optimize.PASSES[3:])
    monkeypatch.setattr(optimize, "PASSES", passes)
    outcome = judge(case)
    assert (outcome.kind, outcome.stage) == ("differs", "optimized/rings")
    small = shrink(case, outcome, judge, 20)
    assert judge(small).like(outcome)
    assert len(small.program.body.nodes) < len(case.program.body.nodes)
    assert max(n for p in small.program.body.params for n in p.type.shape) < 6


def test_sizes_shrink_wherever_they_stand() -> None:
    program = parse_program(PROGRAM.replace("8, 6@y", "8@x, 6"), OPS)
    found = list(smaller_sizes(program))
    halves = next(p for p in found if p.body.params[0].type.shape == (8, 3))
    assert [n.result.type.shape for n in halves.body.nodes] == [(8, 3), (7, 3), (8, 3), (3,)]
    assert {p.body.params[0].type.shape for p in found} >= {(8, 5), (7, 6)}
    assert all(judge(Case(p, 1)).kind == "ok" for p in found)


def test_noise_explains_rounding_and_nothing_else() -> None:
    case = Case(parse_program(PROGRAM, OPS), 1)
    arrays = arguments(case.program, 1)
    expected = cases.reference(case.program, arrays)
    rounded = [np.asarray(e * (1 + 2e-16)) for e in expected]
    wrong = [np.asarray(e * (1 + 1e-9)) for e in expected]
    assert within_noise(case.program, arrays, expected, rounded)
    assert not within_noise(case.program, arrays, expected, wrong)


def test_what_is_possible_is_read_off_the_rules() -> None:
    assert {"pass", "reduce", "uneven", "empty"} <= possible("dot_general")
    assert "scan" in possible("cumulative_reduce")
    assert "access" in possible("slice")
    assert "product" in possible("reshape")
    assert "select" in possible("top_k")
    assert "reduce" not in possible("tanh")
