"""What a fused region computes, in the order in which a kernel does it: rows, passes over a row, values after a pass.

A kernel runs over rows. For each row it passes over the elements once, and once more after every reduction along the
row whose result is used for each element. A value that a later pass needs is kept in a buffer of one row. Reductions
along the rows, or along everything, collect in partial results that are combined in a fixed order afterwards, so that
results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gspmd.ir.errors import ExecutionError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ops.fused import FusedAttrs
from gspmd.ops.loop_nest import ALONE, Form, Nest, Place, build_nest, ends, form_of

# each: a number for each element; row: one for each row; column: one for each element of a row, from all rows;
# total: one.
Kind = Literal["each", "row", "column", "total"]


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter: the outer loops that it moves along (bytes are known when it runs), and whether along a row."""

    value: Value
    outer: tuple[int, ...]
    along_row: bool


@dataclass(frozen=True, slots=True)
class Output:
    """A result and how it comes about; `monoid` combines the partial results of columns and totals."""

    value: Value
    kind: Kind
    monoid: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One node in a kernel: the pass that it belongs to; a node of kind `row` without a fold runs before that pass."""

    node: Node
    form: Form
    kind: Kind
    at: int
    each: bool  # computed for each element (folds: reads each element)


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel: its loops, what it reads and writes, its work in order, and the values that passes leave for later."""

    loops: tuple[int, ...]
    outer: int
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    works: tuple[Work, ...]
    passes: int
    source: dict[Value, Value] = field(hash=False)
    literals: dict[Value, str] = field(hash=False)
    kept: tuple[Value, ...] = ()

    @property
    def has_partials(self) -> bool:
        """Whether some result is complete only after all rows."""
        return any(o.kind in ("column", "total") for o in self.outputs)


def plan_of(region: Region, attrs: FusedAttrs) -> Plan:
    """The plan of a fused node; raises ExecutionError if its region is no such nest."""
    nest = build_nest(region.nodes)
    if nest is None or attrs.outer >= max(1, len(nest.loops)):
        raise ExecutionError("the region of a fused node is no nest of loops", rule="fused.C4")
    return _Planner(region, nest, attrs.outer).plan()


class _Planner:
    def __init__(self, region: Region, nest: Nest, outer: int) -> None:
        self.region, self.nest, self.outer = region, nest, outer
        self.rank = len(nest.loops)
        self.source: dict[Value, Value] = {}  # of index maps, what they copy
        self.literals: dict[Value, str] = {}
        self.at: dict[Value, int] = {}  # the pass that makes a value, or before which it is there
        self.each: dict[Value, bool] = {}
        self.works: list[Work] = []
        self.kept: dict[Value, None] = {}
        self.partial: dict[Value, Output] = {}

    def plan(self) -> Plan:
        inputs = tuple(map(self._input, self.region.params))
        for node in self.region.nodes:
            form = form_of(node)
            assert form is not None
            if form.sourceless:
                self.literals[node.result] = self._text(node, form)
            elif form.copies:
                self.source[node.result] = self.root(node.operands[0])
            else:
                self._work(node, form)
        outputs = tuple(map(self._output, self.region.results))
        passes = 1 + max((w.at for w in self.works if w.each), default=0)
        return Plan(
            self.nest.loops, self.outer, inputs, outputs, tuple(self.works), passes, self.source, self.literals,
            tuple(self.kept),
        )  # fmt: skip

    def _text(self, node: Node, form: Form) -> str:
        """A constant, or the index of a loop, as source text."""
        if form.literal:
            return form.template
        d = self.nest.places[node.result][form.result.index(form.position)]
        return form.template.format(f"i{d}" if d < self.outer else "j" if self.outer else "(lo + j)")

    def root(self, value: Value) -> Value:
        """What a value is a copy of."""
        return self.source.get(value, value)

    def _along(self, place: Place) -> tuple[int, ...]:
        return tuple(d for d in place if d != ALONE)

    def _input(self, value: Value) -> Input:
        along = self._along(self.nest.places[value])
        inner = [d for d in along if d >= self.outer]
        if len(inner) not in (0, self.rank - self.outer):
            raise ExecutionError("an operand of a fused node lies along a part of a row", rule="fused.C4")
        self.at[value], self.each[value] = 0, bool(inner)
        return Input(value, tuple(d for d in along if d < self.outer), bool(inner))

    def _work(self, node: Node, form: Form) -> None:
        roots = [r for v in node.operands if (r := self.root(v)) not in self.literals]
        at = max((self.at[r] for r in roots), default=0)
        place, source = self.nest.places[node.result], self.nest.places[node.operands[0]]
        folds, along = form.monoid is not None, self._along(place)
        reads_each = len(self._along(source)) == self.rank if folds else len(along) == self.rank
        if folds and ends(place):
            kind: Kind = "column" if along else "total"
            self.partial[node.result] = Output(node.result, kind, form.monoid)
        else:
            kind = "row" if folds or not reads_each else "each"
        for r in roots:
            if reads_each and self.each[r] and self.at[r] < at and not self._is_param(r):
                self.kept[r] = None
        self.works.append(Work(node, form, kind, at, reads_each))
        self.at[node.result] = at + 1 if folds and reads_each else at
        self.each[node.result] = not folds and reads_each

    def _is_param(self, value: Value) -> bool:
        return value in self.region.params

    def _output(self, value: Value) -> Output:
        if value in self.partial:
            return self.partial[value]
        return Output(value, "each" if self.each[value] else "row")
