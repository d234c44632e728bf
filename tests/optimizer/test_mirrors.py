"""Mirrorings along different axes become one, whatever the order of the axes; nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from gspmd.driver.pipeline import run_stages
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.parser import parse_program
from gspmd.ir.types import TensorType
from gspmd.ops import OPS
from gspmd.ops.affine_permute import AFFINE_PERMUTE
from gspmd.optimizer.clean import clean
from gspmd.optimizer.mirrors import join_mirrors
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import lockstep

MESH = Mesh({"x": 2, "y": 3, "z": 4})


def permuted(*steps: tuple[str, int, int], keep: bool = False) -> Program:
    """Permutes one after the other, each along an axis, from device mul*i + add; `keep`: what lies between is used."""
    builder = Builder()
    made = [builder.param(TensorType("f32", (5,)))]
    for axis, mul, add in steps:
        made.append(AFFINE_PERMUTE(builder, made[-1], axes=(MESH.axis(axis),), mul=mul, add=add))
    return Program.of("main", builder.region(made[1:] if keep else made[-1:]), MESH, "local")


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ((("x", -1, 1), ("y", -1, 2)), 1),
        ((("z", -1, 3), ("x", -1, 1), ("y", -1, 2)), 1),
        ((("y", -1, 2), ("y", -1, 2)), 2),
        ((("y", -1, 1), ("x", -1, 1)), 2),
        ((("y", 1, 1), ("x", -1, 1)), 2),
    ],
)
def test_mirrors_along_different_axes_are_one(steps: tuple[tuple[str, int, int], ...], left: int) -> None:
    program = permuted(*steps)
    joined = clean(join_mirrors(program))
    assert len(joined.body.nodes) == left
    shards = [np.full(5, i, np.float32) for i in range(MESH.size)]
    before, after = (Executor(p, lockstep(MESH)).run_shards([shards])[0] for p in (program, joined))
    assert np.array_equal(before, after)


def test_what_is_used_between_stays() -> None:
    program = permuted(("x", -1, 1), ("y", -1, 2), keep=True)
    assert len(clean(join_mirrors(program)).body.nodes) == 2


def test_several_reversed_dimensions_are_one_permute() -> None:
    text = """mesh @mesh = [x=2, y=3, z=4]
func @f(%a: f32[8@x, 9@y, 4@z]) -> (f32[8, 9, 4]) stage=annotated {
  %r = reverse(%a) dims=[0, 1, 2] : f32[8, 9, 4]
  return %r }"""
    program = run_stages(parse_program(text, OPS), "optimized").last
    assert sum(node.op is AFFINE_PERMUTE for node in program.body.nodes) == 1
