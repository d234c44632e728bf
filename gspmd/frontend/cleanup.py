"""The last touches on traced regions: nothing dead, no marks of the front end, annotated inputs typed so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gspmd.frontend.stop import STOP_GRADIENT
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.sharding import Sharding
from gspmd.ops.annotate import SHARDING_CONSTRAINT


def live_nodes(nodes: Sequence[Node], results: Iterable[Value]) -> tuple[Node, ...]:
    """The nodes that results depend on, in their order."""
    needed = set(results)
    kept: list[Node] = []
    for node in reversed(nodes):
        if any(v in needed for v in node.results):
            needed.update(node.operands)
            kept.append(node)
    kept.reverse()
    return tuple(kept)


def finished(region: Region) -> Region:
    """A whole program's region: without dead nodes and gradient stops, and with types on annotated parameters."""
    nodes = live_nodes(region.nodes, region.results)
    plain = without_stops(Region(region.params, nodes, region.results))
    return _with_annotated_params(plain)


def without_stops(region: Region) -> Region:
    """The region with what passes a gradient stop used directly, in inner regions too."""
    if not any(node.op is STOP_GRADIENT for node in region.walk()):
        return region
    same: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in region.nodes:
        if node.op is STOP_GRADIENT:
            (x,) = node.operands
            same[node.result] = same.get(x, x)
        else:
            regions = tuple(map(without_stops, node.regions))
            nodes.append(_on(node, same, regions))
    return Region(region.params, tuple(nodes), tuple(same.get(v, v) for v in region.results))


def _on(node: Node, same: Mapping[Value, Value], regions: tuple[Region, ...]) -> Node:
    """The node, its results too, on other operands."""
    operands = tuple([same.get(v, v) for v in node.operands])
    if operands == node.operands and regions == node.regions:
        return node
    return Node(node.op, operands, node.results, node.attrs, regions, node.loc)


def _with_annotated_params(region: Region) -> Region:
    """Parameters that are annotated as they come in get the annotation into their own types.

    Arguments can then be handed in as they are wanted. The first annotation counts.
    """
    wanted: dict[Value, Sharding] = {}
    params = {v for v in region.params if v.type.sharding is None}
    for node in region.nodes:
        if node.op is SHARDING_CONSTRAINT and node.operands[0] in params:
            sharding = node.result.type.sharding
            assert sharding is not None
            wanted.setdefault(node.operands[0], sharding)
    if not wanted:
        return region
    same = {v: Value(v.type.with_sharding(sharding), v.name) for v, sharding in wanted.items()}
    nodes = tuple([_on(node, same, node.regions) for node in region.nodes])
    return Region(tuple(same.get(v, v) for v in region.params), nodes, tuple(same.get(v, v) for v in region.results))
