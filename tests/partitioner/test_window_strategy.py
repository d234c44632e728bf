"""Which way convolutions are split, and what they then communicate: halos for space, nothing for batch and features."""

from __future__ import annotations

from collections import Counter

import pytest

from gspmd.ir.graph import Program
from gspmd.ir.opdef import Trait
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from gspmd.optimizer.expand import expand
from gspmd.partitioner.collectives import lower_reshards
from gspmd.partitioner.explicit import make_explicit
from gspmd.partitioner.localize import localize
from gspmd.propagation.propagate import propagate

CONVOLUTION = """
mesh @mesh = [data=2, s=4]
func @f(%x: f32[{x}], %w: f32[{w}]) -> (f32[8, 64, 64, 32]) stage=annotated {{
  %0 = convolution(%x, %w) window={{size=[3, 3] low=[1, 1] high=[1, 1]}} lhs_spec=[0, 3, 1, 2] rhs_spec=[3, 2, 0, 1] \
out_spec=[0, 3, 1, 2] : f32[8, 64, 64, 32]
  return %0
}}"""
KERNEL_GRADIENT = """
mesh @mesh = [data=2, s=4]
func @f(%x: f32[16, 8@data, 64@s, 64], %ct: f32[8@data, 32, 64@s, 64]) -> (f32[16, 32, 3, 3]) stage=annotated {
  %0 = convolution(%x, %ct) window={size=[64, 64] low=[1, 1] high=[1, 1]} lhs_spec=[0, 1, 2, 3] rhs_spec=[1, 0, 2, 3] \
out_spec=[0, 1, 2, 3] : f32[16, 32, 3, 3]
  return %0
}"""


def partitioned(text: str) -> tuple[str, Counter[str], Program]:
    """The result's type, the collectives by name, and the local program."""
    propagated, _ = propagate(parse_program(text.replace("\\\n", ""), OPS))
    explicit = make_explicit(propagated)
    local = expand(localize(lower_reshards(explicit)))
    nodes = [n for n in local.body.nodes if n.op.has(Trait.COLLECTIVE)]
    return explicit.body.results[0].type.text(), Counter(n.op.name for n in nodes), local


@pytest.mark.parametrize(
    ("x", "w", "result", "collectives"),
    [
        ("8@data, 64, 64, 16", "3, 3, 16, 32", "f32[8@data, 64, 64, 32]", {}),
        ("8@data, 64@s, 64, 16", "3, 3, 16, 32", "f32[8@data, 64@s, 64, 32]", {"affine_permute": 2}),
        ("8, 64@s, 64@data, 16", "3, 3, 16, 32", "f32[8, 64@s, 64@data, 32]", {"affine_permute": 4}),
        ("8@data, 64, 64, 16", "3, 3, 16, 32@s", "f32[8@data, 64, 64, 32@s]", {}),
        ("8@data, 64, 64, 16@s", "3, 3, 16, 32", "f32[8@data, 64, 64, 32]", {"all_reduce": 1}),
    ],
)
def test_convolution(x: str, w: str, result: str, collectives: dict[str, int]) -> None:
    found, used, _ = partitioned(CONVOLUTION.format(x=x, w=w))
    assert (found, dict(used)) == (result, collectives)


def test_a_kernel_gradient_has_a_halo_of_the_kernel() -> None:
    """Its window is the image: the taps are split, a shard needs two rows of its neighbours, and sums are combined."""
    _, used, local = partitioned(KERNEL_GRADIENT)
    assert used == {"affine_permute": 2, "all_reduce": 1}
    moved = [n.result.type.shape for n in local.body.nodes if n.op.name == "affine_permute"]
    assert moved == [(16, 4, 1, 64)] * 2
