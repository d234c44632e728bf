"""Mistakes that partitioners are known to make, each as a small program that would show it."""

from __future__ import annotations

import pytest

from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from tests.fuzz.generate import Case
from tests.fuzz.judge import judge

MESH = "mesh @mesh = [x=2, y=3]\n"
FOUR = "mesh @mesh = [x=4]\n"

ARG_MAX = """
func @f(%x1: f64[5, 7@x], %x2: i64[5, 7@x], %e1: f64[], %e2: i64[]) -> (f64[5], i64[5]) stage=annotated {
  %0, %1 = reduce(%x1, %x2, %e1, %e2) dims=[1] monoid=custom (%a: f64[], %i: i64[], %b: f64[], %j: i64[]) {
    %gt = compare(%a, %b) direction=GT : bool[]
    %eq = compare(%a, %b) direction=EQ : bool[]
    %lt = compare(%i, %j) direction=LT : bool[]
    %tie = and(%eq, %lt) : bool[]
    %first = or(%gt, %tie) : bool[]
    %v = select(%first, %a, %b) : f64[]
    %k = select(%first, %i, %j) : i64[]
    return %v, %k
  } : (f64[5], i64[5])
  return %0, %1
}"""

SCATTER = (
    "update_window_dims=[1] inserted_window_dims=[0] input_batching_dims=[] scatter_indices_batching_dims=[] "
    "scatter_dims_to_operand_dims=[0] index_vector_dim=1 monoid=add"
)
LOOP_SCATTER = f"""
func @f(%x1: f64[12, 5@y], %i2: i32[7@x], %x3: f64[7@x, 5@y]) -> (f64[12, 5]) stage=annotated {{
  %0 = constant() value=dense<0 : i32[]> : i32[]
  %1, %2, %3, %4 = while(%0, %x1, %i2, %x3) trip_count=3
  (%n: i32[], %t: f64[12, 5], %i: i32[7], %u: f64[7, 5]) {{
    %c = constant() value=dense<3 : i32[]> : i32[]
    %go = compare(%n, %c) direction=LT : bool[]
    return %go
  }} (%m: i32[], %s: f64[12, 5], %j: i32[7], %v: f64[7, 5]) {{
    %one = constant() value=dense<1 : i32[]> : i32[]
    %next = add(%m, %one) : i32[]
    %z = scatter(%s, %j, %v) {SCATTER} : f64[12, 5]
    return %next, %z, %j, %v
  }} : (i32[], f64[12, 5], i32[7], f64[7, 5])
  return %2
}}"""

