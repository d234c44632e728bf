"""Movements of movements become one: a slice of a padded tensor is one window of the tensor (paper section 4.3).

Each op that moves data reads its operands at fixed positions. Where a value that only such ops read is itself a moved
one, they can read what it was made of instead: halos are then exchanged once, and an intermediate tensor whose size
does not divide like its neighbours' costs nothing. A rotation along a split dimension (two parts of one tensor put
together in the other order) becomes a choice between two windows of it, laid out alike.

Only unit strides take part. Shardings are those that propagation gave; this runs at the start of the `explicit` stage.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, Dense, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import OpDef, Trait, node_rule
from gspmd.ir.rewrite import alive
from gspmd.ir.rule import Access
from gspmd.ir.sharding import Sharding
from gspmd.ops.elementwise import COMPARE, SELECT
from gspmd.ops.elementwise.arithmetic import CompareAttrs
from gspmd.ops.layout import BROADCAST_IN_DIM, BroadcastInDimAttrs
from gspmd.ops.literal import CONSTANT, IOTA, ConstantAttrs, IotaAttrs
from gspmd.ops.moving import PAD, SLICE, PadAttrs, SliceAttrs

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Results in the box [low, high) are read from `root`, each `shift` further on."""

    root: Value
    shift: Ints
    low: Ints
    high: Ints

    @property
    def volume(self) -> int:
        """Elements of the box."""
        return prod(max(0, end - start) for start, end in zip(self.low, self.high, strict=True))


@dataclass(frozen=True, slots=True)
class _Form:
    """A value as disjoint pieces, and the scalar elsewhere (None: the pieces are all of it)."""

    pieces: tuple[_Piece, ...]
    fill: Value | None


def compose_moves(region: Region) -> Region:
    """The region with chains of movements merged, in inner regions too."""
    return _Composer(region).run()


class _Composer:
    """Rewrites one region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.builder = Builder()
        self.now: dict[Value, Value] = {}
        self.literals: dict[Value, Node] = {}
        self.direct: dict[Node, _Form] = {}
        users: dict[Value, list[Node]] = defaultdict(list)
        for node in region.nodes:
            if node.op.has(Trait.MOVES) and (form := _direct_form(node)) is not None:
                self.direct[node] = form
            if node.op.has(Trait.LITERAL):
                self.literals[node.result] = node
            for value in dict.fromkeys(node.operands):
                users[value].append(node)
        outputs = set(region.results)
        # Values that nothing but movements reads: they can go.
        self.inner = {
            node.result
            for node in self.direct
            if node.result not in outputs and all(user in self.direct for user in users[node.result])
        }
        self.forms: dict[Value, _Form] = {}

    def run(self) -> Region:
        """The region, rebuilt if anything changes."""
        chained = any(p.root in self.inner for form in self.direct.values() for p in form.pieces)
        if not chained and not any(node.regions for node in self.region.nodes):
            return self.region
        self.builder.params.extend(self.region.params)
        for node in self.region.nodes:
            if node not in self.direct or not self._composed(node):
                operands = tuple(self.now.get(v, v) for v in node.operands)
                laid_out = node.op.flow is not None or node.op.crossings is not None
                regions = tuple(map(compose_moves, node.regions)) if laid_out else node.regions
                self.builder.nodes.append(Node(node.op, operands, node.results, node.attrs, regions, node.loc))
        results = tuple(self.now.get(v, v) for v in self.region.results)
        return Region(self.region.params, alive(self.builder.nodes, results), results)

    def _composed(self, node: Node) -> bool:
        """Write a movement in terms of what its operands were made of; whether that was possible."""
        direct = self.direct[node]
        form = self._substituted(direct)
        self.forms[node.result] = direct
        if form is None or form == direct:
            return False
        self.builder.loc = node.loc
        made = self._window(node.result, form) or self._rotation(node.result, form)
        if made is None:
            return False
        self.forms[node.result] = form
        self.now[node.result] = made
        return True

    def _substituted(self, form: _Form) -> _Form | None:
        """The form with its inner roots replaced by their own pieces; None if two different fills would meet."""
        pieces: list[_Piece] = []
        fills = [form.fill]
        for piece in form.pieces:
            inner = self.forms.get(piece.root) if piece.root in self.inner else None
            if inner is None:
                pieces.append(piece)
                continue
            found = [_through(piece, p) for p in inner.pieces]
            found = [p for p in found if p.volume]
            if sum(p.volume for p in found) < piece.volume:
                fills.append(inner.fill)
            pieces += found
        known = [f for f in fills if f is not None]
        if any(not self._alike(f, known[0]) for f in known[1:]):
            return None
        return _Form(tuple(pieces), known[0] if known else None)

    def _alike(self, a: Value, b: Value) -> bool:
        """Whether two scalars are known to be the same."""
        p, q = self.literals.get(a), self.literals.get(b)
        return a is b or (p is not None and q is not None and p.op is q.op and p.attrs == q.attrs)

    def _window(self, result: Value, form: _Form) -> Value | None:
        """One piece as far as its root reaches, and fill around it: a slice or a pad."""
        if len(form.pieces) != 1:
            return None
        (piece,) = form.pieces
        shape, held = result.type.shape, piece.root.type.shape
        if (piece.low, piece.high) != _reach(piece.shift, held, shape):
            return None
        behind = tuple(n - m + a for n, m, a in zip(shape, held, piece.shift, strict=True))
        if all(a >= 0 for a in piece.shift) and all(b <= 0 for b in behind):
            limit = tuple(a + n for a, n in zip(piece.shift, shape, strict=True))
            attrs: Attrs = SliceAttrs(piece.shift, limit, (1,) * len(shape))
            return self._emit(SLICE, (piece.root,), attrs, result, result.name)
        if form.fill is None:
            return None
        return self._emit(PAD, (piece.root, form.fill), _pad(piece.shift, behind), result, result.name)

    def _rotation(self, result: Value, form: _Form) -> Value | None:
        """Two parts of one tensor that follow each other along a split dimension: a choice between two windows."""
        if len(form.pieces) != 2 or form.fill is not None:
            return None
        a, b = sorted(form.pieces, key=lambda p: p.low)
        shape = result.type.shape
        apart = [d for d in range(len(shape)) if (a.low[d], a.high[d]) != (b.low[d], b.high[d])]
        if a.root is not b.root or len(apart) != 1 or a.volume + b.volume != prod(shape):
            return None
        (d,) = apart
        if a.high[d] != b.low[d] or not result.type.placed.dims[d].axes or a.root.type.shape != shape:
            return None
        zero = self._scalar(np.zeros((), result.type.dtype), result)
        windows = [self._emit(PAD, (p.root, zero), _pad(p.shift, p.shift), result, "") for p in (a, b)]
        first = self._below(result, d, a.high[d])
        return self._emit(SELECT, (first, *windows), Attrs(), result, result.name)

    def _below(self, like: Value, dim: int, bound: int) -> Value:
        """Where the index along a dimension is less than a bound, in a value's shape and layout."""
        i32, shape = as_dtype("i32"), ResultShape(like.type.shape)
        place = self._emit(IOTA, (), IotaAttrs(shape, i32, dim), like, "")
        limit = self._scalar(np.asarray(bound, i32), like)
        limits = self._emit(BROADCAST_IN_DIM, (limit,), BroadcastInDimAttrs(shape, ()), like, "")
        return self._emit(COMPARE, (place, limits), CompareAttrs("LT"), like, "")

    def _scalar(self, array: Any, like: Value) -> Value:
        attrs = ConstantAttrs(Dense(array))
        types = CONSTANT.infer((), attrs, ())
        whole = Sharding(like.type.placed.mesh, (), manual=like.type.placed.manual)
        types = [t.with_sharding(whole) for t in types]
        return self.builder.append(CONSTANT, (), attrs, types, loc=self.builder.loc)[0]

    def _emit(self, op: OpDef[Any], operands: tuple[Value, ...], attrs: Attrs, like: Value, name: str) -> Value:
        """Append an op whose result is laid out as a value of its shape is."""
        held = tuple(self.now.get(v, v) for v in operands)
        types = op.infer(tuple(v.type for v in held), attrs, ())
        laid_out = [t.bare.with_sharding(like.type.placed) for t in types]
        return self.builder.append(op, held, attrs, laid_out, loc=self.builder.loc, name=name)[0]


