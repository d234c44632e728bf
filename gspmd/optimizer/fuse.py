"""Which nodes run together as one kernel: a greedy walk that grows groups from operands to users.

A node joins the groups of its operands if all of them fit into one nest of loops that can be cut into rows and
elements (`ops.loop_nest`), and if no path leaves the joined group and comes back. Index maps (broadcasts, constants)
belong to no group: each group that reads through one gets its own copy. This is the memory-bound view: what is passed
on inside a group is never written to memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from gspmd.ir.graph import Node, Region, Value
from gspmd.ops.loop_nest import (
    Form,
    Nest,
    Place,
    Split,
    build_nest,
    ends,
    form_of,
    index_split,
    loops_of,
    operand_split,
    result_split,
)

_MOST_NODES = 48
_MOST_INPUTS = 24
# Nodes that the search for a path may visit before a merge is given up.
_SEARCH = 400
# Fewer elements a row than this would drown in the work that is done once a row.
_SHORTEST_ROW = 8


@dataclass(frozen=True, slots=True)
class Reads:
    """What nodes read: inputs, what costs no memory (constants, indices), and the index maps in between by number."""

    inputs: set[Value] = field(default_factory=set[Value])
    counters: set[Value] = field(default_factory=set[Value])
    maps: set[int] = field(default_factory=set[int])

    def __or__(self, other: Reads) -> Reads:
        return Reads(self.inputs | other.inputs, self.counters | other.counters, self.maps | other.maps)

    @property
    def roots(self) -> set[Value]:
        """All that is read, beyond index maps."""
        return self.inputs | self.counters


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Nodes that run together, by number; nothing inside can read the `final` values, complete after all rows."""

    nodes: list[int]
    reads: Reads
    nest: Nest
    split: Split
    final: frozenset[Value]

    @property
    def first(self) -> int:
        """The number of the first node."""
        return self.nodes[0]

    @property
    def last(self) -> int:
        """The number of the last node."""
        return self.nodes[-1]


