"""Axes that an annotation keeps free (`^(model)`), and ops that split over them all the same."""

from __future__ import annotations

import numpy as np

import gspmd
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS

_TEXT = """
mesh @mesh = [data=2, model=2]
func @f(%x: f32[8, 16]^(model), %w: f32[16@model, 4], %v: f32[4, 6]^(data,model)) -> (f32[8, 6]) stage=annotated {
  %h = dot_general(%x, %w) lhs_contract=[1] rhs_contract=[0] : f32[8, 4]
  %k = sharding_constraint(%h) sharding=[model, data] : f32[8@model, 4@data]
  %y = dot_general(%k, %v) lhs_contract=[1] rhs_contract=[0] : f32[8, 6]
  return %y
}
"""


def test_an_op_may_split_over_an_axis_that_its_operand_keeps_free() -> None:
    """It only means that propagation does not: no sharding has an axis both kept free and used."""
    c = gspmd.compile(gspmd.Module(parse_program(_TEXT, OPS)))
    rng = np.random.default_rng(0)
    c.check(*(rng.standard_normal(t.shape).astype(np.float32) for t in c.input_types))
