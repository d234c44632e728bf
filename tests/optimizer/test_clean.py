"""Duplicates merge, and only duplicates do."""

from __future__ import annotations

import pytest

from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.parser import parse_example
from gspmd.ir.types import TensorType
from gspmd.ops import OPS
from gspmd.ops.fetch import FETCH
from gspmd.ops.fetch_plan import Reading
from gspmd.optimizer.clean import clean_region


@pytest.mark.parametrize(("fills", "left"), [((0.0, 0.0), 1), ((0.0, -0.0), 2), ((1.0, 2.0), 2), ((None, 0.0), 2)])
def test_attributes_are_equal_to_the_bit(fills: tuple[float | None, float | None], left: int) -> None:
    axes = (Mesh({"x": 2}).axis("x"),)
    reading = Reading(size=8, axes=axes, chunk=4, to_size=8, to_axes=axes, to_chunk=4)
    builder = Builder()
    x = builder.param(TensorType("f32", (4,)))
    results = [FETCH(builder, x, dim=0, reading=reading, fill=fill) for fill in fills]
    region = builder.region(results)
    cleaned = clean_region(region)
    assert len(cleaned.nodes) == left
    assert [n.attrs for n in cleaned.nodes if n.result is cleaned.results[1]] == [region.nodes[1].attrs]


def test_dead_nodes_go() -> None:
    node = parse_example("tanh(f32[4])", OPS).body.nodes[-1]
    (x,) = node.operands
    dead = Node(node.op, (x,), (Value(x.type),), node.attrs)
    assert clean_region(Region((x,), (dead,), (x,))).nodes == ()
