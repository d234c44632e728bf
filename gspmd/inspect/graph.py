"""A program as a NetworkX graph, for what graph algorithms answer: critical paths, cuts, what depends on what."""

from __future__ import annotations

from typing import Any

import networkx as nx

from gspmd.inspect.lines import line_of
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.opdef import traffic
from gspmd.ir.printer import value_names


def to_networkx(program: Program) -> nx.DiGraph[str]:
    """The data flow of a program: a node for each value, by its printed name, an edge from operand to result.

    Nodes have `op` ("" for a parameter), `type` (text), `line` (the user's, or "") and `wire_bytes` (of the collective
    that makes the value, one execution). A region's parameters depend on the operands of the node that holds it, and
    that node's results on the region's results; the graph has no cycles. For instance
    `nx.dag_longest_path(graph)` is the longest chain of ops.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    names = value_names(program)
    _add(graph, names, program.body)
    return graph


def _add(graph: nx.DiGraph[str], names: dict[Value, str], region: Region) -> None:
    for value in region.params:
        graph.add_node(names[value], op="", type=value.type.text(), line="", wire_bytes=0.0)
    for node in region.nodes:
        facts = _facts(node)
        sources = [names[v] for v in node.operands]
        for inner in node.regions:
            _add(graph, names, inner)
            graph.add_edges_from((s, names[p]) for s in sources for p in inner.params)
        ends = sources + [names[v] for inner in node.regions for v in inner.results]
        for value in node.results:
            graph.add_node(names[value], type=value.type.text(), **facts)
            graph.add_edges_from((s, names[value]) for s in ends)


def _facts(node: Node) -> dict[str, Any]:
    sent = traffic(node)
    return {"op": node.op.name, "line": line_of(node), "wire_bytes": 0.0 if sent is None else sent.wire_bytes}
