"""A program as integers: values, steps that tie them together, and who touches whom.

Values of all regions are numbered alike. A step is one op with a rule, or one data-flow edge (a loop carry: initial
value, body argument, body result, loop result), which is an identity over its values; steps know nothing else of ops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes
from gspmd.ir.errors import ShardingError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.manual import Crossing
from gspmd.ir.opdef import annotates, manual_axes, node_rule
from gspmd.ir.types import TensorType
from gspmd.propagation.project import Plan, identity_plan, plan_of

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """The program's values and steps by number.

    `types` lists the distinct types and `type_of` the type number of each value. Per step: `tensors` (value numbers,
    operands first), `plans`, `nodes`, and `depths`, the longest path from an input. `adjacent` lists the steps that
    each value takes part in. `manual`: the axes in the user's hands, of values in per-device code. `aliases`: values
    that go by the number of another one, because they have to be sharded exactly alike. `naming`: steps of annotations
    that leave nothing open: they name what the value is that they are put on, so they speak first.
    """

    values: list[Value]
    types: list[TensorType]
    type_of: list[int]
    tensors: list[Numbers]
    plans: list[Plan]
    nodes: list[Node]
    depths: list[int]
    adjacent: list[list[int]]
    manual: dict[int, Axes]
    aliases: list[tuple[Value, int]]
    naming: list[int]


def network_of(program: Program) -> Network:
    """Number a program's values and steps, those of all its regions among them."""
    network = Network([], [], [], [], [], [], [], [], {}, [], [])
    numbering = _Numbering(network)
    numbering.region(program.body, 0)
    for members in numbering.groups.values():
        # One edge ties the values of a group that is not exact.
        if len(members) > 1:
            numbers = tuple(number for number, _ in members)
            plan = identity_plan(network.values[numbers[0]].type.shape, len(numbers))
            if plan.visits:
                numbering.add_step(members[0][1], plan, numbers, 0)
    return network


class _Numbering:
    """One walk over the program, with memos keyed by what repeats from layer to layer."""

    def __init__(self, network: Network) -> None:
        self.net = network
        self.index: dict[Value, int] = {}
        self.depth_of: list[int] = []  # per value
        self.type_numbers: dict[TensorType, int] = {}
        self.type_numbers_by_id: dict[int, int] = {}
        self.plans: dict[tuple[Any, ...], tuple[Plan | None, bool]] = {}  # and whether the node names its operand
        self.groups: dict[tuple[str, bool], list[tuple[int, Node]]] = {}

    def region(self, region: Region, depth: int, manual: Axes = ()) -> int:
        """Number a region whose parameters lie at the given depth; the depth of its deepest result."""
        start = len(self.net.values)
        for value in region.params:
            self.add_value(value, depth)
        net, index, depth_of, type_of = self.net, self.index, self.depth_of, self.net.type_of
        by_id, plans = self.type_numbers_by_id, self.plans
        add_value, add_adjacent, add_type_of = net.values.append, net.adjacent.append, type_of.append
        for node in region.nodes:
            op = node.op
            ins = [index[v] for v in node.operands]
            here = max([depth_of[v] for v in ins]) if ins else 0
            inner = (
                max([self.region(r, here, manual + manual_axes(node)) for r in node.regions]) if node.regions else here
            )
            numbers = list(ins)
            # As in `add_value`, written out: this loop is half of what numbering costs.
            for value in node.results:
                if op.group is not None and self.joins(node, value, numbers):
                    continue
                number = index[value] = len(depth_of)
                numbers.append(number)
                add_value(value)
                depth_of.append(inner + 1)
                add_adjacent([])
                kind = by_id.get(id(value.type))
                add_type_of(self.add_type(value.type) if kind is None else kind)
            if op.rule is not None:
                attrs = None if type(node.attrs) is Attrs else node.attrs  # Attrs has no fields: nothing to compare
                key = (op, attrs, *[type_of[v] for v in numbers])
                known = plans.get(key)
                if known is None:
                    known = plans[key] = _node_plan(node), _names(node)
                plan, names = known
                if plan is not None:
                    if names:
                        net.naming.append(len(net.tensors))
                    self.add_step(node, plan, tuple(numbers), here)
            if op.flow is not None:
                for group in op.flow(node):
                    self.add_edge(node, group, here)
            if op.crossings is not None:
                for crossing in op.crossings(node):
                    self.add_crossing(node, crossing, here)
        if manual:
            for number in range(start, len(net.values)):
                net.manual.setdefault(number, manual)
        return max([depth_of[index[v]] for v in region.results], default=depth)

    def joins(self, node: Node, value: Value, numbers: list[int]) -> bool:
        """Whether a value takes the number of another one of its group, which is then appended to its step's."""
        assert node.op.group is not None
        key = node.op.group(node.attrs)
        members = self.groups.setdefault(key, [])
        here = len(self.depth_of)
        if not members:
            members.append((here, node))
            return False
        first, other = members[0]
        if other.result.type.shape != value.type.shape:
            raise ShardingError(
                f"values of shapes {list(other.result.type.shape)} and {list(value.type.shape)} in one sharding group",
                rule="propagation.C2",
                loc=node.loc,
                fix="group values of one shape",
            )
        if not key[1]:
            members.append((here, node))
            return False
        self.index[value] = first
        self.net.aliases.append((value, first))
        numbers.append(first)
        return True

    def add_value(self, value: Value, depth: int) -> int:
        """Number a new value at a depth."""
        net, type_ = self.net, value.type
        number = self.index[value] = len(net.values)
        net.values.append(value)
        self.depth_of.append(depth)
        net.adjacent.append([])
        kind = self.type_numbers_by_id.get(id(type_))
        net.type_of.append(self.add_type(type_) if kind is None else kind)
        return number

    def add_type(self, type_: TensorType) -> int:
        """The number of a type that was not seen as this object before."""
        number = self.type_numbers.setdefault(type_, len(self.net.types))
        if number == len(self.net.types):
            self.net.types.append(type_)
        self.type_numbers_by_id[id(type_)] = number
        return number

    def add_edge(self, node: Node, group: Iterable[Value], depth: int) -> None:
        """Tie values together that are one value at different places."""
        numbers = tuple(dict.fromkeys(self.index[v] for v in group))
        plan = identity_plan(self.net.values[numbers[0]].type.shape, len(numbers)) if len(numbers) > 1 else None
        if plan is not None and plan.visits:
            self.add_step(node, plan, numbers, depth)

    def add_crossing(self, node: Node, crossing: Crossing, depth: int) -> None:
        """Tie a value outside of per-device code to its part inside."""
        plan = plan_of(crossing.rule)
        if plan.visits:
            self.add_step(node, plan, (self.index[crossing.inner], self.index[crossing.outer]), depth)

    def add_step(self, node: Node, plan: Plan, tensors: Numbers, depth: int) -> None:
        """Append a step and tell its values of it."""
        net = self.net
        number = len(net.tensors)
        net.tensors.append(tensors)
        net.plans.append(plan)
        net.nodes.append(node)
        net.depths.append(depth)
        adjacent = net.adjacent
        for v in tensors:
            steps = adjacent[v]
            if not steps or steps[-1] != number:
                steps.append(number)


def _names(node: Node) -> bool:
    """Whether a node is an annotation that leaves nothing open."""
    return annotates(node) and (said := node.results[0].type.sharding) is not None and not said.is_open


def _node_plan(node: Node) -> Plan | None:
    """The plan of a node's rule, or None if it has none or no step in it tells anything."""
    rule = node_rule(node)
    plan = None if rule is None else plan_of(rule)
    return plan if plan is not None and plan.visits else None
