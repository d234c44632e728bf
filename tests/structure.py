"""Whether two programs are the same but for the names of their values and the lines they came from."""

from __future__ import annotations

from gspmd.ir.compare import same_attrs
from gspmd.ir.graph import Node, Program, Region, Value


def same_structure(a: Program, b: Program) -> bool:
    """Whether stage, mesh, signature, ops, attributes, types and wiring are equal; names and locations do not count."""
    if (a.stage, a.mesh, a.inputs, a.outputs) != (b.stage, b.mesh, b.inputs, b.outputs):
        return False
    return _same_region(a.body, b.body)


def _same_region(a: Region, b: Region) -> bool:
    """Whether two regions have equal ops, attributes, types and wiring."""
    if len(a.params) != len(b.params) or len(a.nodes) != len(b.nodes) or len(a.results) != len(b.results):
        return False
    twin: dict[Value, Value] = {}
    if not _define(a.params, b.params, twin):
        return False
    for x, y in zip(a.nodes, b.nodes, strict=True):
        if not _same_node(x, y, twin) or not _define(x.results, y.results, twin):
            return False
    return all(twin.get(x) is y for x, y in zip(a.results, b.results, strict=True))


def _define(a: tuple[Value, ...], b: tuple[Value, ...], twin: dict[Value, Value]) -> bool:
    if len(a) != len(b) or any(x.type != y.type for x, y in zip(a, b, strict=True)):
        return False
    twin.update(zip(a, b, strict=True))
    return True


def _same_node(a: Node, b: Node, twin: dict[Value, Value]) -> bool:
    if a.op is not b.op or len(a.operands) != len(b.operands) or len(a.regions) != len(b.regions):
        return False
    if not all(twin.get(x) is y for x, y in zip(a.operands, b.operands, strict=True)):
        return False
    return same_attrs(a.attrs, b.attrs) and all(map(_same_region, a.regions, b.regions))
