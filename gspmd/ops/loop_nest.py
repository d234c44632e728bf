"""How the values of a region lie in one nest of loops, read off the nodes' factor rules.

A node can be fused if its op has a scalar form (`OpDef.fast`) and its rule ties every dimension to at most one factor,
which is passed through or reduced. The nest's loops are the dimensions, those of size 1 left out, of the widest value;
every other value lies along some of them, in order. `outer` of them run over rows, the others over the elements of a
row: each value then is one number a row or a number for each element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Node, Value
from gspmd.ir.memo import memo_by_attrs
from gspmd.ir.opdef import OpDef, Trait, Types, rule_of
from gspmd.ir.rule import DimMap, Rule
from gspmd.ir.types import TensorType

# The loop that each dimension of a value runs along; -1 for dimensions of size 1.
Place = tuple[int, ...]
ALONE = -1


@dataclass(frozen=True, slots=True, eq=False)  # equal nodes share an object, but for literals
class Form:
    """A node as loops see it: its scalar expression, and the factor of each dimension of each operand and the result.

    `monoid` is what the factors that are not in the result are combined by; None if there are none. `literal` marks
    constants of one element, whose expression is their value. `position` is the factor whose index is the argument of
    an expression without operands; ALONE if there is none.
    """

    template: str
    sizes: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    monoid: str | None = None
    literal: bool = False
    position: int = ALONE

    @property
    def sourceless(self) -> bool:
        """Whether no memory is read: constants and indices."""
        return not self.operands

    @property
    def copies(self) -> bool:
        """Whether elements only move: the node is an index map, which costs nothing inside a kernel."""
        return self.sourceless or (self.template == "{0}" and self.monoid is None)


def form_of(node: Node) -> Form | None:
    """The form of a node, None if it cannot be part of a kernel."""
    if node.regions or len(node.results) != 1:
        return None
    operands = tuple([v.type for v in node.operands])
    return _form(node.op, operands, node.result.type, node.attrs)


@memo_by_attrs(maxsize=1 << 15)
def _form(op: OpDef[Any], operands: Types, result: TensorType, attrs: Attrs) -> Form | None:
    if op.has(Trait.LITERAL):
        text = _literal(op, result, attrs)
        return None if text is None else Form(text, (), (), (ALONE,) * result.rank, literal=True)
    template = None if op.fast is None else op.fast(operands, attrs)
    rule = rule_of(op, operands, (result,), attrs)
    if template is None or rule is None or result.dtype.kind not in "biuf":
        return None
    maps = [_single_factors(rule, t) for t in rule.tensors]
    known = [m for m in maps if m is not None]
    if len(known) < len(maps):
        return None
    used = {f for m in known for f in m if f >= 0}
    gone = used - set(known[-1])
    monoids = {rule.factors[f].monoid for f in gone}
    positions = [f for f in used if rule.factors[f].position]
    if any(rule.factors[f].kind != ("reduce" if f in gone else "pass") for f in used):
        return None
    if len(monoids) > 1 or (gone and len(operands) > 1) or len(positions) != (0 if operands else 1):
        return None
    sizes = tuple(f.size for f in rule.factors)
    at = positions[0] if positions else ALONE
    return Form(template, sizes, tuple(known[:-1]), known[-1], next(iter(monoids), None), position=at)


def _literal(op: OpDef[Any], result: TensorType, attrs: Attrs) -> str | None:
    """The value of a constant of one element as source text."""
    if result.size != 1 or result.dtype.kind not in "biuf" or op.kernel is None:
        return None
    made: Any = op.kernel(attrs)
    value = made.reshape(-1)[0].item()
    if result.dtype.kind == "b":
        return repr(bool(value))
    if value != value:
        # Bit by bit: by sign and payload of a NaN an order over all floats places it first or last.
        bits = f"int{8 * result.dtype.itemsize}"
        return f"np.{bits}({made.reshape(-1).view(bits)[0]}).view(np.{result.dtype.name})"
    spelled = {inf: "np.inf", -inf: "-np.inf"}.get(value, repr(value))
    return f"np.{result.dtype.name}({spelled})"


def _single_factors(rule: Rule, dims: Sequence[DimMap]) -> tuple[int, ...] | None:
    """Each dimension's only factor (ALONE for size 1), None if one is an access or a product."""
    out: list[int] = []
    for dim in dims:
        if not isinstance(dim, tuple):
            return None
        factors = [f for f in dim if rule.factors[f].size != 1]
        if len(factors) > 1:
            return None
        out.append(factors[0] if factors else ALONE)
    return tuple(out)


class Nest:
    """The loops' sizes, and where the values of the nodes added so far lie."""

    __slots__ = ("loops", "places")

    def __init__(self, loops: tuple[int, ...]) -> None:
        self.loops = loops
        self.places: dict[Value, Place] = {}

    def add(self, node: Node, form: Form) -> bool:
        """Place the values of a node; False, with nothing changed, if they do not lie along the loops."""
        if form.literal:
            self.places[node.result] = form.result
            return True
        values = (*node.operands, node.result)
        found = _places(self.loops, form, tuple([self.places.get(v) for v in values]))
        if found is None:
            return False
        self.places.update(zip(values, found, strict=True))
        return True


