"""Groups become fused nodes: their regions are built, and the nodes are put in an order again.

So do nodes, each alone, that fold, update or order very many elements by a region.

A group runs where its last node stood or later, never before its operands are there; otherwise the order of the program
stays. Every device runs one program, so all of them issue collectives in one order.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import prod

from gspmd.ir.graph import Node, Region, Value
from gspmd.ops.folding import fold_of, order_steps, update_steps
from gspmd.ops.fused import FUSED, FusedAttrs
from gspmd.ops.loop_nest import build_nest
from gspmd.optimizer.fuse import Group, Grouping

# A kernel costs up to a third of a second to compile once: elements times nodes that make it worth that.
LEAST_WORK = 1 << 17
# A single node saves no traffic, only time on several threads: it must be so many times larger. So must a fold by a
# region, whose kernel compiles for a second and saves 8 ns an element.
_ALONE = 8
# Without a kernel an element costs so many times more to put into an arbitrary order.
_ORDERED = 8


def scheduled_region(region: Region, least_work: int = LEAST_WORK) -> Region:
    """A region with fused nodes, regions inside it too."""
    nodes = tuple(_inner_scheduled(n, least_work) for n in region.nodes)
    region = Region(region.params, nodes, region.results)
    grouping = Grouping(region)
    units: dict[int, Node] = {}
    fused: dict[int, Group] = {}
    for group in grouping.groups():
        count = len(group.nodes) if len(group.nodes) > 1 else 1 / _ALONE
        if count * prod(group.nest.loops) >= least_work:
            fused.update(dict.fromkeys(group.nodes, group))
    wanted = _wanted(grouping, region, fused)
    for i, node in enumerate(nodes):
        group = fused.get(i)
        if group is None:
            if any(v in wanted for v in node.results):
                units[i] = _alone(node, least_work)
        elif i == group.last and any(v in wanted for j in group.nodes for v in nodes[j].results):
            made = _fused_node(grouping, group, wanted)
            if made is None:  # left as it is
                units.update((j, nodes[j]) for j in (*group.nodes, *group.reads.maps))
            else:
                units[i] = made
    return Region(region.params, tuple(_ordered(units)), region.results)


def _inner_scheduled(node: Node, least_work: int) -> Node:
    if not node.regions:
        return node
    regions = tuple(scheduled_region(r, least_work) for r in node.regions)
    return Node(node.op, node.operands, node.results, node.attrs, regions, node.loc)


def _wanted(grouping: Grouping, region: Region, fused: dict[int, Group]) -> set[Value]:
    """The values that somebody outside the group that makes them reads."""
    wanted: set[Value] = set()
    seen: set[int] = set()
    waiting = list(region.results)
    while waiting:
        value = waiting.pop()
        if value in wanted:
            continue
        wanted.add(value)
        i = grouping.producer.get(value)
        if i is None:
            continue
        group = fused.get(i)
        key = i if group is None else group.last
        if key in seen:
            continue
        seen.add(key)
        waiting.extend(grouping.nodes[i].operands if group is None else _outer_inputs(grouping, group))
    return wanted


def _outer_inputs(grouping: Grouping, group: Group) -> list[Value]:
    """The inputs that the group does not make itself, in the order in which they are read."""
    order = _in_order(grouping, group)
    inside = {v for i in order for v in grouping.nodes[i].results}
    return list(dict.fromkeys(v for i in order for v in grouping.nodes[i].operands if v not in inside))


def _in_order(grouping: Grouping, group: Group) -> list[int]:
    """The nodes of a group, index maps right before their first readers: equal groups then have equal regions."""
    order: dict[int, None] = {}

    def add(i: int) -> None:
        for v in grouping.nodes[i].operands:
            j = grouping.producer.get(v)
            if j is not None and j in group.reads.maps and j not in order:
                add(j)
        order[i] = None

    for i in group.nodes:
        add(i)
    return list(order)


def _fused_node(grouping: Grouping, group: Group, wanted: set[Value]) -> Node | None:
    """The group as one node; None if its nest does not hold."""
    nodes = [grouping.nodes[i] for i in _in_order(grouping, group)]
    results = [v for i in group.nodes for v in grouping.nodes[i].results if v in wanted]
    inputs = _outer_inputs(grouping, group)
    nest = build_nest(nodes)
    split = None if nest is None else grouping.split_of(nest, group.nodes, {*inputs, *group.reads.counters})
    if split is None:
        return None
    now = {v: Value(v.type, v.name) for v in inputs}
    params = tuple(now.values())
    copies: list[Node] = []
    for node in nodes:
        operands = tuple([now[v] for v in node.operands])
        made = tuple([Value(v.type, v.name) for v in node.results])
        now.update(zip(node.results, made, strict=True))
        copies.append(Node(node.op, operands, made, node.attrs, (), node.loc))
    region = Region(params, tuple(copies), tuple(now[v] for v in results))
    loc = grouping.nodes[group.last].loc
    return Node(FUSED, tuple(inputs), tuple(results), FusedAttrs(split.outer), (region,), loc)


def _alone(node: Node, least_work: int) -> Node:
    """A node with a region that is worth a kernel as a fused node of its own; any other as it is."""
    if not node.regions or not _is_worth_it(node, least_work):
        return node
    params = tuple([Value(v.type, v.name) for v in node.operands])
    results = tuple([Value(v.type, v.name) for v in node.results])
    copy = Node(node.op, params, results, node.attrs, node.regions, node.loc)
    return Node(FUSED, node.operands, node.results, FusedAttrs(), (Region(params, (copy,), results),), node.loc)


def _is_worth_it(node: Node, least_work: int) -> bool:
    """Whether a node folds, updates or orders so many elements by a region that its kernel soon pays."""
    fold = fold_of(node)
    if fold is not None:
        return fold.elements >= _ALONE * least_work
    elements = node.operands[-1].type.size if node.operands else 0
    if update_steps(node) is not None:
        return elements >= least_work
    return order_steps(node) is not None and elements >= least_work // _ORDERED


def _ordered(units: dict[int, Node]) -> Iterator[Node]:
    """The nodes in an order that respects who reads whom, by number where that leaves a choice."""
    maker = {v: i for i, node in units.items() for v in node.results}
    readers: dict[int, list[int]] = {i: [] for i in units}
    missing: dict[int, int] = {}
    for i, node in units.items():
        sources = {maker[v] for v in node.operands if v in maker}
        missing[i] = len(sources)
        for j in sources:
            readers[j].append(i)
    ready = [i for i, count in missing.items() if not count]
    heapify(ready)
    while ready:
        i = heappop(ready)
        yield units[i]
        for j in readers[i]:
            missing[j] -= 1
            if not missing[j]:
                heappush(ready, j)
