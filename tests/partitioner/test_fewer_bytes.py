"""Programs that once sent more than they need: what each sends now, with the shape that a device has then."""

from __future__ import annotations

import pytest

from gspmd.driver.pipeline import run_stages
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Trait
from gspmd.ir.parser import parse_program
from gspmd.ir.sharding import parse_sharding
from gspmd.ops import OPS
from gspmd.partitioner.planner import plan

PROGRAM = """
mesh @mesh = [x=4]
func @f({params}) -> ({result}) stage=annotated {{
  {body}
}}"""

CASES = {
    # What only an annotation reads is made as that says: no way back and forth between rows and columns.
    "annotated": (
        "%a: f32[64@x, 32]",
        "f32[64, 32@x]",
        """%0 = reverse(%a) dims=[0] : f32[64, 32]
  %1 = sharding_constraint(%0) sharding=[_, x] : f32[64, 32@x]
  return %1""",
        [("all_to_all", (64, 8))],
    ),
    # A whole operand is read where it lies: nothing is split only to be exchanged.
    "whole_operand": (
        "%a: f32[64, 32]@_, %z: f32[]",
        "f32[68@x, 32]",
        """%0 = pad(%a, %z) low=[2, 0] high=[2, 0] interior=[0, 0] : f32[68, 32]
  %1 = sharding_constraint(%0) sharding=[x, _] : f32[68@x, 32]
  return %1""",
        [],
    ),
    # A whole tensor seen under another shape is cut after that, into uneven shards too.
    "whole_view": (
        "%a: f32[62, 8]@_",
        "f32[496@x]",
        """%0 = reshape(%a) shape=[496] : f32[496]
  %1 = sharding_constraint(%0) sharding=[x] : f32[496@x]
  return %1""",
        [],
    ),
    # A small product is computed by every device, if its operand is much smaller than its result.
    "little_work": (
        "%a: f32[64@x, 8], %b: f32[8, 256]@_",
        "f32[64, 256]@_",
        """%0 = dot_general(%a, %b) lhs_contract=[1] rhs_contract=[0] : f32[64, 256]
  %1 = sharding_constraint(%0) sharding=[_, _] : f32[64, 256]@_
  return %1""",
        [("all_gather", (64, 8))],
    ),
    # A large one is not: its result is gathered.
    "much_work": (
        "%a: f32[1024@x, 512], %b: f32[512, 1024]@_",
        "f32[1024, 1024]@_",
        """%0 = dot_general(%a, %b) lhs_contract=[1] rhs_contract=[0] : f32[1024, 1024]
  %1 = sharding_constraint(%0) sharding=[_, _] : f32[1024, 1024]@_
  return %1""",
        [("all_gather", (1024, 1024))],
    ),
    # Zeros are made as they are needed, not gathered.
    "zeros": (
        "%i: i32[96@x], %u: f32[96@x, 32]",
        "f32[64@x, 32]",
        """%z = constant() value=dense<0.0 : f32[]> : f32[]
  %t = broadcast_in_dim(%z) shape=[64, 32] : f32[64, 32]
  %0 = scatter(%t, %i, %u) update_window_dims=[1] inserted_window_dims=[0] input_batching_dims=[] \
scatter_indices_batching_dims=[] scatter_dims_to_operand_dims=[0] index_vector_dim=1 monoid=add : f32[64, 32]
  %1 = sharding_constraint(%0) sharding=[x, _] : f32[64@x, 32]
  return %1""",
        [("reduce_scatter", (16, 32))],
    ),
    # The windows of a pool that do not cross shards need no halo.
    "aligned_windows": (
        "%a: f32[64@x, 16], %s: f32[32@x, 16]",
        "f32[64@x, 16]",
        """%0 = select_and_scatter(%a, %s) window={size=[2, 1] stride=[2, 1]} select=GE : f32[64, 16]
  %1 = sharding_constraint(%0) sharding=[x, _] : f32[64@x, 16]
  return %1""",
        [],
    ),
    # The first shard is dealt out to all, to each the part that it wants; the device that has it keeps its own.
    "dealt_out": (
        "%a: f32[64@x, 32]",
        "f32[16@x, 32]",
        """%0 = slice(%a) start=[0, 0] limit=[16, 32] stride=[1, 1] : f32[16, 32]
  %1 = sharding_constraint(%0) sharding=[x, _] : f32[16@x, 32]
  return %1""",
        [("affine_permute", (4, 32))] * 3,
    ),
    # Columns are scanned where they are wanted, rather than by parts of rows whose totals go round.
    "scanned_where_wanted": (
        "%a: f32[64@x, 32]",
        "f32[64, 32@x]",
        """%0 = cumulative_reduce(%a) dim=0 : f32[64, 32]
  %1 = sharding_constraint(%0) sharding=[_, x] : f32[64, 32@x]
  return %1""",
        [("all_to_all", (64, 8))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_collectives(name: str) -> None:
    params, result, body, wanted = CASES[name]
    text = PROGRAM.format(params=params, result=result, body=body)
    local = run_stages(parse_program(text, OPS), "optimized").last
    found = [(n.op.name, n.result.type.shape) for n in local.body.walk() if n.op.has(Trait.COLLECTIVE)]
    assert found == wanted


def test_an_uneven_dimension_is_cut_for_both_axes_at_once() -> None:
    """Cut for one axis and then for the other, its chunks would have to be moved in between."""
    mesh = Mesh({"x": 2, "y": 3})
    found = plan((64, 32), 4, parse_sharding("[_, _]", mesh), parse_sharding("[_, x+y]", mesh))
    assert (len(found.steps), found.wire_bytes) == (1, 0)


def test_padding_at_an_end_does_not_forbid_the_cheap_way() -> None:
    """Gathering first holds a row more than the target does."""
    mesh = Mesh({"x": 2, "y": 3})
    found = plan((63, 50), 4, parse_sharding("[x, y]", mesh), parse_sharding("[_, x]", mesh))
    assert [step.op.name for step in found.steps] == ["all_gather", "all_to_all"]