class Grouping:
    """One region's groups."""

    def __init__(self, region: Region) -> None:
        self.nodes: Sequence[Node] = region.nodes
        self.forms: list[Form | None] = [form_of(n) for n in self.nodes]
        self.producer: dict[Value, int] = {v: i for i, n in enumerate(self.nodes) for v in n.results}
        self.group: list[Group | None] = [None] * len(self.nodes)
        for i, form in enumerate(self.forms):
            if form is not None and not form.copies:
                self._place(i, form)

    def groups(self) -> list[Group]:
        """All groups, each once."""
        found: dict[Group, None] = {}
        for group in self.group:
            if group is not None:
                found[group] = None
        return list(found)

    def _place(self, i: int, form: Form) -> None:
        group = self._alone(i, form)
        if group is None:
            return
        self.group[i] = group
        near = {g for v in group.reads.inputs if (g := self._maker(v)) is not None}
        for other in sorted(near, key=lambda g: -g.last):
            joined = self._joined(other, group)
            if joined is not None:
                group = joined
                for j in group.nodes:
                    self.group[j] = group

    def _maker(self, value: Value) -> Group | None:
        i = self.producer.get(value)
        return None if i is None else self.group[i]

    def _alone(self, i: int, form: Form) -> Group | None:
        """A group of one node, with the index maps that lead to it."""
        node, reads = self.nodes[i], Reads()
        nest = Nest(loops_of((node,)))
        if not nest.loops or not nest.add(node, form):
            return None
        place, source = nest.places[node.result], nest.places[node.operands[0]]
        folds = form.monoid is not None
        split = result_split(source, place, folds, len(nest.loops))
        for value in node.operands:
            root = self._through(value, nest, reads)
            split = None if split is None else split.meet(self._root_split(root, nest))
        if split is None or prod(nest.loops[split.outer :]) < _SHORTEST_ROW:
            return None
        return Group([i], reads, nest, split, frozenset((node.result,) if folds and ends(place) else ()))

    def _through(self, value: Value, nest: Nest, reads: Reads) -> Value:
        """What an operand is a copy of, beyond index maps that fit into the nest; it is noted as read."""
        while (i := self.producer.get(value)) is not None:
            form = self.forms[i]
            if form is None or not form.copies:
                break
            if form.sourceless:
                reads.maps.add(i)
                reads.counters.add(value)
                return value
            if not nest.add(self.nodes[i], form):
                break
            reads.maps.add(i)
            value = self.nodes[i].operands[0]
        reads.inputs.add(value)
        return value

    def _joined(self, a: Group, b: Group) -> Group | None:
        """Both groups as one, None if that is not allowed."""
        reads = a.reads | b.reads
        if len(a.nodes) + len(b.nodes) > _MOST_NODES or len(reads.inputs) > _MOST_INPUTS:
            return None
        if not a.final.isdisjoint(b.reads.inputs) or not b.final.isdisjoint(a.reads.inputs):
            return None
        nodes = sorted({*a.nodes, *b.nodes})
        nest, split = self._common(a, b, nodes, reads)
        if nest is None or split is None or prod(nest.loops[split.outer :]) < _SHORTEST_ROW:
            return None
        joined = Group(nodes, reads, nest, split, a.final | b.final)
        return None if self._path(joined, (a, b)) else joined

    def _common(self, a: Group, b: Group, nodes: list[int], reads: Reads) -> tuple[Nest | None, Split | None]:
        """One nest for two groups, and how it may be cut."""
        if a.nest.loops == b.nest.loops:
            small, large = sorted((a.nest.places, b.nest.places), key=len)
            if all(large.get(v, p) == p for v, p in small.items()):
                nest = Nest(a.nest.loops)
                nest.places = large
                large.update(small)
                return nest, a.split.meet(b.split)
            return None, None
        loops = max(a.nest.loops, b.nest.loops, key=len)
        nest = build_nest([self.nodes[i] for i in sorted({*nodes, *reads.maps})], loops)
        return (None, None) if nest is None else (nest, self.split_of(nest, nodes, reads.roots))

    def _root_split(self, root: Value, nest: Nest) -> Split:
        """What an input, a constant or an index asks for."""
        i = self.producer.get(root)
        form = None if i is None else self.forms[i]
        place, rank = nest.places[root], len(nest.loops)
        return operand_split(place, rank) if form is None or not form.sourceless else index_split(place, form, rank)

    def split_of(self, nest: Nest, nodes: Sequence[int], roots: set[Value]) -> Split | None:
        """How a nest may be cut, from where all values lie; `roots` are inputs, constants and indices."""
        rank = len(nest.loops)
        split: Split | None = Split()
        for value in roots:
            split = None if split is None else split.meet(self._root_split(value, nest))
        for i in nodes:
            node, form = self.nodes[i], self.forms[i]
            assert form is not None
            wants = result_split(self._source(nest, node), nest.places[node.result], form.monoid is not None, rank)
            split = None if split is None or wants is None else split.meet(wants)
        return split

    @staticmethod
    def _source(nest: Nest, node: Node) -> Place:
        return nest.places[node.operands[0]]

    def _path(self, joined: Group, parts: tuple[Group, ...]) -> bool:
        """Whether a path leaves the group and comes back (or the search would take too long)."""
        start, seen, budget = joined.first, set[int](), _SEARCH
        waiting = [i for v in joined.reads.inputs if (i := self.producer.get(v)) is not None]
        while waiting:
            i = waiting.pop()
            group = self.group[i]
            if group in parts or i in seen:
                continue  # a member's own value
            seen.add(i)
            if (i if group is None else group.last) < start:
                continue
            budget -= 1
            if budget < 0:
                return True
            values = self.nodes[i].operands if group is None else tuple(group.reads.inputs)
            for v in values:
                j = self.producer.get(v)
                if j is not None:
                    if self.group[j] in parts:
                        return True
                    waiting.append(j)
        return False
