"""The values of a program, and the program with other annotations of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.sharding import Sharding


def all_values(region: Region) -> list[Value]:
    """Every value, those of inner regions after the results of the node that holds them."""
    out = list(region.params)
    for node in region.nodes:
        out += node.results
        for inner in node.regions:
            out += all_values(inner)
    return out


def with_annotations(program: Program, annotation: Callable[[Value], Sharding | None]) -> Program:
    """The program at stage annotated with the annotation of each value that the function gives for it."""
    new: dict[Value, Value] = {}

    def put(v: Value) -> Value:
        new[v] = Value(v.type.with_sharding(annotation(v)), v.name)
        return new[v]

    def of(region: Region) -> Region:
        params = tuple(map(put, region.params))
        nodes: list[Node] = []
        for n in region.nodes:
            regions = tuple(map(of, n.regions))
            operands = tuple(new[v] for v in n.operands)
            nodes.append(replace(n, operands=operands, results=tuple(map(put, n.results)), regions=regions))
        return Region(params, tuple(nodes), tuple(new[v] for v in region.results))

    return Program.of(program.name, of(program.body), program.mesh)
