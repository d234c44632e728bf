"""Small stand-ins for the passes, so that one op's record can be tried alone: run, differentiate, localise."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import OpDef, node_rule
from gspmd.ir.rule import Rule, dim_factors
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import combine
from gspmd.ops.elementwise import ADD, COMPARE, MULTIPLY, SELECT
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import IOTA, full
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker
from tests.poison import poison


def run(region: Region, arrays: Sequence[Any]) -> list[Any]:
    """The region's results on one device."""
    walker = Walker(LockstepTransport(Mesh({"one": 1})))
    return [shards[0] for shards in walker.run(region, [[np.asarray(x)] for x in arrays])]


def node_of(op: OpDef[Any], types: Sequence[TensorType], attrs: Attrs, regions: tuple[Region, ...] = ()) -> Node:
    builder = Builder()
    op.emit(builder, [builder.param(t) for t in types], attrs, regions)
    return builder.nodes[0]


def type_of(x: Any) -> TensorType:
    return TensorType(np.asarray(x).dtype, np.shape(x))


class Pullback:
    """A `Gradient`: reverse accumulation over one region."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def zeros(self, type_: TensorType) -> Value:
        return full(self.builder, 0, type_.dtype, type_.shape)

    def region_vjp(self, region: Region, wanted: Sequence[bool]) -> Region:
        builder = Builder()
        mine = Pullback(builder)
        held = {p: builder.param(p.type) for p in region.params}
        given = [builder.param(r.type) for r in region.results]
        nodes: list[Node] = []
        for node in region.nodes:
            operands = tuple(held[v] for v in node.operands)
            made = Node(node.op, operands, node.results, node.attrs, node.regions, node.loc)
            if node.op.save is not None:
                results, residuals = node.op.save(mine, made)
                made = Node(node.op, operands, (*results, *residuals), node.attrs, node.regions, node.loc)
            else:
                results = builder.append(node.op, operands, node.attrs, [v.type for v in node.results], node.regions)
                made = Node(node.op, operands, results, node.attrs, node.regions, node.loc)
            held.update(zip(node.results, made.results, strict=False))
            nodes.append(made)
        total: dict[Value, Value] = {}

        def receive(value: Value, ct: Value | None) -> None:
            if ct is not None and value.type.dtype.kind in "fc":
                total[value] = ADD(builder, total[value], ct) if value in total else ct

        for result, ct in zip(region.results, given, strict=True):
            receive(held[result], ct)
        for node in reversed(nodes):
            if any(v in total for v in node.results) and node.operands:
                assert node.op.vjp is not None, node.op.name
                cts = node.op.vjp(mine, node, [total.get(v) for v in node.results])
                for value, ct in zip(node.operands, cts, strict=True):
                    receive(value, ct)
        out = [total.get(held[p]) or mine.zeros(p.type) for p, w in zip(region.params, wanted, strict=True) if w]
        return builder.region(out)


def pull(node: Node, arrays: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The operands' cotangents, None where there is none."""
    builder = Builder()
    operands = [builder.param(type_of(x)) for x in arrays]
    results = node.op.emit(builder, operands, node.attrs, node.regions, node.loc)
    cts = [builder.param(v.type) for v in results]
    assert node.op.vjp is not None
    found = list(node.op.vjp(Pullback(builder), builder.nodes[-1], cts))
    values = iter(run(builder.region([v for v in found if v is not None]), [*arrays, *cotangents]))
    return [None if v is None else next(values) for v in found]


