"""A program as a graph: every value is there, depends on what it is made of, and carries its traffic."""

from __future__ import annotations

import networkx as nx

import gspmd
from gspmd.ir.printer import value_names

MESH = gspmd.Mesh({"d": 2})


def looped(x, w):
    x = gspmd.shard(x, MESH, None, "d")
    w = gspmd.shard(w, MESH, "d", None)
    return gspmd.fori_loop(0, 3, lambda i, y: y + x @ w, x @ w)


def test_values_depend_on_what_they_are_made_of() -> None:
    compiled = gspmd.compile(looped, gspmd.TensorType("f32", (4, 6)), gspmd.TensorType("f32", (6, 8)))
    for stage in compiled.stages.programs:
        program = compiled.stage(stage).program
        graph, names = gspmd.to_networkx(program), value_names(program)
        assert nx.is_directed_acyclic_graph(graph)
        assert set(graph) == set(names.values())
        for node in program.body.walk():
            for result in node.results:
                assert {names[v] for v in node.operands} <= set(graph.predecessors(names[result]))
        out = names[program.body.results[0]]
        assert {names[v] for v in program.body.params} <= nx.ancestors(graph, out)


def test_traffic_is_that_of_the_collectives() -> None:
    compiled = gspmd.compile(looped, gspmd.TensorType("f32", (4, 6)), gspmd.TensorType("f32", (6, 8)))
    graph = gspmd.to_networkx(compiled.stage("optimized").program)
    bytes_ = sum(data["wire_bytes"] for _, data in graph.nodes(data=True))
    assert bytes_ == sum(use.wire_bytes for use in compiled.collectives()) > 0
