"""Which node of an earlier stage a node of a later one came from.

Passes carry the user's lines along and never look at them. So they are run once more on a program whose nodes have
numbers in place of lines: what comes out is the same program, and says of each node where it comes from. It costs
nothing unless somebody asks, and no pass knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count

from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.location import Location
from gspmd.partitioner.collectives import is_reshard

Pass = Callable[[Program], Program]
_MARK = "<node>"


def marked(program: Program) -> Program:
    """The program with each node's number, in the order of `Region.walk`, in place of its line."""
    numbers = count()

    def region(old: Region) -> Region:
        nodes: list[Node] = []
        for node in old.nodes:
            loc = Location(_MARK, next(numbers))
            inner = tuple([region(r) for r in node.regions])
            nodes.append(Node(node.op, node.operands, node.results, node.attrs, inner, loc))
        return Region(old.params, tuple(nodes), old.results)

    return replace(program, body=region(program.body))


def replayed(program: Program, passes: Iterable[Pass]) -> Program:
    """What passes make of a program, each node with the number of the node that it came from."""
    program = marked(program)
    for run in passes:
        program = run(program)
    return program


def origin(node: Node) -> int | None:
    """The number of the node that a node of a replayed program came from; None if it came from none."""
    return node.loc.line if node.loc is not None and node.loc.file == _MARK else None


def origins(program: Program) -> list[int | None]:
    """For each node of a replayed program the number of the node that it came from."""
    return [origin(node) for node in program.body.walk()]


def earlier_values(later: Program, earlier: Program, numbers: Sequence[int | None]) -> dict[Value, Value]:
    """For each value of a later stage the value of an earlier one that it is, or that it helps to make.

    `numbers` gives for each node of the later program that of the earlier one it came from. What a reshard makes is the
    value that it moves. A value that comes from nowhere is not in the answer.
    """
    nodes, by_number = iter(numbers), list(earlier.body.walk())
    found: dict[Value, Value] = {}

    def pair(values: Sequence[Value], theirs: Sequence[Value]) -> None:
        if theirs:
            found.update((v, theirs[min(i, len(theirs) - 1)]) for i, v in enumerate(values))

    def region(body: Region) -> None:
        for node in body.nodes:
            number = next(nodes)
            here = None if number is None else by_number[number]
            if is_reshard(node) and node.operands[0] in found:
                found[node.result] = found[node.operands[0]]
            else:
                pair(node.results, () if here is None else here.results)
            for i, inner in enumerate(node.regions):
                pair(inner.params, here.regions[i].params if here is not None and i < len(here.regions) else ())
                region(inner)

    pair(later.body.params, earlier.body.params)
    region(later.body)
    return found
