"""The `explicit` stage: every op's operands and results agree with its rule; what does not fit passes a `reshard`.

Ops are visited in program order. A value may be held otherwise than propagation says only in one respect: a sum stays
unreduced as long as its one user is linear in it and no larger, so that several sums become one and a sum that is
sliced becomes a reduce-scatter. A reshard that was issued once serves every later user.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.opdef import Trait, node_rule
from gspmd.ir.rule import Rule
from gspmd.ir.sharding import Sharding
from gspmd.ops.collective import RESHARD, ReshardAttrs
from gspmd.partitioner.compose import compose_moves
from gspmd.partitioner.strategy import Choice, choices


def make_explicit(program: Program) -> Program:
    """Choose a partitioning for every op and make the reshards between them explicit; propagated -> explicit."""
    composed = compose_moves(program.body)
    body = _Rewriter(composed).run(tuple(v.type.sharding for v in composed.params))
    return Program.of(program.name, body, program.mesh, "explicit")


class _Rewriter:
    """Rewrites one region; inner regions get rewriters of their own."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.builder = Builder()
        self.now: dict[Value, Value] = {}  # how a value is held
        self.resharded: dict[tuple[Value, Sharding], Value] = {}
        self.outputs = set(region.results)
        self.rules: dict[Node, Rule | None] = {}
        self.users: dict[Value, list[Node]] = defaultdict(list)
        self.siblings: dict[Value, Counter[int]] = defaultdict(Counter)  # how many users of a value have one rule
        for node in region.nodes:
            rule = self.rules[node] = node_rule(node)
            for value in dict.fromkeys(node.operands):
                self.users[value].append(node)
                self.siblings[value][id(rule)] += 1

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
        if _annotates(node):
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
        if found is None:
            types = (now.type.with_sharding(need),)
            (found,) = self.builder.append(RESHARD, (now,), ReshardAttrs(need), types, (), loc, value.name)
            self.resharded[value, need] = found
        return found

    def _ruled(self, node: Node, rule: Rule) -> None:
        operands = tuple([self.now[v].type for v in node.operands])
        choice = self._best(node, rule, choices(rule, operands, tuple([v.type for v in node.results])))
        held = tuple([self._held(v, need, node.loc) for v, need in zip(node.operands, choice.needs, strict=True)])
        pairs = zip(node.results, choice.yields, strict=True)
        results = tuple([Value(v.type.with_sharding(s), v.name) for v, s in pairs])
        self.builder.nodes.append(Node(node.op, held, results, node.attrs, node.regions, node.loc))
        for value, made in zip(node.results, results, strict=True):
            self.now[value] = made
            if not self._stays_unreduced(value, made):
                self.now[value] = self._held(value, value.type.placed, node.loc)

    def _best(self, node: Node, rule: Rule, options: tuple[Choice, ...]) -> Choice:
        """The cheapest choice here: a reshard that exists is free, one that siblings will want is shared.

        A few percent less work, as ragged shards of another dimension may promise, buys no communication.
        """
        enough = min(o.work for o in options) * 5 // 4

        def price(choice: Choice) -> tuple[bool, float, int, int]:
            cost = choice.home + choice.inside
            too_much = choice.work > enough
            if not any(choice.bring):
                return too_much, cost, choice.work, -choice.unreduced_parts
            seen: set[tuple[Value, Sharding]] = set()
            for value, need, bring in zip(node.operands, choice.needs, choice.bring, strict=True):
                key = (value, need)
                if bring and key not in seen and key not in self.resharded:
                    seen.add(key)
                    cost += bring / max(self.siblings[value][id(rule)], 1)
            return too_much, cost, choice.work, -choice.unreduced_parts

        return options[0] if len(options) == 1 else min(options, key=price)

    def _stays_unreduced(self, value: Value, made: Value) -> bool:
        """Whether a sum is passed on unreduced: to one user, linear in it, whose result is no larger."""
        sharding = made.type.placed
        if not sharding.unreduced:
            return sharding == value.type.placed
        users = self.users[value]
        if sharding.monoid != "add" or value in self.outputs or len(users) != 1:
            return False
        user, rule = users[0], self.rules[users[0]]
        if rule is None or not any(
            any(user.operands[i] is value for i in group) and all(self._joins(user.operands[i], value) for i in group)
            for group in rule.linear
        ):
            return False
        return user.results[0].type.nbytes <= value.type.nbytes

    def _joins(self, other: Value, value: Value) -> bool:
        """Whether another operand of a linear group may be unreduced as well."""
        if other is value:
            return True
        now = self.now.get(other)
        return now is None or bool(now.type.placed.unreduced)

    def _flow(self, node: Node) -> None:
        """Control flow: the values of a data-flow edge are all held as its first member is in the outer program."""
        assert node.op.flow is not None, f"{node.op.name} has neither a rule nor a flow"
        home: dict[Value, Sharding] = {}
        places = _apart(node)
        for group in node.op.flow(places):
            outer = next((v for v in group if v in node.results), group[0])
            home.update(dict.fromkeys(group, outer.type.placed))
        pairs = zip(node.operands, places.operands, strict=True)
        operands = tuple(self._held(v, home.get(place, v.type.placed.reduced()), node.loc) for v, place in pairs)
        regions = tuple(
            _Rewriter(r).run(
                tuple(home.get(p, p.type.placed) for p in r.params),
                tuple(home.get(place, _whole(v)) for v, place in zip(r.results, apart.results, strict=True)),
            )
            for r, apart in zip(node.regions, places.regions, strict=True)
        )
        types = tuple(v.type.with_sharding(home.get(v, v.type.placed)) for v in node.results)
        made = self.builder.append(node.op, operands, node.attrs, types, regions, node.loc)
        for value, result in zip(node.results, made, strict=True):
            self.now[value] = result
            self.now[value] = self._held(value, value.type.placed, node.loc)


def _apart(node: Node) -> Node:
    """The node with a value of its own at every place: one that stands at two is held at each as its group is."""
    regions = tuple(replace(r, results=tuple(Value(v.type) for v in r.results)) for r in node.regions)
    return Node(node.op, tuple(Value(v.type) for v in node.operands), node.results, node.attrs, regions, node.loc)


def _annotates(node: Node) -> bool:
    """Whether a node only says how its operand is to be sharded."""
    if Trait.IDENTITY not in node.op.traits:
        return False
    types = list(node.op.infer(tuple([v.type.bare for v in node.operands]), node.attrs, node.regions))
    return len(types) == 1 and types[0].sharding is not None


def _whole(value: Value) -> Sharding:
    return Sharding.replicate(value.type.placed.mesh, value.type.rank)
