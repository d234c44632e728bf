"""Reshards in which axes of different sizes change places: parts of the larger one trade with the smaller."""

from __future__ import annotations

import numpy as np
import pytest

from gspmd.driver.pipeline import run_stages
from gspmd.ir.mesh import Mesh
from gspmd.ir.parser import parse_program
from gspmd.ir.sharding import Sharding
from gspmd.ops import OPS
from gspmd.partitioner.planner import plan
from gspmd.partitioner.search import Problem
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import lockstep


@pytest.mark.parametrize("sizes", [(2, 4), (4, 2), (2, 6), (3, 2), (2, 2)])
@pytest.mark.parametrize("shape", [(24, 24), (13, 24), (23, 10)])
def test_a_swap_moves_every_element_to_its_place(sizes: tuple[int, int], shape: tuple[int, int]) -> None:
    (p, q), (m, n) = sizes, shape
    text = f"""
        mesh @mesh = [x={p}, y={q}]
        func @f(%a: f32[{m}@x, {n}@y]) -> (f32[{m}@y, {n}@x]) stage=annotated {{
          %r = sharding_constraint(%a) sharding=[y, x] : f32[{m}@y, {n}@x]
          return %r
        }}"""
    last = run_stages(parse_program(text, OPS), "optimized").last
    assert last.mesh is not None
    a = np.arange(m * n, dtype=np.float32).reshape(m, n)
    (found,) = Executor(last, lockstep(last.mesh)).run_whole([a], np.nan)
    assert found.tobytes() == a.tobytes()


def test_a_swap_of_two_by_four_costs_one_and_a_half_shards() -> None:
    mesh = Mesh({"x": 2, "y": 4})
    found = plan((64, 64), 4, Sharding.of(mesh, "x", "y"), Sharding.of(mesh, "y", "x"))
    assert found.wire_bytes == 1.5 * 64 * 64 * 4 / 8


def test_ranks_search_in_one_order() -> None:
    """The search must not meet axes in the order of a set, which the ranks' hash seeds decide."""
    mesh = Mesh(dict.fromkeys("sqpr", 2))
    problem = Problem.of((16, 16), 4, Sharding.of(mesh, ("s", "q"), None), Sharding.of(mesh, "p", ("r", "q")))
    assert [axis.name for axis in problem.known] == ["p", "q", "r", "s"]
