"""The examples of the ops as bricks: one application each, of other sizes, on operands from the program at hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Trait, node_rule
from gspmd.ir.parser import parse_example
from gspmd.ir.rule import Access, Rule
from gspmd.ir.types import TensorType
from gspmd.ops import OPS
from tests.fuzz.fit import fit
from tests.fuzz.inputs import kind_of
from tests.fuzz.layouts import one_in
from tests.fuzz.writer import Writer
from tests.ops.cases import in_double

# Ops that need a mesh of their own choice, or make no use of operands, are made elsewhere (`families`, `regions`).
ELSEWHERE = frozenset(("sharding_constraint", "sharding_group", "propagation_barrier", "manual_computation", "while"))
# Ops whose kernel is the user's own, and that no other process knows (tests/ops/test_custom.py has them).
FOREIGN = frozenset(("custom",))
EXAMPLES: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
    (name, op.examples)
    for name, op in OPS.items()
    if op.examples and not op.has(Trait.COLLECTIVE) and name not in ELSEWHERE | FOREIGN
)
_NARROW = re.compile(r"\b(f64|f32)\b")


def brick(w: Writer, name: str, examples: Sequence[str], precision: str) -> Sequence[Value]:
    """Append one application of an op, of sizes near those of an example; raises Rejected if they do not fit."""
    text = examples[w.below(len(examples))]
    try:
        node = _parsed(_in_precision(text, precision))
    except GspmdError:  # an op that does not take narrow floats
        node = _parsed(text)
    types = [v.type for v in node.operands]
    attrs = node.attrs
    if not one_in(w.rng, 4):
        types, attrs = _resized(w, node)
    operands: list[Value] = []
    for i, type_ in enumerate(types):
        operands.append(_operand(w, node, i, type_, operands))
    return w.emit(node.op, operands, attrs, tuple(copied(r) for r in node.regions))


def _in_precision(text: str, precision: str) -> str:
    """The example in f64; as it is; or with its large floats in a narrow type."""
    if precision == "f64":
        return in_double(text)
    return text if precision == "mixed" or "c64" in text or "c128" in text else _NARROW.sub(precision, text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Node:
    return parse_example(text, OPS).body.nodes[-1]


def _operand(w: Writer, node: Node, number: int, type_: TensorType, before: Sequence[Value]) -> Value:
    """A value of the program made to fit, an operand again, or a new parameter."""
    kind = kind_of(node, number)
    pool = [v for v in w.values if dtype_kind(v.type.dtype) == dtype_kind(type_.dtype)] or w.values
    fresh = kind in ("e", "s", "d", "r", "w", "q") or (kind in ("p", "u", "i") and w.below(10) < 7)
    if type_.rank == 0 and type_.size == 1 and w.below(2):
        fresh = True
    if w.outer is not None and pool and kind not in ("e", "s"):
        fresh = False
    if not fresh and pool and w.below(10) < (8 if w.outer is None else 11):
        alike = [v for v in before if v.type.bare == type_]
        if alike and one_in(w.rng, 6):
            return alike[0]
        return fit(w, w.some(pool), type_)
    return w.take(type_, kind)


# -- other sizes -------------------------------------------------------------------------------------------------------


def _resized(w: Writer, node: Node) -> tuple[list[TensorType], Attrs]:
    """Other sizes for some loop indices of the op, wherever they appear; what reads by an access changes on its own."""
    rule = node_rule(node)
    types = [v.type for v in node.operands]
    if rule is None:
        return types, node.attrs
    sizes = {i: f.size for i, f in enumerate(rule.factors)}
    square: dict[int, int] = {}  # dimensions needed whole that are alike stay alike: matrices
    for i, factor in enumerate(rule.factors):
        if w.below(2):
            drawn = _size(w, sizes[i])
            sizes[i] = square.setdefault(factor.size, drawn) if factor.kind == "whole" else drawn
        elif factor.kind == "whole":
            sizes[i] = square.setdefault(factor.size, sizes[i])
    shapes = [
        tuple(_dim(w, rule, d, sizes) for d in tensor) if len(tensor) == t.rank else t.shape
        for tensor, t in zip(rule.operands, types, strict=True)
    ]
    held = {f.name: getattr(node.attrs, f.name) for f in fields(node.attrs)}
    changed: dict[str, Any] = {}
    results = [tuple(_dim(w, rule, d, sizes) for d in tensor) for tensor in rule.results]
    for name, value in held.items():
        if isinstance(value, ResultShape) and results and len(results[-1]) == len(value):
            changed[name] = ResultShape(results[-1])
    attrs = replace(node.attrs, **changed) if changed else node.attrs
    return [t.with_shape(s) for t, s in zip(types, shapes, strict=True)], attrs


def _size(w: Writer, n: int) -> int:
    if one_in(w.rng, 40):
        return 0
    return w.pick(1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, n)


def _dim(w: Writer, rule: Rule, dim: Any, sizes: dict[int, int]) -> int:
    if isinstance(dim, Access):
        return max(dim.size + (w.below(5) - 1 if w.below(2) else 0), 1)
    size = 1
    for f in dim:
        size *= sizes[f]
    return size


def copied(region: Region) -> Region:
    """A region with values of its own."""
    now: dict[Value, Value] = {}

    def fresh(values: Sequence[Value]) -> tuple[Value, ...]:
        made = tuple(Value(v.type, v.name) for v in values)
        now.update(zip(values, made, strict=True))
        return made

    params = fresh(region.params)
    nodes: list[Node] = []
    for n in region.nodes:
        operands = tuple(now[v] for v in n.operands)
        nodes.append(Node(n.op, operands, fresh(n.results), n.attrs, tuple(map(copied, n.regions)), n.loc))
    return Region(params, tuple(nodes), tuple(now[v] for v in region.results))
