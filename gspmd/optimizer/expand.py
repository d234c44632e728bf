"""Ops that say what is wanted become ops that do it: halos become exchanges (`OpDef.expand`, paper section 4.3).

An op that applies a region at every place becomes the region's nodes on arrays (`OpDef.inline`), which then fuse with
their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Value
from gspmd.ir.rewrite import rewrite, with_body


def expand(program: Program) -> Program:
    """The local program with every op that has an expansion replaced by it; itself if there is none."""
    return with_body(program, rewrite(program.body, lambda region: _visit))


def _visit(builder: Builder, node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
    if node.op.inline is not None:
        return node.op.inline(builder, node, operands)
    return None if node.op.expand is None else node.op.expand(builder, operands, node.attrs)
