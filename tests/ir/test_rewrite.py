"""Replacing nodes: what is replaced is wired anew, what is not stays the same object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import OpDef
from gspmd.ir.parser import parse_program
from gspmd.ir.rewrite import Visit, alive, rewrite
from gspmd.ops import OPS

TEXT = """
func @f(%i: i32[], %x: f32[4]) -> (f32[4], f32[4]) stage=annotated {
  %a = sine(%x) : f32[4]
  %b = negate(%a) : f32[4]
  %dead = cosine(%x) : f32[4]
  %n, %y = while(%i, %a) trip_count=2 (%j: i32[], %v: f32[4]) {
    %three = constant() value=dense<3 : i32[]> : i32[]
    %go = compare(%j, %three) direction=LT : bool[]
    return %go
  } (%j: i32[], %v: f32[4]) {
    %k = negate(%j) : i32[]
    %w = sine(%v) : f32[4]
    return %k, %w
  } : (i32[], f32[4])
  return %b, %y
}"""


@pytest.fixture
def body() -> Region:
    return parse_program(TEXT, OPS).body


def replacing(old: OpDef[Any], new: OpDef[Any]) -> Callable[[Region], Visit]:
    def visit(builder: Builder, node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
        return (new(builder, *operands),) if node.op is old else None

    return lambda region: visit


def names(region: Region) -> list[str]:
    return [n.op.name for n in region.walk()]


def test_nodes_are_replaced_in_regions_too(body: Region) -> None:
    found = rewrite(body, replacing(OPS["sine"], OPS["tan"]))
    assert names(found) == ["tan" if n == "sine" else n for n in names(body)]
    assert found.nodes[1].operands[0] is found.nodes[0].result
    assert found.results[0] is body.results[0]  # the node that makes it is wired anew, its value stays
    assert found.nodes[3].regions[0] is body.nodes[3].regions[0]
    assert found.nodes[2] is body.nodes[2]


def test_without_a_change_it_is_the_same_region(body: Region) -> None:
    assert rewrite(body, replacing(OPS["tan"], OPS["sine"])) is body


def test_alive(body: Region) -> None:
    assert [n.op.name for n in alive(body.nodes, body.results)] == ["sine", "negate", "while"]
    assert alive(body.nodes, body.results[:1]) == body.nodes[:2]
