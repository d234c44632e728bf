"""Why is this tensor sharded so: the annotation that each split came from, the ops that carried it, what lost.

The answer is a value that prints::

    %h: f32[256@data, 4096@model]      mlp.py:12
      dim 0: data
        %h dim 0 <- %x dim 0      dot_general at mlp.py:12 (level 1, batch 2)
        %x is annotated [data, _]
      dim 1: model
        ...
      not taken:
        dim 0: model from %v dim 0 by add at mlp.py:14: model splits dim 1 of this tensor already
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Node, Program, Value
from gspmd.ir.location import Location
from gspmd.ir.printer import value_names
from gspmd.ir.sharding import Sharding
from gspmd.ir.type_text import type_text
from gspmd.propagation.reasons import Conflict, Event, Reasons

_SHOWN = 12  # hops of one chain that the text shows; the record has them all


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a chain: `value`'s dimension got its axes from `source`'s by an op, at a level and in a batch."""

    value: str
    dim: int
    source: str
    source_dim: int
    op: str
    loc: Location | None
    level: int
    batch: int

    def text(self) -> str:
        """`%h dim 0 <- %x dim 0      dot_general at mlp.py:12 (level 1, batch 2)`."""
        head = f"%{self.value} dim {self.dim} <- %{self.source} dim {self.source_dim}"
        return f"{head}      {self.op}{_at(self.loc)} (level {self.level}, batch {self.batch})"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one dimension's axes came from: the hops, latest first, and the annotation at their end."""

    dim: int
    axes: str
    hops: tuple[Hop, ...]
    annotated: str
    annotation: str
    loc: Location | None

    def lines(self) -> list[str]:
        """The chain as lines of text."""
        end = f"%{self.annotated} is annotated {self.annotation}{_at(self.loc)}"
        hops = [f"  {hop.text()}" for hop in self.hops]
        if len(hops) > _SHOWN:
            left_out = f"  ... {len(hops) - _SHOWN} more ops ..."
            hops[_SHOWN // 2 : len(hops) - _SHOWN // 2] = [left_out]
        return [f"dim {self.dim}: {self.axes}", *hops, f"  {end}"]


@dataclass(frozen=True, slots=True)
class Loss:
    """Axes that a neighbour would have liked a dimension to be split over, and why it is not."""

    dim: int
    axes: str
    source: str
    source_dim: int
    op: str
    loc: Location | None
    why: str

    def text(self) -> str:
        """`dim 0: model from %v dim 0 by add at mlp.py:14: model splits dim 1 of this tensor already`."""
        source = f"{self.axes} from %{self.source} dim {self.source_dim}"
        return f"dim {self.dim}: {source} by {self.op}{_at(self.loc)}: {self.why}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one value is sharded as it is; `text()` says it all."""

    name: str
    type: str
    annotation: str | None
    loc: Location | None
    origins: tuple[Origin, ...]
    losses: tuple[Loss, ...]

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The explanation as lines of text."""
        lines = [f"%{self.name}: {self.type}{_at(self.loc, '      ')}"]
        if self.annotation is not None:
            lines.append(f"  annotated {self.annotation}")
        for origin in self.origins:
            lines += [f"  {line}" for line in origin.lines()]
        if not self.origins:
            lines.append(
                "  not split: it is whole on every device" + ("" if self.losses else "; no neighbour is split")
            )
        if self.losses:
            lines += ["  not taken:", *(f"    {loss.text()}" for loss in self.losses)]
        return "\n".join(lines)


def explain(program: Program, reasons: Reasons, name: str) -> Explanation:
    """Explain the sharding of a value of a propagated program by its printed name, with or without `%`.

    `reasons` is what `propagate` returned with the program. Raises UsageError for a name that the program does not
    have, with the closest that it has.
    """
    names = value_names(program)
    value = _find(names, name.removeprefix("%"))
    nodes = {v: node for node in program.body.walk() for v in node.results}
    teller = _Teller(reasons, names, nodes)
    annotation = reasons.annotation(value)
    conflicts = reasons.conflicts(value)
    return Explanation(
        names[value],
        type_text(value.type),
        None if annotation is None else annotation.text(),
        teller.loc(value),
        tuple(teller.origins(value)),
        tuple(teller.loss(c) for c in conflicts),
    )


@dataclass(frozen=True, slots=True)
class _Teller:
    """Turns values into names, and nodes into ops and lines."""

    reasons: Reasons
    names: dict[Value, str]
    nodes: dict[Value, Node]

    def loc(self, value: Value) -> Location | None:
        node = self.nodes.get(value)
        return None if node is None else node.loc

    def origins(self, value: Value) -> list[Origin]:
        """One origin for each piece of a dimension's axes that came in a way of its own."""
        sharding = self.reasons.sharding(value)
        found: list[Origin] = []
        for dim in range(sharding.rank):
            for chain in self.reasons.chains(value, dim):
                annotation = self.reasons.annotation(chain.annotated)
                said = "" if annotation is None else annotation.text()
                hops = tuple(self.hop(e) for e in chain.events)
                axes, end = sharding.axes_text((chain.axis,)), chain.annotated
                found.append(Origin(dim, axes, hops, self.names[end], said, self.loc(end)))
        return found

    def hop(self, event: Event) -> Hop:
        names, node = self.names, event.node
        source, target = names[event.source], names[event.value]
        return Hop(target, event.dim, source, event.source_dim, node.op.name, node.loc, event.level, event.batch)

    def loss(self, conflict: Conflict) -> Loss:
        sharding: Sharding = self.reasons.sharding(conflict.value)
        wanted, node = sharding.axes_text(conflict.wanted), conflict.node
        source = self.names[conflict.source]
        return Loss(conflict.dim, wanted, source, conflict.source_dim, node.op.name, node.loc, conflict.why)


def _find(names: dict[Value, str], name: str) -> Value:
    """The value with a printed name; UsageError with close matches if there is none."""
    by_name = {n: v for v, n in names.items()}
    value = by_name.get(name)
    if value is None:
        close = get_close_matches(name, by_name, n=3, cutoff=0.5)
        meant = " or ".join(f"%{n}" for n in close)
        raise UsageError(
            f"the program has no value %{name}",
            fix=f"did you mean {meant}?" if close else "print the stage to see the names of its values",
        )
    return value


def _at(loc: Location | None, before: str = " at ") -> str:
    return "" if loc is None else f"{before}{loc.text()}"
