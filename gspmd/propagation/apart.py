"""Before propagation: ops that work on several dimensions become chains of ops that work on one of them each.

A chain needs no dimension whole all the way, so that what an op in it cannot split may move to another dimension by an
all-to-all, and back: a transform of a grid that is split is a series of transposes of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.rewrite import rewrite, with_body


def take_apart(program: Program) -> Program:
    """The program with every op that can be taken apart in pieces; on one device as it is."""
    if program.mesh is None or program.mesh.size == 1 or not _may_come_apart(program.body):
        return program
    return with_body(program, rewrite(program.body, lambda _: _visit))


def _may_come_apart(region: Region) -> bool:
    """Whether a look at every op is worth while: in most programs nothing can be taken apart."""
    nodes = region.nodes
    return any(n.op.apart is not None for n in nodes) or any(_may_come_apart(r) for n in nodes for r in n.regions)


def _visit(builder: Builder, node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
    return None if node.op.apart is None else node.op.apart(builder, node, operands)
