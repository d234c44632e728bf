"""The `collectives` stage: each reshard becomes the steps of its plan (paper section 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Value
from gspmd.ir.opdef import Trait
from gspmd.ir.rewrite import rewrite
from gspmd.partitioner.planner import plan


def lower_reshards(program: Program) -> Program:
    """Replace every reshard by the collectives that the planner chose; explicit -> collectives."""
    body = rewrite(program.body, lambda region: _visit)
    return Program.of(program.name, body, program.mesh, "collectives")


def is_reshard(node: Node) -> bool:
    """Whether a node changes a sharding in a way that is still to be planned, so that devices cannot do it yet."""
    return node.op.has(Trait.RESHARD) and node.op.localize is None


def _visit(builder: Builder, node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
    return (_steps(builder, node, operands[0]),) if is_reshard(node) else None


def _steps(builder: Builder, node: Node, value: Value) -> Value:
    """The collectives of one reshard."""
    source, target = value.type.placed, node.result.type.placed
    try:
        steps = plan(value.type.shape, value.type.dtype.itemsize, source, target).steps
    except GspmdError as error:
        raise error.at(node.loc) from None
    for i, step in enumerate(steps):
        name = node.result.name if i == len(steps) - 1 else ""
        (value,) = step.op.emit(builder, (value,), step.attrs, (), node.loc, name)
    return value
