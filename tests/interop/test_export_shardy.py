"""Programs with Shardy's attributes: what XLA's strings cannot say comes back as it was."""

from __future__ import annotations

import pytest

import gspmd
from gspmd.interop.export_stablehlo import export_stablehlo
from gspmd.interop.import_stablehlo import import_stablehlo
from gspmd.ir.errors import UsageError
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from gspmd.propagation import propagate

TEXT = """
mesh @mesh = [x=2, y=4]
func @f(%a: f32[8@x?, 16], %b: f32[16, 32@y:(1)2]) -> (f32[8, 32@y]) stage=annotated {
  %0 = dot_general(%a, %b) lhs_contract=[1] rhs_contract=[0] : f32[8, 32]
  %1 = sharding_constraint(%0) sharding=[x?#1, _?]^(y:(2)2) : f32[8@x?#1, 32@?]^(y:(2)2)
  %2 = propagation_barrier(%1) allowed=forward : f32[8, 32]
  %3 = sharding_group(%2) group="g" : f32[8, 32]
  %4 = sharding_constraint(%3) sharding=[_, y] : f32[8, 32@y]
  return %4
}
"""


def test_all_that_an_annotation_says_comes_back() -> None:
    program = parse_program(TEXT, OPS)
    back = import_stablehlo(export_stablehlo(program, "sdy"))
    assert [t.sharding for t in back.inputs] == [t.sharding for t in program.inputs]
    ours, theirs = ([(n.op.name, n.attrs) for n in p.body.nodes if "group" not in n.op.name] for p in (program, back))
    assert theirs == ours
    assert [n.op.name for n in back.body.nodes] == [n.op.name for n in program.body.nodes]


def test_a_propagated_program_says_every_sharding() -> None:
    program = propagate(parse_program(TEXT, OPS))[0]
    text = export_stablehlo(program, "sdy")
    assert text.count("sdy.sharding_per_value") == 1  # the product; the rest are Shardy's own ops
    assert 'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, ' in text


def test_another_dialect_is_refused() -> None:
    module = gspmd.trace(lambda x: x, gspmd.TensorType("f32", (3,)))
    with pytest.raises(UsageError, match="no dialect of shardings"):
        module.to_stablehlo("spdy")  # type: ignore[arg-type]