def _direct_form(node: Node) -> _Form | None:
    """The pieces of one movement as its rule has them; None unless it reads every dimension at unit strides."""
    rule = node_rule(node)
    if rule is None or len(node.results) != 1 or node.result.type.sharding is None:
        return None
    shape, home = node.result.type.shape, rule.results[0]
    pieces: list[_Piece] = []
    fills = {d.fill_operand for t in rule.operands for d in t if isinstance(d, Access)} - {None}
    for number, (tensor, root) in enumerate(zip(rule.operands, node.operands, strict=True)):
        if number in fills or (root.type.rank == 0 and shape):
            continue
        shift: list[int] = []
        for d, dim in enumerate(tensor):
            access = dim if isinstance(dim, Access) else None
            factor = (access.factor,) if access else dim
            if factor != home[d] or (access and (access.mul, access.div, access.kernel_factor) != (1, 1, None)):
                return None
            shift.append(access.add if access else 0)
        low, high = _reach(tuple(shift), root.type.shape, shape)
        pieces.append(_Piece(root, tuple(shift), low, high))
    covered = sum(p.volume for p in pieces) == prod(shape)
    number = next((f for f in fills if f is not None), None)
    if not covered and number is None:
        return None
    return _Form(tuple(pieces), None if covered or number is None else node.operands[number])


def _reach(shift: Ints, held: Ints, shape: Ints) -> tuple[Ints, Ints]:
    """The results that a tensor of shape `held` can give at a shift: the box [low, high)."""
    low = tuple(max(0, -a) for a in shift)
    return low, tuple(min(n, m - a) for n, m, a in zip(shape, held, shift, strict=True))


def _through(outer: _Piece, inner: _Piece) -> _Piece:
    """What an outer piece reads of an inner one."""
    low = tuple(max(n, m - a) for n, m, a in zip(outer.low, inner.low, outer.shift, strict=True))
    high = tuple(min(n, m - a) for n, m, a in zip(outer.high, inner.high, outer.shift, strict=True))
    return _Piece(inner.root, tuple(a + b for a, b in zip(outer.shift, inner.shift, strict=True)), low, high)


def _pad(shift: Ints, behind: Ints) -> PadAttrs:
    return PadAttrs(tuple(-a for a in shift), behind, (0,) * len(shift))
