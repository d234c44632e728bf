"""The `collectives` stage: each reshard becomes the steps of its plan (paper section 4.5)."""

from __future__ import annotations

from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.sharding import Sharding
from gspmd.ops.collective import ReshardAttrs
from gspmd.partitioner.planner import plan


def lower_reshards(program: Program) -> Program:
    """Replace every reshard by the collectives that the planner chose; explicit -> collectives."""
    body = _lower(program.body)
    return Program.of(program.name, body, program.mesh, "collectives")


def _lower(region: Region) -> Region:
    if not any(isinstance(node.attrs, ReshardAttrs) or (node.regions and node.op.flow) for node in region.nodes):
        return region
    builder = Builder()
    builder.params.extend(region.params)
    now: dict[Value, Value] = {}
    for node in region.nodes:
        operands = tuple(now.get(v, v) for v in node.operands)
        if isinstance(node.attrs, ReshardAttrs):
            now[node.result] = _steps(builder, node, operands[0])
            continue
        regions = tuple(map(_lower, node.regions)) if node.op.flow else node.regions
        builder.nodes.append(Node(node.op, operands, node.results, node.attrs, regions, node.loc))
    return builder.region([now.get(v, v) for v in region.results])


def _steps(builder: Builder, node: Node, value: Value) -> Value:
    """The collectives of one reshard."""
    source, target = value.type.sharding, node.result.type.sharding
    assert isinstance(source, Sharding) and isinstance(target, Sharding)
    try:
        steps = plan(value.type.shape, value.type.dtype.itemsize, source, target).steps
    except GspmdError as error:
        raise error.at(node.loc) from None
    for i, step in enumerate(steps):
        name = node.result.name if i == len(steps) - 1 else ""
        (value,) = step.op.emit(builder, (value,), step.attrs, (), node.loc, name)
    return value
