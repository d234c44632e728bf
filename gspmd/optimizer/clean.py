"""Duplicate and dead nodes go: every op is pure, so equal nodes on equal operands are one value.

Collectives are no exception: all devices run one program, so what merges here merges everywhere.
"""

from __future__ import annotations

from gspmd.ir.compare import same_attrs
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.rewrite import alive, with_body


def clean(program: Program) -> Program:
    """The program without duplicate and dead nodes, in regions too."""
    return with_body(program, clean_region(program.body))


def clean_region(region: Region) -> Region:
    """One region cleaned; its signature stays."""
    merged, now = _merged(region)
    results = tuple(now.get(v, v) for v in region.results)
    return Region(region.params, alive(merged, results), results)


def _merged(region: Region) -> tuple[list[Node], dict[Value, Value]]:
    """The nodes with duplicates merged, and what stands for each value that went."""
    now: dict[Value, Value] = {}
    seen: dict[object, Node] = {}
    out: list[Node] = []
    for node in region.nodes:
        operands = tuple([now.get(v, v) for v in node.operands])
        regions = tuple(map(clean_region, node.regions))
        key = None
        if not regions:
            key = (node.op, operands, node.attrs, node.results[0].type if node.results else None)
            first = seen.get(key)
            if first is not None and same_attrs(node.attrs, first.attrs):  # 0.0 is no -0.0
                now.update(zip(node.results, first.results, strict=True))
                continue
        same = all(a is b for a, b in zip(operands, node.operands, strict=True))
        if regions or not same:
            node = Node(node.op, operands, node.results, node.attrs, regions, node.loc)
        if key is not None:
            seen[key] = node
        out.append(node)
    return out, now
