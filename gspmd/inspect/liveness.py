"""From where to where each buffer of a region lives, as the runtime's walker holds them.

A value's buffer comes to be at its node and goes after the last node that reads it; a region's parameters are held by
whoever runs it. Some values share a buffer: what passes through unchanged, and what is but a part of an operand and
keeps the whole alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Trait, node_rule, trips


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that a region holds at once beside its parameters, at which node, and in which values."""

    bytes: int
    node: Node | None
    values: tuple[tuple[Value, int], ...]


@dataclass(frozen=True, slots=True)
class Life:
    """The buffers of one region.

    `root` gives, for each value, the one whose buffer it is in; `born` and `last` the nodes, by number, at which that
    buffer comes to be (-1: a parameter) and is read last; `inner` the most that runs of a node's regions hold.
    """

    region: Region
    root: dict[Value, Value]
    born: dict[Value, int]
    last: dict[Value, int]
    inner: dict[Node, Peak]

    def peak(self, freed: Sequence[Value] = ()) -> Peak:
        """The most bytes at once, beside the parameters; of these `freed` count while they live, and go when read."""
        count = len(self.region.nodes)
        made: list[list[Value]] = [[] for _ in range(count + 1)]
        gone: list[list[Value]] = [[] for _ in range(count + 1)]
        counted = {self.root[v] for v in freed}
        for value, at in self.born.items():
            if at >= 0 or value in counted:
                made[max(at, 0)].append(value)
                gone[self.last[value]].append(value)
        held, best, where = 0, -1, 0
        for i, node in enumerate(self.region.nodes):
            inside = self.inner.get(node)
            new = sum(v.type.nbytes for v in made[i])
            # What the node's regions hand out is among what they hold at the end.
            handed = sum(v.type.nbytes for v in made[i] if inside is not None and self.born[v] == i)
            now = held + new + (0 if inside is None else max(inside.bytes - handed, 0))
            if now > best:
                best, where = now, i
            held += new - sum(v.type.nbytes for v in gone[i])
        if best < 0:
            return Peak(sum(v.type.nbytes for v in counted), None, tuple((v, v.type.nbytes) for v in counted))
        return self._at(where, best, counted)

    def _at(self, where: int, best: int, counted: set[Value]) -> Peak:
        """The peak, told at a node."""
        node = self.region.nodes[where]
        inside = self.inner.get(node)
        alive = [
            v
            for v, at in self.born.items()
            if at <= where <= self.last[v] and (at >= 0 or v in counted) and not (inside and at == where)
        ]
        values = [(v, v.type.nbytes) for v in alive]
        if inside is not None:
            values += inside.values
            node = inside.node or node
        return Peak(best, node, tuple(values))


def life_of(region: Region) -> Life:
    """The buffers of a region and of the regions within."""
    life = Life(region, {v: v for v in region.params}, dict.fromkeys(region.params, -1), {}, {})
    keeps: list[tuple[Value, Value]] = []
    for i, node in enumerate(region.nodes):
        shared = _shared(node, life)
        for value in node.results:
            source = shared.get(value)
            life.root[value] = value if source is None else life.root[source]
            if source is None and not node.op.has(Trait.LITERAL):
                life.born[value] = i
            if source is None and (whole := _part_of(node)) is not None:
                keeps.append((value, whole))
        for value in (*node.operands, *node.results):
            life.last[life.root[value]] = i
    end = max(len(region.nodes) - 1, 0)
    for value in (*region.params, *region.results):
        # A parameter that nobody reads is never cleared.
        if value in region.results or life.root[value] not in life.last:
            life.last[life.root[value]] = end
    for part, whole in reversed(keeps):
        root = life.root[whole]
        life.last[root] = max(life.last[root], life.last[life.root[part]])
    return life


def literals(region: Region) -> Iterator[Value]:
    """The constants of a region and those within: they are part of the program, and always there."""
    for node in region.walk():
        if node.op.has(Trait.LITERAL):
            yield from node.results


def _shared(node: Node, life: Life) -> dict[Value, Value]:
    """Results that are in the buffers of operands; the node's regions are looked into."""
    if node.op.has(Trait.IDENTITY):
        return dict(zip(node.results, node.operands, strict=True))
    if node.op.flow is None:
        return {}
    lives = [life_of(region) for region in node.regions]
    shared: dict[Value, Value] = {}
    carried: list[Value] = []
    for group in node.op.flow(node):
        places = set(group)
        operand = next((v for v in node.operands if v in places), None)
        result = next((v for v in node.results if v in places), None)
        if operand is None or result is None:
            continue
        # One buffer in each region: what a region is given at this place it hands on there.
        if all(len({inner.root[v] for v in places if v in inner.root}) <= 1 for inner in lives):
            shared[result] = operand
        else:
            carried.append(result)
    life.inner[node] = _inner_peak(node, lives, carried)
    return shared


def _inner_peak(node: Node, lives: Sequence[Life], carried: Sequence[Value]) -> Peak:
    """The most that a node's regions hold: a loop's later trips beside the values that the trip before handed on."""
    best = max((life.peak() for life in lives), key=lambda peak: peak.bytes)
    if trips(node) in (0, 1):
        return best
    values = tuple((v, v.type.nbytes) for v in carried)
    return Peak(best.bytes + sum(n for _, n in values), best.node, (*best.values, *values))


def _part_of(node: Node) -> Value | None:
    """The operand whose buffer a smaller result may be a view of; None if it has a buffer of its own."""
    if len(node.results) != 1 or not node.operands or node.regions or node.op.traffic is not None:
        return None
    whole = node.operands[0]
    if node.result.type.nbytes >= whole.type.nbytes or node.result.type.dtype != whole.type.dtype:
        return None
    if node.op.has(Trait.RESHARD) or (node.op.has(Trait.MOVES) and len(node.operands) == 1):
        return whole
    rule = node_rule(node)
    looked_up = rule is not None and any(f.kind == "lookup" for f in rule.factors)
    return whole if looked_up else None