def gradient_of(region: Region, arrays: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of all parameters of a region."""
    pulled = Pullback(Builder()).region_vjp(region, [True] * len(region.params))
    return run(pulled, [*arrays, *cotangents])


# -- localising one node ---------------------------------------------------------------------------------------------


class OneNode:
    """A `Localizer` of one node on a mesh; the device's digits are parameters of the program."""

    def __init__(self, node: Node, mesh: Mesh, split: Mapping[int, str]) -> None:
        rule = node_rule(node)
        assert rule is not None
        self.builder, self.node, self.mesh = Builder(), node, mesh
        self.rule: Rule = rule
        self.split = split
        self.digits = {name: self.builder.param(TensorType("i32", ()), name) for name in mesh.axis_names}

    def parts(self, factor: int) -> int:
        return prod(a.size for a in self.axes_of(factor))

    def axes_of(self, factor: int) -> Axes:
        return (self.mesh.axis(self.split[factor]),) if factor in self.split else ()

    def index(self, axes: Axes) -> Value:
        total = full(self.builder, 0, "i32", ())
        for axis in axes:
            scaled = MULTIPLY(self.builder, total, full(self.builder, axis.size, "i32", ()))
            total = ADD(self.builder, scaled, self.digits[axis.name])
        return total

    def chunk(self, factor: int) -> int:
        return -(-self.rule.factors[factor].size // self.parts(factor))

    def offset(self, factor: int) -> Value:
        chunk = full(self.builder, self.chunk(factor), "i32", ())
        return MULTIPLY(self.builder, self.index(self.axes_of(factor)), chunk)

    def positions(self, factor: int, shape: Sequence[int], dim: int) -> Value:
        b, whole = self.builder, ResultShape(shape)
        count = IOTA(b, shape=whole, dtype=np.dtype(np.int32), dimension=dim)
        return ADD(b, count, BROADCAST_IN_DIM(b, self.offset(factor), shape=whole, dims=()))

    def mask(self, value: Value, dim: int, factor: int, fill: Value) -> Value:
        b, shape = self.builder, value.type.shape
        at = self.positions(factor, shape, dim)
        real = COMPARE(b, at, full(b, self.rule.factors[factor].size, "i32", shape), direction="LT")
        return SELECT(b, real, value, BROADCAST_IN_DIM(b, fill, shape=ResultShape(shape), dims=()))

    def all_gather(self, value: Value, dim: int, axes: Axes) -> Value:
        raise AssertionError("no op here gathers")

    def local(self, type_: TensorType, dims: Any) -> TensorType:
        return type_.with_shape([prod(self.chunk(f) for f in dim) for dim in dims])

    def local_result(self, number: int = 0) -> TensorType:
        return self.local(self.node.results[number].type, self.rule.results[number])


def localized(node: Node, arrays: Sequence[Any], split: Mapping[int, int], plausible: bool = False) -> Any:
    """Run a node's local body on every device and put the whole result together.

    `split` says into how many parts each factor is split, each over an axis of its own. Padding holds poison, or in
    integers a `plausible` value: an index into padding must not be taken for a real one.
    """
    mesh = Mesh({f"f{f}": n for f, n in split.items()} or {"one": 1})
    ctx = OneNode(node, mesh, {f: f"f{f}" for f in split})
    locals_ = [
        ctx.builder.param(ctx.local(v.type, dims)) for v, dims in zip(node.operands, ctx.rule.operands, strict=True)
    ]
    assert node.op.localize is not None
    (result,) = node.op.localize(ctx, locals_)
    assert result.type == ctx.local_result(), (result.type, ctx.local_result())
    region = Region((*ctx.digits.values(), *locals_), tuple(ctx.builder.nodes), (result,))
    partial = [
        f for f in split if f not in ctx.rule.result_factors() and ctx.rule.factors[f].kind in ("reduce", "lookup")
    ]
    whole: dict[tuple[int, ...], Any] = {}
    for digits in itertools.product(*(range(n) for n in (split.values() or (1,)))):
        device = dict(zip(split, digits, strict=False))
        held = [_shard(ctx, x, dims, device, plausible) for x, dims in zip(arrays, ctx.rule.operands, strict=True)]
        (out,) = run(region, [*(np.int32(d) for d in digits), *held])
        key = tuple(d for f, d in device.items() if f not in partial)
        monoid = ctx.rule.factors[partial[0]].monoid if partial else None
        assert monoid is not None or key not in whole
        whole[key] = combine(monoid or "add")(whole[key], out) if key in whole else out
    return _assemble(ctx, whole, [f for f in split if f not in partial])


def _shard(ctx: OneNode, x: Any, dims: Any, device: Mapping[int, int], plausible: bool) -> Any:
    x = np.asarray(x)
    padding = 1 if plausible and x.dtype.kind in "iu" else poison(x.dtype)
    out = np.full([prod(ctx.chunk(f) for f in dim) for dim in dims], padding).astype(x.dtype)
    source = []
    for n, (dim,) in zip(x.shape, dims, strict=True):
        start = min(device.get(dim, 0) * ctx.chunk(dim), n)
        source.append(slice(start, min(start + ctx.chunk(dim), n)))
    piece = x[tuple(source)]
    out[tuple(slice(0, n) for n in piece.shape)] = piece
    return out


def _assemble(ctx: OneNode, shards: Mapping[tuple[int, ...], Any], factors: Sequence[int]) -> Any:
    type_, dims = ctx.node.results[0].type, [dim_factors(d)[0] for d in ctx.rule.results[0]]
    out = np.empty(type_.shape, type_.dtype)
    for key, shard in shards.items():
        device = dict(zip(factors, key, strict=True))
        target, source = [], []
        for n, f in zip(type_.shape, dims, strict=True):
            start = min(device.get(f, 0) * ctx.chunk(f), n)
            size = min(ctx.chunk(f), n - start)
            target.append(slice(start, start + size))
            source.append(slice(0, size))
        out[tuple(target)] = shard[tuple(source)]
    return out
