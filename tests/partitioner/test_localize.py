"""Whole programs from the user's annotations to local ones: every stage verifies, and the last computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from gspmd.ir.errors import PartitionError
from gspmd.ir.graph import Program
from gspmd.ir.parser import parse_program
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.optimizer.expand import expand
from gspmd.partitioner.collectives import lower_reshards
from gspmd.partitioner.explicit import make_explicit
from gspmd.partitioner.localize import localize
from gspmd.propagation import propagate
from tests.partitioner import cases

MLP = """
mesh @mesh = [data=2, model=3]
func @mlp(%x: f32[10@data, 7], %w: f32[7, 8@model], %v: f32[8@model, 5]) -> (f32[10, 5], f32[]) stage=annotated {
  %h = dot_general(%x, %w) lhs_contract=[1] rhs_contract=[0] : f32[10, 8]
  %t = tanh(%h) : f32[10, 8]
  %y = dot_general(%t, %v) lhs_contract=[1] rhs_contract=[0] : f32[10, 5]
  %s = reduce(%y) dims=[0, 1] : f32[]
  return %y, %s
}
"""
# Every op whose padding could leak, on dims of 5 and 7 over 2 and 3 devices.
RAGGED = """
mesh @mesh = [x=3, y=2]
func @ragged(%a: f32[7@x, 5@y], %b: f32[7@x, 4]) -> (f32[5, 4], f32[7], f32[5]) stage=annotated {
  %e = exponential(%a) : f32[7, 5]
  %c = dot_general(%e, %b) lhs_contract=[0] rhs_contract=[0] : f32[5, 4]
  %m = reduce(%e) dims=[1] monoid=max : f32[7]
  %p = reduce(%e) dims=[0] monoid=mul : f32[5]
  return %c, %m, %p
}
"""
# The difference of neighbours, a reversal, and the two put together.
SHIFT = """
mesh @mesh = [x=4]
func @shift(%a: f32[13@x, 3]) -> (f32[12, 3], f32[26, 3], f32[16, 3]) stage=annotated {
  %l = slice(%a) start=[0, 0] limit=[12, 3] stride=[1, 1] : f32[12, 3]
  %r = slice(%a) start=[1, 0] limit=[13, 3] stride=[1, 1] : f32[12, 3]
  %d = subtract(%r, %l) : f32[12, 3]
  %t = reverse(%a) dims=[0] : f32[13, 3]
  %u = concatenate(%a, %t) dimension=0 : f32[26, 3]
  %z = constant() value=dense<0.0 : f32[]> : f32[]
  %p = pad(%a, %z) low=[2, 0] high=[1, 0] interior=[0, 0] : f32[16, 3]
  return %d, %u, %p
}
"""
LOOP = """
mesh @mesh = [x=4]
func @loop(%i: i32[], %a: f32[6@x, 6]) -> (f32[6, 6]) stage=annotated {
  %n, %m = while(%i, %a) trip_count=3 (%c: i32[], %d: f32[6, 6]) {
    %k = constant() value=dense<3 : i32[]> : i32[]
    %go = compare(%c, %k) direction=LT : bool[]
    return %go
  } (%e: i32[], %f: f32[6, 6]) {
    %o = constant() value=dense<1 : i32[]> : i32[]
    %g = add(%e, %o) : i32[]
    %s = dot_general(%f, %f) lhs_contract=[1] rhs_contract=[0] : f32[6, 6]
    %q = transpose(%s) permutation=[1, 0] : f32[6, 6]
    return %g, %q
  } : (i32[], f32[6, 6])
  return %m
}
"""
RESHAPE = """
mesh @mesh = [x=4, y=2]
func @heads(%a: f32[6@x, 8@y]) -> (f32[48], f32[6, 2, 4], f32[6, 8]) stage=annotated {
  %f = reshape(%a) shape=[48] : f32[48]
  %h = reshape(%a) shape=[6, 2, 4] : f32[6, 2, 4]
  %i = iota() shape=[6, 8] dtype=f32 dimension=0 : f32[6, 8]
  %s = add(%a, %i) : f32[6, 8]
  return %f, %h, %s
}
"""
PROGRAMS = {"mlp": MLP, "ragged": RAGGED, "shift": SHIFT, "loop": LOOP, "reshape": RESHAPE}


def arguments(program: Program) -> list[np.ndarray]:
    """Values without zeros or symmetry; counters are 0."""
    rng = np.random.default_rng(7)
    return [
        rng.standard_normal(t.shape).astype(t.dtype) if t.dtype.kind == "f" else np.zeros(t.shape, t.dtype)
        for t in program.inputs
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_stages_compute_the_same(name: str) -> None:
    """propagated, explicit, collectives, local and expanded: legal each, and equal to the program as written."""
    program = parse_program(PROGRAMS[name], OPS)
    arrays = arguments(program)
    expected = cases.reference(program, arrays)
    propagated, _ = propagate(program)
    explicit = make_explicit(propagated)
    collectives = lower_reshards(explicit)
    local = localize(collectives)
    expanded = expand(local)
    for stage in (propagated, explicit, collectives, local, expanded):
        verify(stage, OPS)
    for stage in (local, expanded):
        for actual, wanted in zip(cases.run_local(stage, arrays), expected, strict=True):
            outcome = compare(actual, wanted, terms=64)
            assert outcome, f"{name}: {outcome.message}"


def test_reshards_must_be_lowered_first() -> None:
    """localize takes collectives, not reshards: the message says so."""
    program = parse_program(MLP, OPS)
    explicit = make_explicit(propagate(program)[0])
    with pytest.raises(PartitionError, match="collectives before"):
        localize(explicit)
