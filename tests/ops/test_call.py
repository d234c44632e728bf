"""call: a function that is called runs like its body written in place, shardings pass into and out of it."""

from __future__ import annotations

import numpy as np
import pytest

import gspmd
from gspmd.driver.module import Module
from gspmd.ir.errors import GspmdError
from gspmd.ir.parser import parse_program
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from tests.ops.cases import parse

PROGRAM = """mesh @mesh = [data=2, model=2]
func @main(%x: f32[6@data, 4], %w: f32[4, 8@model]) -> (f32[6, 8]) stage=annotated {
  %y, %z = call(%x, %w) name="layer" (%a: f32[6, 4], %b: f32[4, 8]) {
    %p = dot_general(%a, %b) lhs_contract=[1] rhs_contract=[0] : f32[6, 8]
    %t = tanh(%p) : f32[6, 8]
    return %t, %a
  } : (f32[6, 8], f32[6, 4])
  return %y
}
"""


def test_shardings_pass_through_a_call() -> None:
    compiled = gspmd.compile(Module(parse_program(PROGRAM, OPS)))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((6, 4)).astype("f4"), rng.standard_normal((4, 8)).astype("f4")
    found = np.asarray(compiled.simulate(x, w))
    assert compare(found, np.tanh(x @ w), terms=4).ok
    assert list(compiled.collectives()) == []
    assert "8@model" in compiled.stage("propagated").text().split("tanh")[1].splitlines()[0]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("call.C1", "call(f64[4])"),
        ("call.C2", "call(f64[4]) (%a: f32[4]) { return %a }"),
    ],
)
def test_constraint(rule: str, text: str) -> None:
    with pytest.raises(GspmdError, match=rule):
        parse(text)
