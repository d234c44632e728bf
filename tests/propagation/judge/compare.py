"""Our propagation of a program beside another one's: which values are sharded otherwise, and what that costs.

The cost of somebody's shardings is what our own partitioner puts on the wire under them: they become annotations on
every value, and propagation has nothing left to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gspmd.driver.pipeline import run_stages
from gspmd.inspect.cost import cost_of
from gspmd.interop.export_stablehlo import write_module
from gspmd.ir.dim_sharding import DimSharding
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from gspmd.propagation import propagate
from tests.propagation.values import all_values, with_annotations

SLACK = 64.0  # bytes that are no difference: a scalar more or less
FAILED = float("inf")


@dataclass(frozen=True)
class Question:
    """A program, its values' names in the exported texts, our shardings of them, and which are compared."""

    program: Program
    shardy_text: str
    xla_text: str
    names: dict[Value, str]
    ours: dict[str, Sharding]
    compared: frozenset[str]
    mesh: Mesh


@dataclass(frozen=True)
class Bill:
    """What a program costs one device: bytes on the wire, and scalar operations."""

    wire_bytes: float
    operations: float


@dataclass(frozen=True)
class Difference:
    """A value that another propagation shards otherwise."""

    value: str
    ours: str
    theirs: str


def question(program: Program) -> Question:
    """What is asked about an annotated program."""
    shardy_text, names = write_module(program, "sdy")
    xla_text, _ = write_module(program)
    result, _ = propagate(program)
    before, after = all_values(program.body), all_values(result.body)
    if len(before) != len(after):
        raise ValueError(f"propagation takes {program.name} apart: its values cannot be matched")
    ours = {names[v]: w.type.sharding for v, w in zip(before, after, strict=True) if w.type.sharding is not None}
    compared = frozenset(names[v] for v in live_values(program.body))
    return Question(program, shardy_text, xla_text, names, ours, compared, program.mesh or Mesh({}))


def live_values(region: Region) -> list[Value]:
    """The values that a result needs and that come of a parameter: others are dropped or duplicated by compilers."""
    varying = {v for v in region.params if v.type.rank}
    for node in region.nodes:
        if any(v in varying for v in node.operands):
            varying.update(v for v in node.results if v.type.rank)
    needed = set(region.results)
    out: list[Value] = []
    for node in reversed(region.nodes):
        if any(v in needed for v in node.results):
            needed.update(node.operands)
            out += [v for v in node.results if v in needed and v in varying]
            for inner in node.regions:
                out += live_values(inner)
    return [*out, *(v for v in region.params if v in needed and v in varying)]


def differences(q: Question, theirs: Mapping[str, Sharding]) -> tuple[list[Difference], int]:
    """The values sharded otherwise, and how many were compared."""
    found: list[Difference] = []
    shapes = {q.names[v]: v.type.shape for v in q.names if q.names[v] in q.compared}
    count = 0
    for name in sorted(q.compared & theirs.keys() & q.ours.keys()):
        count += 1
        mine, other = q.ours[name], theirs[name]
        if mine.rank != other.rank or _layout(mine, shapes[name]) != _layout(other, shapes[name]):
            found.append(Difference(name, mine.text(), other.text()))
    return found, count


def _layout(sharding: Sharding, shape: tuple[int, ...]) -> tuple[object, ...]:
    return tuple([d.axes if n > 1 else () for d, n in zip(sharding.dims, shape, strict=True)])


def bill(q: Question, shardings: Mapping[str, Sharding]) -> Bill:
    """What the program costs where values are sharded so; infinite if that is no program to us."""
    try:
        program = run_stages(forced(q, shardings), "optimized", verified=False).last
        cost = cost_of(program)
        return Bill(cost.wire_bytes, cost.flops)
    except GspmdError:
        return Bill(FAILED, FAILED)


def forced(q: Question, shardings: Mapping[str, Sharding]) -> Program:
    """The program, annotated at stage annotated with the shardings of all its values that have a name."""

    def annotation(v: Value) -> Sharding | None:
        held = shardings.get(q.names.get(v, ""))
        given = v.type.sharding
        if held is not None and (given is None or given.is_open) and held.rank == v.type.rank:
            dims = tuple(DimSharding(d.axes) for d in held.dims)
            given = replace(given or held, dims=dims, unreduced=(), monoid=None, replicated=(), manual=())
        return given

    return with_annotations(q.program, annotation)
