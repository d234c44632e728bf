"""Which collectives a compiled program issues, what they carry and how often they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gspmd.inspect.lines import line_of
from gspmd.ir.graph import Node, Program, Region
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Trait, traffic, trips
from gspmd.ir.printer import value_names
from gspmd.ops import OPS

_KIND = frozenset((Trait.COLLECTIVE, Trait.RESHARD))
# What `CollectiveUse.kind` may be: the collectives that reshards are made of.
KINDS = tuple(sorted(op.name for op in OPS.values() if op.traits >= _KIND))


@dataclass(frozen=True, slots=True)
class CollectiveUse:
    """One collective of a program. Bytes are one device's in one execution, padding included.

    `count` is how often it runs in one call of the program, from the trip counts of the loops around it (a loop of
    unknown length counts once); `line` is the user's line that it serves ("" if unknown).
    """

    kind: str
    axes: tuple[str, ...]
    group_size: int
    operand_bytes: int
    output_bytes: int
    wire_bytes: float
    count: int
    value: str
    line: str

    @property
    def total_bytes(self) -> float:
        """Bytes on the wire in all executions."""
        return self.wire_bytes * self.count

    def __str__(self) -> str:
        times = f" x{self.count}" if self.count != 1 else ""
        head = f"{self.kind:20} over {'+'.join(self.axes):16} {self.wire_bytes:14.0f} B{times}  %{self.value}"
        return f"{head}  {self.line}" if self.line else head


def collectives_of(program: Program) -> list[CollectiveUse]:
    """The collectives of a program at a local stage, in the order in which devices issue them."""
    names = value_names(program)
    mesh = program.mesh or Mesh({})
    uses: list[CollectiveUse] = []
    for node, count in collective_nodes(program):
        sent = traffic(node)
        assert sent is not None
        uses.append(
            CollectiveUse(
                sent.kind,
                tuple(mesh.axis_text(a) for a in sent.axes),
                sent.group_size,
                sum(v.type.nbytes for v in node.operands),
                sum(v.type.nbytes for v in node.results),
                sent.wire_bytes,
                count,
                names[node.results[0]],
                line_of(node),
            )
        )
    return uses


def collective_nodes(program: Program) -> list[tuple[Node, int]]:
    """The nodes of a program at a local stage that exchange data, each with how often it runs."""
    return [(node, count) for node, count in counted(program.body, 1) if node.op.traffic is not None]


def wire_of(uses: Sequence[CollectiveUse]) -> float:
    """Bytes that one device puts on the wire in one call."""
    return sum(use.total_bytes for use in uses)


def by_kind(uses: Sequence[CollectiveUse]) -> dict[str, float]:
    """Bytes on the wire of each kind of collective, in one call of the program."""
    found: dict[str, float] = {}
    for use in uses:
        found[use.kind] = found.get(use.kind, 0.0) + use.total_bytes
    return dict(sorted(found.items()))


def counted(region: Region, times: int = 1) -> Iterator[tuple[Node, int]]:
    """Every node that runs as such, with how often it does if the region runs so many times."""
    for node in region.nodes:
        yield node, times
        if node.op.flow is None:
            continue
        known = trips(node)
        for inner in node.regions:
            yield from counted(inner, times * (1 if known is None else known))