TRAPS = {
    "a_reduction_group_has_no_replica_axes": MESH
    + """
func @f(%x1: f64[6@x, 5]^(y)) -> (f64[5]) stage=annotated {
  %0 = reduce(%x1) dims=[0] : f64[5]
  return %0
}""",
    "a_maximum_is_not_of_partial_sums": MESH
    + """
func @f(%x1: f64[5, 6@x], %x2: f64[6@x, 4]) -> (f64[5], f64[]) stage=annotated {
  %0 = dot_general(%x1, %x2) lhs_contract=[1] rhs_contract=[0] : f64[5, 4]
  %1 = reduce(%0) dims=[1] monoid=max : f64[5]
  %2 = square(%0) : f64[5, 4]
  %3 = reduce(%2) dims=[0, 1] : f64[]
  return %1, %3
}""",
    "a_gather_gradient_is_summed_before_it_is_sliced": MESH
    + f"""
func @f(%x1: f64[12, 5], %i2: i32[7@x], %x3: f64[7@x, 5]) -> (f64[4, 5]) stage=annotated {{
  %0 = scatter(%x1, %i2, %x3) {SCATTER} : f64[12, 5]
  %1 = slice(%0) start=[3, 0] limit=[7, 5] stride=[1, 1] : f64[4, 5]
  return %1
}}""",
    "starts_are_clamped_in_the_whole": FOUR
    + """
func @f(%x1: f64[11@x, 3], %x2: f64[4, 3]) -> (f64[5, 3], f64[11, 3]) stage=annotated {
  %0 = constant() value=dense<9 : i32[]> : i32[]
  %1 = constant() value=dense<-1 : i32[]> : i32[]
  %2 = dynamic_slice(%x1, %0, %1) sizes=[5, 3] : f64[5, 3]
  %3 = dynamic_update_slice(%x1, %x2, %0, %1) : f64[11, 3]
  return %2, %3
}""",
    "indices_of_maxima_go_with_their_values": MESH + ARG_MAX,
    "contracted_dimensions_are_matched_in_order": MESH
    + """
func @f(%x1: f64[6@x, 6@y, 4], %x2: f64[6@y, 6@x, 3]) -> (f64[4, 3]) stage=annotated {
  %0 = dot_general(%x1, %x2) lhs_contract=[0, 1] rhs_contract=[1, 0] : f64[4, 3]
  return %0
}""",
    "a_view_that_permutes": MESH
    + """
func @f(%x1: f64[6@x, 4, 5]) -> (f64[4, 30]) stage=annotated {
  %0 = transpose(%x1) permutation=[1, 0, 2] : f64[4, 6, 5]
  %1 = reshape(%0) shape=[4, 30] : f64[4, 30]
  return %1
}""",
    "no_average_of_averages": FOUR
    + """
func @f(%x1: f64[5@x, 6, 3], %x2: f64[3], %x3: f64[3]) -> (f64[5, 6, 3], f64[3], f64[3]) stage=annotated {
  %0, %1, %2 = batch_norm_training(%x1, %x2, %x3) epsilon=0.001 feature=2 : (f64[5, 6, 3], f64[3], f64[3])
  return %0, %1, %2
}""",
    "a_halo_wider_than_a_shard": FOUR
    + """
func @f(%x1: f64[9@x]) -> (f64[9]) stage=annotated {
  %0 = reduce_window(%x1) window={size=[9] low=[4] high=[4]} : f64[9]
  return %0
}""",
    "group_counts_are_those_of_a_device": MESH
    + """
func @f(%x1: f64[2, 7, 6@y], %x2: f64[3, 2, 9@y]) -> (f64[2, 5, 9]) stage=annotated {
  %0 = convolution(%x1, %x2) window={size=[3]} lhs_spec=[0, 2, 1] rhs_spec=[2, 1, 0] out_spec=[0, 2, 1] \
feature_group_count=3 : f64[2, 5, 9]
  return %0
}""",
    "the_last_shard_is_empty": FOUR
    + """
func @f(%x1: f64[5@x, 3]) -> (f64[3], f64[5, 3], f64[7, 3]) stage=annotated {
  %0 = reduce(%x1) dims=[0] monoid=max : f64[3]
  %1 = cumulative_reduce(%x1) dim=0 : f64[5, 3]
  %2 = constant() value=dense<2.0 : f64[]> : f64[]
  %3 = pad(%x1, %2) low=[1, 0] high=[1, 0] interior=[0, 0] : f64[7, 3]
  return %0, %1, %3
}""",
    "several_windows_of_shards_of_one_element": FOUR
    + """
func @f(%x1: f64[4@x, 3]) -> (f64[4, 3]) stage=annotated {
  %0 = constant() value=dense<1.0 : f64[]> : f64[]
  %1 = pad(%x1, %0) low=[1, 0] high=[-1, 0] interior=[0, 0] : f64[4, 3]
  %2 = pad(%x1, %0) low=[-1, 0] high=[1, 0] interior=[0, 0] : f64[4, 3]
  %3 = pad(%x1, %0) low=[2, 0] high=[-2, 0] interior=[0, 0] : f64[4, 3]
  %4 = pad(%x1, %0) low=[-3, 0] high=[3, 0] interior=[0, 0] : f64[4, 3]
  %5 = subtract(%1, %2) : f64[4, 3]
  %6 = multiply(%3, %4) : f64[4, 3]
  %7 = add(%5, %6) : f64[4, 3]
  return %7
}""",
    "a_sum_in_a_loop_stays_behind_the_scatter": MESH + LOOP_SCATTER,
}


@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("without", [(), ("compose", "merge", "rings", "clean", "fuse")], ids=["all", "plain"])
def test_trap(name: str, without: tuple[str, ...]) -> None:
    outcome = judge(Case(parse_program(TRAPS[name], OPS), 1, without))
    assert outcome.kind == "ok", f"{outcome.kind} at {outcome.stage}: {outcome.message}"
