"""Back from a collective of the optimized stage to what asked for it: the value, the op, from and to which sharding.

A collective comes from a reshard of the `explicit` stage, which an op asked for because its operand or its result is
held otherwise than it needs, or from an op's own local body (a halo, the totals of a scan). Programs that were loaded
at a local stage know no more than the user's line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gspmd.inspect.collectives import collective_nodes
from gspmd.inspect.lines import line_of
from gspmd.inspect.provenance import Pass, earlier_values, origin, origins, replayed
from gspmd.inspect.surroundings import Surroundings
from gspmd.ir.axes import Axes, difference, overlaps
from gspmd.ir.graph import Node, Program, Value
from gspmd.ir.opdef import annotates
from gspmd.ir.sharding import Sharding
from gspmd.partitioner.collectives import is_reshard

Role = Literal["operand", "result", "annotation", "handed", "inside", "manual"]
_STAGES = ("propagated", "explicit", "collectives")


@dataclass(frozen=True, slots=True)
class Cause:
    """What asked for a collective.

    `value` and `node` are those of the base program, the propagated one where there is one: the value that is moved and
    the op that asked for it. `role` says why: it is the op's operand; its result; what an annotation wants; what a
    region or the program hands out; something that the op's own body exchanges; the user's own per-device code.
    `source` and `target` are the shardings before and after, `explicit` the op as the explicit stage has it, `maker`
    the one that made the value, or the sum that it is a part of, `lines` the user's lines of both. `number` is that of
    the node of the base program at which the collective came to be, in the order of `Region.walk`.
    """

    value: Value
    node: Node | None
    number: int | None
    role: Role
    source: Sharding | None
    target: Sharding | None
    explicit: Node
    maker: Node | None
    lines: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Traced:
    """The collectives of a program traced back: `causes` in the order of `collectives_of`, and what stands for what.

    `base` is the program in whose values causes are told, `now` gives for each value of the explicit stage its own.
    """

    base: Program
    explicit: Program
    causes: tuple[Cause, ...]
    now: Mapping[Value, Value]


def trace_collectives(programs: Mapping[str, Program], passes: Mapping[str, Pass]) -> Traced | None:
    """Trace the collectives of the optimized stage back; None for a program that was loaded at a later stage.

    `passes` gives the pass that leads to each stage after `propagated`, in order.
    """
    stage = next((s for s in _STAGES if s in programs), None)
    if stage is None:
        return None
    base, names = programs[stage], list(passes)
    middle = stage if stage == "collectives" else "explicit"
    start, end = names.index(middle) + 1, names.index("optimized") + 1
    explicit = replayed(base, [passes[n] for n in names[:start]] if stage == "propagated" else [])
    optimized = replayed(explicit, [passes[n] for n in names[start:end]])
    finder = _Finder(base, explicit)
    causes = tuple(finder.cause(origin(node)) for node, _ in collective_nodes(optimized))
    return Traced(base, explicit, causes, finder.now)


class _Finder:
    """Looks up nodes and values of the base program for those of the explicit stage."""

    def __init__(self, base: Program, explicit: Program) -> None:
        self.base = list(base.body.walk())
        self.explicit = list(explicit.body.walk())
        self.now = earlier_values(explicit, base, origins(explicit))
        self.around = Surroundings.of(explicit)
        self.before = Surroundings.of(base)

    def node_of(self, node: Node) -> Node | None:
        """The node of the base program that a node of the explicit stage came from."""
        number = origin(node)
        return None if number is None else self.base[number]

    def cause(self, number: int | None) -> Cause:
        """What asked for a collective that came from a node of the explicit stage."""
        assert number is not None, "every collective comes from a node of the explicit stage"
        node = self.explicit[number]
        here = self.node_of(node)
        if not is_reshard(node):
            role: Role = "manual" if node.op.traffic is not None else "inside"
            value = (*node.operands, *node.results)[0]
            return Cause(self.now.get(value, value), here, origin(node), role, value.type.sharding, None, node, None)
        value, result = node.operands[0], node.result
        maker = self._maker(value)
        asks, role = self._asks(node, here, maker)
        combined = difference(value.type.placed.unreduced, result.type.placed.unreduced)
        said = self._said(self.now.get(value, value), result.type.placed)
        if role == "result" and said is not None and not combined:
            here, role = said, "annotation"
        maker = self._summed(maker, combined)
        holder = self.around.above.get(node)
        if here is None and holder is not None:
            here = self.node_of(holder)
        source, target = value.type.placed, result.type.placed
        there = None if maker is None else self.node_of(maker)
        lines = line_of(here), line_of(there)
        return Cause(self.now.get(value, value), here, origin(node), role, source, target, asks, maker, lines)

    def _said(self, value: Value, target: Sharding) -> Node | None:
        """The annotation that alone reads a value of the base program, if it asks for a sharding."""
        said = self.before.alone(value)
        return said if said is not None and said.result.type.sharding == target else None

    def _maker(self, value: Value) -> Node | None:
        """The node that made a value, however it has been resharded since."""
        maker = self.around.makers.get(value)
        while maker is not None and is_reshard(maker):
            maker = self.around.makers.get(maker.operands[0])
        return maker

    def _summed(self, maker: Node | None, axes: Axes) -> Node | None:
        """The node at which a sum over axes came to be, beyond those that only pass it on."""
        while maker is not None and axes and maker.op.flow is None:
            passed = (
                v for v in maker.operands if v.type.sharding is not None and overlaps(v.type.placed.unreduced, axes)
            )
            before = self._maker(value) if (value := next(passed, None)) is not None else None
            if before is None:
                break
            maker = before
        return maker

    def _asks(self, node: Node, here: Node | None, maker: Node | None) -> tuple[Node, Role]:
        """The node of the explicit stage for which a reshard is there, and what the value is to it."""
        if here is None:
            return self.around.above.get(node, node), "handed"
        if annotates(here):
            return node, "annotation"
        if maker is not None and origin(maker) == origin(node):
            return maker, "result"
        readers = self.around.readers.get(node.result, ())
        return next((n for n in readers if origin(n) == origin(node)), node), "operand"
