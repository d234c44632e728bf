"""The `explicit` stage: every op's operands and results agree with its rule; what does not fit passes a `reshard`.

Ops are visited in program order. A value may be held otherwise than propagation says only in one respect: a sum stays
unreduced as long as its one user is linear in it and no larger, so that several sums become one and a sum that is
sliced becomes a reduce-scatter. A reshard that was issued once serves every later user.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial

from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.opdef import Trait, annotates, node_rule
from gspmd.ir.rule import Rule
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.collective import RESHARD
from gspmd.ops.collective_types import ReshardAttrs
from gspmd.partitioner.compose import compose_moves
from gspmd.partitioner.loops import Rewritten, Setting, arrange, held_unreduced
from gspmd.partitioner.planner import plan
from gspmd.partitioner.strategy import LITTLE_WORK, LONG_BEFORE, WORK_PER_WIRE, Choice, choices


def make_explicit(program: Program, *, compose: bool = True) -> Program:
    """Choose a partitioning for every op and make the reshards between them explicit; propagated -> explicit.

    Chains of movements become one movement first, unless `compose` is False.
    """
    composed = compose_moves(program.body) if compose else program.body
    body = _Rewriter(composed, Setting()).run(tuple(v.type.sharding for v in composed.params))
    return Program.of(program.name, body, program.mesh, "explicit")


class _Rewriter:
    """Rewrites one region; inner regions get rewriters of their own."""

    def __init__(self, region: Region, setting: Setting) -> None:
        self.region = region
        self.setting = setting
        self.builder = Builder()
        self.now: dict[Value, Value] = {}  # how a value is held
        self.resharded: dict[tuple[Value, Sharding], Value] = {}
        self.outputs = set(region.results)
        self.makes_sums = False  # whether any op left its results to be added up
        self.rules: dict[Node, Rule | None] = {}
        self.made_anywhere: dict[Value, Node] = {}  # what a device makes of scalars, however much of it
        self.users: dict[Value, list[Node]] = defaultdict(list)
        self.siblings: dict[Value, Counter[int]] = defaultdict(Counter)  # how many users of a value are alike
        for node in region.nodes:
            rule = self.rules[node] = node_rule(node)
            if rule is not None and _of_scalars(node):
                self.made_anywhere[node.result] = node
            for value in dict.fromkeys(node.operands):
                self.users[value].append(node)
                self.siblings[value][self._likeness(node)] += 1

    def run(self, params: tuple[Sharding | None, ...], results: tuple[Sharding, ...] | None = None) -> Region:
        """The region with parameters held as given; its results as given, or as propagation says."""
        for value, sharding in zip(self.region.params, params, strict=True):
            self.now[value] = self.builder.param(value.type.with_sharding(sharding), value.name)
        for node in self.region.nodes:
            try:
                self._node(node)
            except GspmdError as error:
                raise error.at(node.loc) from None
        wanted = results or tuple(v.type.placed for v in self.region.results)
        return self.builder.region([self._held(v, s, None) for v, s in zip(self.region.results, wanted, strict=True)])

    def _node(self, node: Node) -> None:
        rule = self.rules[node]
        if annotates(node):
            # An annotation has said what it had to say: its value is held as it wishes, and the op goes.
            self.now[node.result] = self._held(node.operands[0], node.result.type.placed, node.loc)
        elif rule is not None:
            self._ruled(node, rule)
        else:
            self._flow(node)

    def _held(self, value: Value, need: Sharding, loc: Location | None) -> Value:
        """The value under a sharding, resharded if it is not held so yet."""
        now = self.now[value]
        if now.type.sharding == need:
            return now
        found = self.resharded.get((value, need))
        if found is None and value in self.made_anywhere:
            if need.unreduced and not now.type.placed.unreduced:
                now = self._held(value, need.reduced(), loc)
            elif not need.unreduced:
                found = self._made_again(self.made_anywhere[value], need)
        if found is None:
            types = (now.type.with_sharding(need),)
            (found,) = self.builder.append(RESHARD, (now,), ReshardAttrs(need), types, (), loc, value.name)
        self.resharded[value, need] = found
        return found

    def _made_again(self, node: Node, need: Sharding) -> Value | None:
        """The result of a node that needs nothing of other devices, made as it is needed; None if it cannot be."""
        rule = self.rules[node]
        assert rule is not None
        operands = tuple([self.now[v].type for v in node.operands])
        for choice in choices(rule, operands, (node.result.type.with_sharding(need),)):
            if choice.yields[0] == need and not any(choice.bring):
                held = tuple([self._held(v, s, node.loc) for v, s in zip(node.operands, choice.needs, strict=True)])
                made = Value(node.result.type.with_sharding(need), node.result.name)
                self.builder.nodes.append(Node(node.op, held, (made,), node.attrs, node.regions, node.loc))
                return made
        return None

    def _ruled(self, node: Node, rule: Rule) -> None:
        operands = tuple([self.now[v].type for v in node.operands])
        choice = self._best(node, choices(rule, operands, tuple([self._wanted(v) for v in node.results])))
        held = tuple([self._held(v, need, node.loc) for v, need in zip(node.operands, choice.needs, strict=True)])
        pairs = zip(node.results, choice.yields, strict=True)
        results = tuple([Value(v.type.with_sharding(s), v.name) for v, s in pairs])
        self.builder.nodes.append(Node(node.op, held, results, node.attrs, node.regions, node.loc))
        for value, made in zip(node.results, results, strict=True):
            self.now[value] = made
            if not self._stays_unreduced(value, made):
                self.now[value] = self._held(value, self._home(value), node.loc)

    def _home(self, value: Value) -> Sharding:
        """How a value is held: as propagation says, or, if nothing but an annotation reads it, as that says."""
        users = self.users[value]
        if len(users) == 1 and value not in self.outputs and annotates(users[0]):
            return users[0].result.type.placed
        return value.type.placed

    def _wanted(self, value: Value) -> TensorType:
        """What a result should come out as, when it is reduced."""
        sum_ = self.setting.sums.get(value)
        if sum_ is not None:
            return value.type.with_sharding(sum_.reduced())
        home = self._home(value)
        return value.type if home == value.type.sharding else value.type.with_sharding(home)

    def _best(self, node: Node, options: tuple[Choice, ...]) -> Choice:
        """The cheapest choice here: a reshard that exists is free, one that siblings will want is shared.

        A few percent less work, as ragged shards of another dimension may promise, buys no communication. More work,
        which several devices then all do, is taken on if it is little, and done before what it spares could be sent;
        much more only if it is done long before that, as in an outer product.
        """
        enough = min(o.work for o in options) * 5 // 4
        fed = node.results[0] if len(node.results) == 1 and node.results[0] in self.setting.joining else None

        def price(choice: Choice) -> tuple[bool, float, int, int]:
            cost = (choice.home if fed is None else _home_unreduced(fed, choice.yields[0])) + choice.inside
            more = max(choice.work - enough, 0)
            too_much, cost = more > LITTLE_WORK, cost + more / WORK_PER_WIRE
            if not any(choice.bring):
                return too_much, cost, choice.work, -choice.unreduced_parts
            seen: set[tuple[Value, Sharding]] = set()
            for value, need, bring in zip(node.operands, choice.needs, choice.bring, strict=True):
                key = (value, need)
                if bring and key not in seen and key not in self.resharded and value not in self.made_anywhere:
                    seen.add(key)
                    trips = self.setting.trips if value in self.setting.steady else 1
                    cost += bring / max(self.siblings[value][self._likeness(node)] * trips, 1)
            return too_much, cost, choice.work, -choice.unreduced_parts

        if len(options) == 1:
            return options[0]
        best, cheapest = min(options, key=price), min(options, key=lambda choice: price(choice)[1:])
        return cheapest if price(cheapest)[1] * LONG_BEFORE < price(best)[1] else best

    def _likeness(self, node: Node) -> int:
        """What is the same for nodes that will want an operand alike: their rule; of what moves data, the op."""
        return id(node.op if node.op.has(Trait.MOVES) else self.rules[node])

    def _stays_unreduced(self, value: Value, made: Value) -> bool:
        """Whether a sum is passed on unreduced: to one user, linear in it, whose result is no larger."""
        sharding = made.type.placed
        if sharding == (self.setting.sums.get(value) or self._home(value)):
            return True
        if not sharding.unreduced:
            return False
        users = self.users[value]
        self.makes_sums = self.makes_sums or sharding.monoid == "add"
        if sharding.monoid != "add" or value in self.outputs or len(users) != 1:
            return False
        if value in self.setting.joining:
            return True
        user, rule = users[0], self.rules[users[0]]
        if rule is None or not any(
            any(user.operands[i] is value for i in group) and all(self._joins(user.operands[i], value) for i in group)
            for group in rule.linear
        ):
            return False
        return user.results[0].type.nbytes <= value.type.nbytes

    def _joins(self, other: Value, value: Value) -> bool:
        """Whether another operand of a linear group may be unreduced as well."""
        if other is value or other in self.setting.joining:
            return True
        now = self.now.get(other)
        return now is None or bool(now.type.placed.unreduced)

    def _flow(self, node: Node) -> None:
        """Control flow: the values of a data-flow edge are all held as its first member is in the outer program.

        What need not be sent in every trip of a loop is sent before or behind it (`loops`). At the border of per-device
        code a value is held as its part inside, below the manual axes.
        """
        home: dict[Value, Sharding] = {}
        places = _apart(node)
        for crossing in () if node.op.crossings is None else node.op.crossings(places):
            inner, outer = crossing.inner, crossing.outer
            home[inner], home[outer] = crossing.homes(inner.type.placed, outer.type.placed)
        groups = () if node.op.flow is None else node.op.flow(places)
        for group in groups:
            outer = next((v for v in group if v in node.results), group[0])
            home.update(dict.fromkeys(group, outer.type.placed))
        kept, regions = arrange(node, places, groups, home, partial(_inside, node, places))
        pairs = zip(node.operands, places.operands, strict=True)
        operands = tuple(self._held(v, home.get(place, v.type.placed.reduced()), node.loc) for v, place in pairs)
        types = tuple(v.type.with_sharding(home.get(v, v.type.placed)) for v in node.results)
        made = self.builder.append(node.op, operands, node.attrs, types, regions, node.loc)
        for value, result in zip(node.results, made, strict=True):
            self.now[value] = self.now[kept[value]] if value in kept else result
            if not self._stays_unreduced(value, self.now[value]):
                self.now[value] = self._held(value, value.type.placed, node.loc)


def _home_unreduced(value: Value, made: Sharding) -> float:
    """What it costs to hold a result as propagation says, but, if it is a sum, as unreduced as it came out."""
    sums = made.monoid in (None, "add")
    home = (held_unreduced(value.type.placed, made.unreduced) if sums else None) or value.type.placed
    return plan(value.type.shape, value.type.dtype.itemsize, made, home).cost


def _inside(node: Node, places: Node, setting: Setting) -> list[Rewritten]:
    """The regions of a node rewritten."""
    found: list[Rewritten] = []
    home = setting.home
    for region, apart in zip(node.regions, places.regions, strict=True):
        rewriter = _Rewriter(region, setting)
        params = tuple(home.get(p, p.type.placed) for p in region.params)
        results = tuple(home.get(p, _whole(v)) for v, p in zip(region.results, apart.results, strict=True))
        after = rewriter.run(params, results)
        found.append(Rewritten(after, rewriter.now, list(rewriter.resharded), rewriter.makes_sums))
    return found


def _apart(node: Node) -> Node:
    """The node with a value of its own at every place: one that stands at two is held at each as its group is."""
    regions = tuple(replace(r, results=tuple(Value(v.type) for v in r.results)) for r in node.regions)
    return Node(node.op, tuple(Value(v.type) for v in node.operands), node.results, node.attrs, regions, node.loc)


def _of_scalars(node: Node) -> bool:
    """Whether a node makes one tensor of nothing but scalars."""
    return len(node.results) == 1 and node.result.type.size > 1 and all(v.type.size <= 1 for v in node.operands)


def _whole(value: Value) -> Sharding:
    return replace(Sharding.replicate(value.type.placed.mesh, value.type.rank), manual=value.type.placed.manual)
