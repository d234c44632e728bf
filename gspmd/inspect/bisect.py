"""Where a wrong number comes from: the first pass, and the first op, after which a program computes something else.

Every stage runs, so that the passes are tried one by one until the results differ from those of the program as it was.
The op is found by cutting: the program up to some node, with all that is still needed behind it as its results, is
taken through the passes up to the guilty one; the shortest such program that is wrong ends in the op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspmd.inspect.check import compare_results
from gspmd.inspect.provenance import Pass
from gspmd.inspect.reference import Reference
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.opdef import Array
from gspmd.ir.printer import print_node, value_names
from gspmd.ir.rewrite import alive
from gspmd.ir.verify import verify
from gspmd.ops import OPS
from gspmd.runtime.world import executor_for


@dataclass(frozen=True, slots=True)
class Step:
    """One pass: the stage that it leads to or belongs to, its name, and how to run it."""

    stage: str
    name: str
    run: Pass


@dataclass(frozen=True, slots=True)
class Culprit:
    """The first pass after which results differ (or which fails), and the first op if one alone can be told.

    `op` is the op's line in the program as it was given, `loc` the user's line.
    """

    stage: str
    name: str
    message: str
    op: str = ""
    loc: Location | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """`stage optimized, pass merge: result 0 differs ...`, the op and the user's line below it."""
        lines = [f"stage {self.stage}, pass {self.name}: {self.message}"]
        if self.op:
            lines.append(f"  first wrong op: {self.op}")
        if self.loc is not None:
            lines.append(f"  at {self.loc.text()}")
        return "\n".join(lines)


def bisect(program: Program, steps: Sequence[Step], arrays: Sequence[Array]) -> Culprit | None:
    """The first pass that changes what a program computes for some arguments, and the op; None if none does."""
    expected = Reference(executor_for(program).run_whole, arrays)
    now = program
    for i, step in enumerate(steps):
        try:
            now = step.run(now)
            verify(now, OPS)
            compare_results(executor_for(now).run_whole(arrays), expected, f"stage {step.stage}")
        except GspmdError as error:
            node = _first_op(program, steps[: i + 1], arrays)
            line = "" if node is None else _line(program, node)
            return Culprit(step.stage, step.name, error.message, line, error.loc if node is None else node.loc)
    return None


def _first_op(program: Program, steps: Sequence[Step], arrays: Sequence[Array]) -> Node | None:
    """The node at whose end the shortest wrong beginning of a program stops; None if every beginning is right."""
    nodes = program.body.nodes
    if program.is_local or not nodes or not _wrong(program, len(nodes), steps, arrays):
        return None
    low, high = 0, len(nodes)  # the beginning of `low` nodes is right, that of `high` wrong
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _wrong(program, middle, steps, arrays) else (middle, high)
    return nodes[high - 1]


def _wrong(program: Program, count: int, steps: Sequence[Step], arrays: Sequence[Array]) -> bool:
    """Whether the first nodes of a program come out wrong."""
    beginning, given = _beginning(program, count, arrays)
    if not beginning.body.results:
        return False
    try:
        expected = Reference(executor_for(beginning).run_whole, given)
        for step in steps:
            beginning = step.run(beginning)
        verify(beginning, OPS)
        compare_results(executor_for(beginning).run_whole(given), expected, "the beginning")
    except GspmdError:
        return True
    return False


def _beginning(program: Program, count: int, arrays: Sequence[Array]) -> tuple[Program, list[Array]]:
    """The first nodes, with what is read behind them as results, and the arguments that they take."""
    body = program.body
    behind: set[Value] = set(body.results)
    for node in body.nodes[count:]:
        behind.update(node.operands)
    results = tuple(v for n in body.nodes[:count] for v in n.results if v in behind)
    nodes = alive(body.nodes[:count], results)
    used = {v for n in nodes for v in n.operands}
    kept = [(p, x) for p, x in zip(body.params, arrays, strict=True) if p in used]
    region = Region(tuple(p for p, _ in kept), nodes, results)
    return Program.of(program.name, region, program.mesh, program.stage), [x for _, x in kept]


def _line(program: Program, node: Node) -> str:
    names = value_names(program)
    return print_node(Node(node.op, node.operands, node.results, node.attrs), names, program.mesh)