@lru_cache(maxsize=1 << 15)
def _places(loops: tuple[int, ...], form: Form, known: tuple[Place | None, ...]) -> tuple[Place, ...] | None:
    """Where the operands and the result of a form lie, given where some of them do; None if not along the loops."""
    tensors = (*form.operands, form.result)
    loop: dict[int, int] = {}
    for factors, place in zip(tensors, known, strict=True):
        for f, at in zip(factors, place, strict=True) if place is not None else ():
            if f >= 0 and loop.setdefault(f, at) != at:
                return None
    widest = max(tensors, key=lambda t: sum(f >= 0 for f in t))
    if not _fill(loops, loop, widest, form.sizes):
        return None
    placed: list[Place] = []
    for factors in tensors:
        place = tuple([loop.get(f, -2) if f >= 0 else ALONE for f in factors])
        along = [d for d in place if d != ALONE]
        if -2 in along or any(a >= b for a, b in pairwise(along)):
            return None
        placed.append(place)
    return tuple(placed)


def _fill(loops: tuple[int, ...], loop: dict[int, int], factors: Sequence[int], sizes: Sequence[int]) -> bool:
    """Give the widest tensor's factors that are still free the loops that are left, last ones first."""
    limit = len(loops)
    order = [f for f in factors if f >= 0]
    for k in range(len(order) - 1, -1, -1):
        f = order[k]
        at = loop.get(f)
        if at is None:
            before = max((loop[g] for g in order[:k] if g in loop), default=-1)
            at = next((d for d in range(limit - 1, before, -1) if loops[d] == sizes[f]), -1)
            if at < 0:
                return False
            loop[f] = at
        elif at >= limit:
            return False
        limit = at
    return True


def loops_of(nodes: Iterable[Node]) -> tuple[int, ...]:
    """The loops of a nest for some nodes: the dimensions of their widest value."""
    widest: tuple[int, ...] = ()
    for node in nodes:
        for value in (*node.operands, *node.results):
            if len(value.type.shape) > len(widest):
                shape = tuple([n for n in value.type.shape if n != 1])
                widest = shape if len(shape) > len(widest) else widest
    return widest


def build_nest(nodes: Sequence[Node], loops: tuple[int, ...] | None = None) -> Nest | None:
    """The nest of some nodes, None if they do not fit into one.

    Nodes with a tensor along all loops come first, then their neighbours, so that no place is guessed that is known.
    """
    nest = Nest(loops_of(nodes) if loops is None else loops)
    rank = len(nest.loops)
    waiting: list[tuple[Node, Form]] = []
    for node in nodes:
        form = form_of(node)
        if form is None:
            return None
        if any(sum(n != 1 for n in v.type.shape) == rank for v in (*node.operands, *node.results)):
            if not nest.add(node, form):
                return None
        else:
            waiting.append((node, form))
    while waiting:
        ready = [w for w in waiting if any(v in nest.places for v in (*w[0].operands, w[0].result))] or waiting[:1]
        for node, form in ready:
            if not nest.add(node, form):
                return None
        done = {node for node, _ in ready}
        waiting = [w for w in waiting if w[0] not in done]
    return nest


@dataclass(frozen=True, slots=True)
class Split:
    """Where a nest may be cut into rows and elements: at `fixed`, or at `least` or any later loop if that is None."""

    least: int = 0
    fixed: int | None = None

    @property
    def outer(self) -> int:
        """The number of outer loops that is taken."""
        return self.least if self.fixed is None else self.fixed

    def meet(self, other: Split) -> Split | None:
        """What both allow, None if nothing."""
        fixed = self.fixed if other.fixed is None else other.fixed
        if self.fixed is not None and self.fixed != fixed:
            return None
        least = max(self.least, other.least)
        return None if fixed is not None and fixed < least else Split(least, fixed)


def operand_split(place: Place, rank: int) -> Split:
    """What an operand asks for: it lies along all inner loops or along none."""
    along = [d in place for d in range(rank)]
    differ = [d for d in range(rank - 1) if along[d] != along[-1]]
    return Split(differ[-1] + 1 if differ else 0)


def result_split(operand: Place, result: Place, folds: bool, rank: int) -> Split | None:
    """What a computed value asks for, from where it and its operand lie; None if no kernel can make it.

    A value is computed for each element or for each row. A reduction runs along the rows' elements, along all rows, or
    along everything.
    """
    kept = tuple(d for d in result if d != ALONE)
    if not folds:
        if len(kept) == rank:
            return Split()
        return Split(0, len(kept)) if kept and kept == tuple(range(len(kept))) else None
    source = tuple(d for d in operand if d != ALONE)
    whole = len(source) == rank
    if not whole and source != tuple(range(len(source))):
        return None
    if not kept:
        return Split() if whole else Split(0, len(source))
    if not whole:
        return None
    if kept == tuple(range(len(kept))):
        return Split(0, len(kept))
    lost = rank - len(kept)
    return Split(0, lost) if kept == tuple(range(lost, rank)) else None


def index_split(place: Place, form: Form, rank: int) -> Split:
    """What a node that counts asks for: its loop runs outside, or is the only one inside."""
    d = place[form.result.index(form.position)] if form.position != ALONE else ALONE
    return Split() if d == ALONE else Split(min(d + 1, rank - 1))


def ends(result: Place) -> bool:
    """Whether a reduction to there is complete only after all rows, so that nothing in the same kernel can read it."""
    kept = tuple(d for d in result if d != ALONE)
    return not kept or kept != tuple(range(len(kept)))
