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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gspmd.inspect.annotating import find_value
from gspmd.inspect.lines import at_line
from gspmd.inspect.surroundings import Surroundings
from gspmd.ir.graph import Program, Value
from gspmd.ir.location import Location
from gspmd.ir.printer import value_names
from gspmd.ir.type_text import type_text
from gspmd.propagation.reasons import Chain, Conflict, Event, Reasons

_SHOWN = 12  # hops of one chain, and losses, that the text shows; the record has them all


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
        return f"{head}      {self.op}{at_line(self.loc)} (level {self.level}, batch {self.batch})"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one dimension's axes came from: the hops, latest first, and the annotation at their end."""

    dim: int
    axes: str
    hops: tuple[Hop, ...]
    annotated: str
    annotation: str
    loc: Location | None
    priority: int = 0

    def lines(self) -> list[str]:
        """The chain as lines of text."""
        later = f", which counts in round {self.priority}" if self.priority else ""
        end = f"%{self.annotated} is annotated {self.annotation}{at_line(self.loc)}{later}"
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
        return f"dim {self.dim}: {source} by {self.op}{at_line(self.loc)}: {self.why}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one value is sharded as it is; `text()` says it all.

    `notes` tell of groups, barriers, per-device code and dimensions that the annotation closes.
    """

    name: str
    type: str
    annotation: str | None
    loc: Location | None
    origins: tuple[Origin, ...]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The explanation as lines of text."""
        lines = [f"%{self.name}: {self.type}{at_line(self.loc, '      ')}"]
        if self.annotation is not None:
            lines.append(f"  annotated {self.annotation}")
        for origin in self.origins:
            lines += [f"  {line}" for line in origin.lines()]
        if not self.origins:
            lines.append(
                "  not split: it is whole on every device" + ("" if self.losses else "; no neighbour is split")
            )
        if self.losses:
            lines += ["  not taken:", *(f"    {loss.text()}" for loss in self.losses[:_SHOWN])]
            if len(self.losses) > _SHOWN:
                lines.append(f"    ... and {len(self.losses) - _SHOWN} more")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)


def explain(program: Program, reasons: Reasons, name: str) -> Explanation:
    """Explain the sharding of a value of a propagated program by its printed name, with or without `%`.

    `reasons` is what `propagate` returned with the program. Raises UsageError for a name that the program does not
    have, with the closest that it has.
    """
    names = value_names(program)
    value = find_value(names, name)
    around = Surroundings.of(program)
    teller = _Teller(reasons, names, around)
    annotation = reasons.annotation(value)
    conflicts = reasons.conflicts(value)
    return Explanation(
        names[value],
        type_text(value.type),
        None if annotation is None else annotation.text(),
        around.loc(value),
        tuple(teller.origins(value)),
        (*(teller.loss(c) for c in conflicts), *teller.barred(value)),
        tuple(teller.notes(value)),
    )


@dataclass(frozen=True, slots=True)
class _Teller:
    """Turns values into names, and nodes into ops and lines."""

    reasons: Reasons
    names: dict[Value, str]
    around: Surroundings

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
                loc, priority = self.around.loc(end), self.priority(chain, dim)
                found.append(Origin(dim, axes, hops, self.names[end], said, loc, priority))
        return found

    def priority(self, chain: Chain, dim: int) -> int:
        """The round in which the annotation at the end of a chain counts."""
        annotation = self.reasons.annotation(chain.annotated)
        at = chain.events[-1].source_dim if chain.events else dim
        return 0 if annotation is None else annotation.dims[at].priority

    def rounds(self, value: Value, dims: Iterable[int]) -> list[int]:
        """The rounds in which the annotations behind some dimensions' axes count."""
        return [self.priority(chain, dim) for dim in dims for chain in self.reasons.chains(value, dim)]

    def hop(self, event: Event) -> Hop:
        names, node = self.names, event.node
        source, target = names[event.source], names[event.value]
        return Hop(target, event.dim, source, event.source_dim, node.op.name, node.loc, event.level, event.batch)

    def loss(self, conflict: Conflict) -> Loss:
        value, node, why = conflict.value, conflict.node, conflict.why
        sharding = self.reasons.sharding(value)
        theirs = max(self.rounds(conflict.source, range(conflict.source_dim, conflict.source_dim + 1)), default=0)
        mine = min(self.rounds(value, range(sharding.rank)), default=theirs)
        if mine < theirs:
            why = f"{why}; this one's annotation counts in round {mine}, that one's in round {theirs}"
        wanted, source = sharding.axes_text(conflict.wanted), self.names[conflict.source]
        return Loss(conflict.dim, wanted, source, conflict.source_dim, node.op.name, node.loc, why)

    def barred(self, value: Value) -> Iterator[Loss]:
        """What barriers keep from a value."""
        for node, other, allowed in self.around.barriers(value):
            mine, theirs = self.reasons.sharding(value), self.reasons.sharding(other)
            for dim, (a, b) in enumerate(zip(mine.dims, theirs.dims, strict=True)):
                if b.axes and a.axes != b.axes:
                    why = f"shardings pass it {allowed}"
                    yield Loss(dim, theirs.axes_text(b.axes), self.names[other], dim, node.op.name, node.loc, why)

    def notes(self, value: Value) -> Iterator[str]:
        """What else decides."""
        sharding, annotation = self.reasons.sharding(value), self.reasons.annotation(value)
        for dim, d in enumerate(sharding.dims):
            if annotation is not None and not d.axes and not annotation.dims[dim].open:
                yield f"dim {dim}: kept whole by the annotation, which closes it"
        for node, others, exact in self.around.group(value):
            named = " and ".join(f"%{self.names[v]}" for v in others[:_SHOWN]) or "no other value"
            alike = "has the sharding of" if exact else "is told how others are sharded:"
            yield f"in a sharding group{at_line(node.loc)}: it {alike} {named}"
        if sharding.manual:
            code, axes = self.around.manual(value), sharding.axes_text(sharding.manual)
            line = "" if code is None else at_line(code.loc)
            yield f"in per-device code{line}: along {axes} each device has its own"
