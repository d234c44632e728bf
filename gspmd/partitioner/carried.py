"""What a loop does to its carries: which it leaves as they are, and which it only ever adds to.

A carry that its body takes through ops that are linear in it, and through nothing else, may stay unreduced for as long
as the loop runs: what is added in each trip joins it unreduced, and one collective behind the loop combines all of it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import node_rule


@dataclass(frozen=True, slots=True)
class CarriedSum:
    """A carry that may stay unreduced.

    `members`: the values of its data-flow edge. `steps`: the parameter and what becomes of it, up to the body's result.
    `added`: what joins on the way. `feeders`: those, and what they alone are linear functions of.
    """

    members: tuple[Value, ...]
    steps: tuple[Value, ...]
    added: tuple[Value, ...]
    feeders: frozenset[Value]


def carried_sums(places: Node, groups: tuple[tuple[Value, ...], ...], regions: tuple[Region, ...]) -> list[CarriedSum]:
    """The carries of a node that are only added to.

    `places` stands for the node with a value of its own at each operand and region result, of which `groups` consist;
    `regions` are the node's own.
    """
    operands, results = set(places.operands), set(places.results)
    uses = [_Uses(r) for r in regions]
    found: list[CarriedSum] = []
    for group in groups:
        if operands.isdisjoint(group) or results.isdisjoint(group):
            continue
        chains = [_chain(u, apart, set(group)) for u, apart in zip(uses, places.regions, strict=True)]
        ways = [chain for chain in chains if chain is not None]
        steps, added = (tuple(v for chain in ways for v in chain[part]) for part in (0, 1))
        if len(ways) == len(chains) and steps:
            feeders = frozenset(v for u, chain in zip(uses, ways, strict=True) for v in _feeders(u, chain[1]))
            found.append(CarriedSum(group, steps, added, feeders))
    return found


def unchanged(
    places: Node, groups: tuple[tuple[Value, ...], ...], regions: tuple[Region, ...]
) -> list[tuple[Value, ...]]:
    """The data-flow edges of a node, from an operand to a result, that every region leaves as they are."""
    operands, outside = set(places.operands), set(places.results)
    found: list[tuple[Value, ...]] = []
    for group in groups:
        members = set(group)
        ends = [
            v is p
            for region, apart in zip(regions, places.regions, strict=True)
            for v, place in zip(region.results, apart.results, strict=True)
            if place in members
            for p in region.params
            if p in members
        ]
        if ends and all(ends) and not operands.isdisjoint(group) and not outside.isdisjoint(group):
            found.append(group)
    return found


class _Uses:
    """Who makes and who uses the values of a region, and how often."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.makers: dict[Value, Node] = {}
        self.users: dict[Value, Node] = {}
        self.counts: Counter[Value] = Counter(region.results)
        for node in region.nodes:
            self.makers.update(dict.fromkeys(node.results, node))
            for value in node.operands:
                self.users[value] = node
                self.counts[value] += 1


def _chain(uses: _Uses, apart: Region, members: set[Value]) -> tuple[list[Value], list[Value]] | None:
    """A member's way through a region: its steps and what is added; None if it is used otherwise."""
    region = uses.region
    params = [p for p in region.params if p in members]
    ends = [v for v, place in zip(region.results, apart.results, strict=True) if place in members]
    if len(params) != 1 or len(ends) > 1:
        return None
    if not ends:
        return None if uses.counts[params[0]] else ([], [])
    steps, added = [params[0]], list[Value]()
    while steps[-1] is not ends[0]:
        value = steps[-1]
        node = uses.users.get(value)
        if node is None or uses.counts[value] != 1 or len(node.results) != 1:
            return None
        group = _linear_with(node, value)
        if group is None or node.result.type.shape != value.type.shape:
            return None
        added += [v for v in group if v is not value]
        steps.append(node.result)
    return (steps, added) if added and uses.counts[ends[0]] == 1 else None


def _linear_with(node: Node, value: Value) -> tuple[Value, ...] | None:
    """The operands with which together an operand may be unreduced; None if it may not."""
    rule = node_rule(node)
    groups = () if rule is None else [tuple(node.operands[i] for i in group) for group in rule.linear]
    return next((group for group in groups if value in group), None)


def _feeders(uses: _Uses, added: list[Value]) -> set[Value]:
    """Values that go nowhere but into what is added, through linear ops alone."""
    found: set[Value] = set()
    waiting = list(added)
    while waiting:
        value = waiting.pop()
        if value in found or uses.counts[value] != 1:
            continue
        found.add(value)
        node = uses.makers.get(value)
        rule = None if node is None else node_rule(node)
        if node is not None and rule is not None and len(node.results) == 1:
            waiting += [node.operands[i] for group in rule.linear for i in group]
    return found
