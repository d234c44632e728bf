"""Each numbered constraint of the type rules refuses what breaks it, by name."""

from __future__ import annotations

import pytest

from gspmd.ir.errors import GspmdError
from tests.ops.cases import parse

BROKEN = {
    "add.C0": "add(f32[4])",
    "exponential.C1": "exponential(i32[4])",
    "add.C2": "add(f32[4], f32[5])",
    "and.C1": "and(f32[4], f32[4])",
    "complex.C3": "complex(bf16[4], bf16[4])",
    "compare.C1": "compare(f32[4], f64[4]) direction=LT",
    "compare.C2": "compare(f32[4], f32[4]) direction=UP",
    "compare.C3": "compare(c64[4], c64[4]) direction=LT",
    "compare.C4": "compare(f32[4], f32[4]) direction=LT compare_type=SIGNED",
    "compare.C5": "compare(i32[4], i32[4]) direction=LT compare_type=TOTALORDER",
    "select.C1": "select(i32[4], f32[4], f32[4])",
    "select.C2": "select(bool[4], f32[4], f32[5])",
    "select.C3": "select(bool[1], f32[4], f32[4])",
    "clamp.C1": "clamp(bool[], bool[4], bool[])",
    "clamp.C2": "clamp(f32[1], f32[4], f32[])",
    "clamp.C3": "clamp(f32[], f32[4], f64[])",
    "reduce_precision.C1": "reduce_precision(i32[4]) exponent_bits=5 mantissa_bits=10",
    "reduce_precision.C2": "reduce_precision(f32[4]) exponent_bits=0 mantissa_bits=10",
    "reduce_precision.C3": "reduce_precision(f32[4]) exponent_bits=5 mantissa_bits=-1",
    "iota.C1": "iota() shape=[4] dtype=i32 dimension=1",
    "iota.C2": "iota() shape=[4] dtype=bool dimension=0",
    "broadcast_in_dim.C1": "broadcast_in_dim(f32[4]) shape=[4, 6]",
    "broadcast_in_dim.C2": "broadcast_in_dim(f32[4]) shape=[4, 6] dims=[2]",
    "broadcast_in_dim.C3": "broadcast_in_dim(f32[4]) shape=[4, 6] dims=[1]",
    "reshape.C1": "reshape(f32[4]) shape=[5]",
    "transpose.C1": "transpose(f32[4, 6]) permutation=[0, 0]",
    "dot_general.C1": "dot_general(f32[4, 6], f32[4, 6]) lhs_batch=[0]",
    "dot_general.C2": "dot_general(f32[4, 6], f32[6, 8]) lhs_contract=[1]",
    "dot_general.C3": "dot_general(f32[4, 6], f32[6, 8]) lhs_contract=[2] rhs_contract=[0]",
    "dot_general.C4": "dot_general(f32[4, 6], f32[6, 8]) lhs_contract=[1] rhs_contract=[2]",
    "dot_general.C5": "dot_general(f32[4, 6], f32[5, 6]) lhs_batch=[0] rhs_batch=[0]",
    "dot_general.C6": "dot_general(f32[4, 6], f32[8, 5]) lhs_contract=[1] rhs_contract=[0]",
    "dot_general.C7": "dot_general(f32[4, 6], f64[6, 8]) lhs_contract=[1] rhs_contract=[0]",
    "reduce.C1": "reduce(f32[4], f32[]) dims=[0] monoid=custom",
    "reduce.C2": "reduce(f32[4]) dims=[0] monoid=mean",
    "reduce.C3": "reduce(f32[4]) dims=[0] monoid=xor",
    "reduce.C4": "reduce(f32[4], f32[], f32[]) dims=[0] monoid=custom (%a: f32[], %b: f32[]) { return %a }",
    "reduce.C5": "reduce(f32[4]) dims=[1]",
    "reduce.C7": "reduce(f32[4], f64[]) dims=[0] monoid=custom (%a: f32[], %b: f32[]) { return %a }",
    "reduce.C8": "reduce(f32[4], f32[]) dims=[0] monoid=custom (%a: f32[]) { return %a }",
    "reduce.C9": "reduce(f32[4], f32[]) dims=[0] monoid=custom (%a: f32[], %b: f32[]) { return %a, %b }",
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_constraint(constraint: str) -> None:
    with pytest.raises(GspmdError) as raised:
        parse(BROKEN[constraint])
    assert constraint in str(raised.value)
