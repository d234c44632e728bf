"""Why each tensor is sharded as it is: what propagation noted down, and how to read it.

During the pass only references and integers are appended to lists; they become facts when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from gspmd.ir.axes import Axes, atoms, contains, cut_points, is_prefix
from gspmd.ir.graph import Node, Value
from gspmd.ir.mesh import Axis
from gspmd.ir.sharding import Sharding
from gspmd.propagation.levels import NEVER
from gspmd.propagation.network import Network
from gspmd.propagation.project import LAST_PRIORITY, DimPlan, view_of
from gspmd.propagation.search import Entry
from gspmd.propagation.states import States
from gspmd.propagation.step import Move, may_grow


@dataclass(frozen=True, slots=True)
class Event:
    """Axes that a dimension of a value got: from which tensor, by which op, at which level and in which batch."""

    value: Value
    dim: int
    axes: Axes
    source: Value
    source_dim: int
    node: Node
    level: int
    batch: int


@dataclass(frozen=True, slots=True)
class Chain:
    """How a piece of an axis came to a dimension: the gains, the latest first, back to an annotated value."""

    axis: Axis
    annotated: Value
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """What another tensor of an op would have split a value's dimension over, and why it did not come to that."""

    value: Value
    dim: int
    wanted: Axes
    source: Value
    source_dim: int
    node: Node
    why: str


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons beside a propagated program; its `values` are that program's, in the network's order."""

    network: Network
    states: States
    values: list[Value]
    initial: list[int]
    final: list[int]
    applied: list[Entry]
    lost: list[Entry]
    levels: list[int]  # of each batch
    aliases: dict[Value, int] = field(init=False, repr=False, default_factory=dict[Value, int])
    # Filled when first asked for.
    numbers: dict[Value, int] = field(init=False, repr=False, default_factory=dict[Value, int])
    entries: dict[int, list[Entry]] = field(init=False, repr=False, default_factory=dict[int, list[Entry]])

    def number(self, value: Value) -> int:
        """The number of a value of the propagated program."""
        if not self.numbers:
            self.numbers.update((v, i) for i, v in enumerate(self.values))
            self.numbers.update(self.aliases)
        return self.numbers[value]

    def annotation(self, value: Value) -> Sharding | None:
        """What the user wrote on a value; None if nothing."""
        return self.network.values[self.number(value)].type.sharding

    def sharding(self, value: Value) -> Sharding:
        """What a value ended up with."""
        return self.states.items[self.final[self.number(value)]].sharding.settled()

    def events(self, value: Value) -> list[Event]:
        """Every gain of axes of a value, in the order in which they came."""
        return [self._event(e, m) for e in self._entries(self.number(value)) for m in e.change.moves]

    def losses(self, value: Value) -> list[Event]:
        """The gains that other steps proposed in the very batch in which the value took something else."""
        number = self.number(value)
        return [self._event(e, m) for e in self.lost if e.value == number for m in e.change.moves]

    def chains(self, value: Value, dim: int) -> list[Chain]:
        """How each piece of a dimension's axes came there, one chain a piece, major to minor."""
        number = self.number(value)
        final = self.states.items[self.final[number]].sharding.dims[dim].axes
        todo = [(number, dim, axis, len(self.levels), list[Event]()) for axis in reversed(final)]
        chains: list[Chain] = []
        while todo:
            number, dim, axis, batch, events = todo.pop()
            for piece, came in reversed(self._pieces(number, dim, axis, batch)):
                if came is None:
                    chains.append(Chain(piece, self.values[number], tuple(events)))
                    continue
                entry, move = came
                source = self.network.tensors[entry.step][move.source]
                todo.append((source, move.source_dim, piece, entry.batch, [*events, self._event(entry, move)]))
        return chains

    def _pieces(self, number: int, dim: int, axis: Axis, batch: int) -> list[tuple[Axis, tuple[Entry, Move] | None]]:
        """The pieces in which an axis had come to a dimension before a batch, each with the entry and move it came by.

        None: the piece is the value's own annotation.
        """
        moves = [(e, m) for e in self._entries(number) for m in e.change.moves if m.dim == dim and e.batch < batch]
        start = self.states.items[self.initial[number]].sharding.dims[dim].axes
        found: list[tuple[Axis, tuple[Entry, Move] | None]] = []
        for piece in atoms((axis,), cut_points(start, *(m.axes for _, m in moves))):
            own = contains(start, piece)
            found.append((piece, None if own else next(((e, m) for e, m in moves if contains(m.axes, piece)), None)))
        return found

    def _entries(self, number: int) -> list[Entry]:
        """The entries of the log about a value."""
        if not self.entries:
            for entry in self.applied:
                self.entries.setdefault(entry.value, []).append(entry)
        return self.entries.get(number, [])

    def conflicts(self, value: Value) -> list[Conflict]:
        """What neighbours of a value would still like it to be split over, judged on the final shardings."""
        number = self.number(value)
        return [c for step in self.network.adjacent[number] for c in self._step_conflicts(step, number)]

    def _step_conflicts(self, step: int, number: int) -> Iterator[Conflict]:
        tensors, plan = self.network.tensors[step], self.network.plans[step]
        shardings = [self.states.items[self.final[v]].sharding for v in tensors]
        views = [view_of(plan, t, s, LAST_PRIORITY) for t, s in enumerate(shardings)]
        seen: set[tuple[int, int]] = set()
        told = ((t, s) for t, v in enumerate(tensors) if v == number for s in range(len(tensors)))
        for t, s in ((t, s) for t, s in told if plan.levels[s][t] != NEVER):
            for d, e in product(plan.tensors[t], plan.tensors[s] if tensors[s] != number else ()):
                if (d.dim, tensors[s]) in seen:
                    continue
                why = wanted = None
                if e.dim in views[s].hidden and not set(d.factors).isdisjoint(e.factors):
                    wanted, why = (
                        shardings[s].dims[e.dim].axes,
                        "its shards are no multiple of what the op leaves together",
                    )
                for f in e.factors:
                    mine, theirs = views[t].axes.get(f, ()), views[s].axes[f]
                    if f in d.factors and theirs and not is_prefix(theirs, mine):
                        wanted, why = theirs, self._why(number, d, mine, theirs)
                        break
                if wanted and why:
                    seen.add((d.dim, tensors[s]))
                    source, node = self.values[tensors[s]], self.network.nodes[step]
                    yield Conflict(self.values[number], d.dim, wanted, source, e.dim, node, why)

    def _why(self, number: int, plan: DimPlan, mine: Axes, theirs: Axes) -> str:
        """Why a dimension did not take what a neighbour has."""
        dim, size = plan.dim, plan.size
        sharding = self.states.items[self.final[number]].sharding
        text = sharding.axes_text
        if not may_grow(sharding.dims[dim]):
            return "the annotation closes this dimension"
        if mine and not is_prefix(mine, theirs):
            return f"it is split over {text(mine)} already, which came first"
        rest = [a for a in theirs if not contains(mine, a)]
        for axis in rest:
            for i, d in enumerate(sharding.dims):
                if i != dim and any(a.name == axis.name for a in d.axes):
                    return f"{text((axis,))} splits dim {i} of this tensor already"
            if any(a.name == axis.name for a in sharding.replicated):
                return f"the annotation keeps the tensor replicated over {text((axis,))}"
            if any(a.name == axis.name for a in sharding.unreduced + sharding.manual):
                return f"the tensor is unreduced or manual over {text((axis,))}"
        return f"a dimension of size {size} cannot be split so: too small, or its shards would not nest"

    def _event(self, entry: Entry, move: Move) -> Event:
        step, values = entry.step, self.values
        return Event(
            values[entry.value],
            move.dim,
            move.axes,
            values[self.network.tensors[step][move.source]],
            move.source_dim,
            self.network.nodes[step],
            self.levels[entry.batch],
            entry.batch,
        )
