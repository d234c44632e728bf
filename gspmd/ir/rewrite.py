"""Passes that replace some nodes and keep the rest, and what a region needs of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Region, Value

# Emits what stands for a node's results, given what stands for its operands; None keeps the node.
Visit = Callable[[Builder, Node, tuple[Value, ...]], Sequence[Value] | None]


def rewrite(region: Region, enter: Callable[[Region], Visit]) -> Region:
    """The region with nodes replaced as `enter(region)` says, inner regions each by a visit of their own.

    Nodes in which nothing changes stay the same objects, and so does a region.
    """
    visit = enter(region)
    builder = Builder()
    builder.params.extend(region.params)
    now: dict[Value, Value] = {}
    changed = False
    for node in region.nodes:
        operands = tuple([now.get(v, v) for v in node.operands]) if now else node.operands
        builder.loc = node.loc
        made = visit(builder, node, operands)
        if made is not None:
            now.update(zip(node.results, made, strict=True))
            changed = True
            continue
        regions = tuple([rewrite(r, enter) for r in node.regions]) if node.regions else ()
        if not (_same(operands, node.operands) and _same(regions, node.regions)):
            node = Node(node.op, operands, node.results, node.attrs, regions, node.loc)
            changed = True
        builder.nodes.append(node)
    return builder.region([now.get(v, v) for v in region.results]) if changed else region


def with_body(program: Program, body: Region) -> Program:
    """The program at the same stage and with the same signature, with another body; itself if it is the same."""
    if body is program.body:
        return program
    return Program(program.name, body, program.mesh, program.stage, program.inputs, program.outputs)


def alive(nodes: Sequence[Node], results: Iterable[Value]) -> tuple[Node, ...]:
    """The nodes that some result needs, in order."""
    needed, kept = set(results), list[Node]()
    for node in reversed(nodes):
        if not needed.isdisjoint(node.results):
            needed.update(node.operands)
            kept.append(node)
    return tuple(reversed(kept))


def _same(a: Sequence[object], b: Sequence[object]) -> bool:
    return a is b or all(x is y for x, y in zip(a, b, strict=True))
