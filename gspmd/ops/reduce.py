"""Reductions along dimensions (StableHLO: reduce): by a monoid, or by a region on several operands (arg-max)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, ResultShape, Window, WindowDim
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, Machine, OpDef, Shards, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import monoids
from gspmd.ops import layout
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.rules import copied, differentiable, require, require_count, require_dims, require_kind

CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class ReduceAttrs(Attrs):
    """The dimensions that disappear, and the monoid; `custom` means the region, which then has 2N scalar params."""

    dims: tuple[int, ...]
    monoid: str = "add"


def _reduce_infer(types: Types, attrs: ReduceAttrs, regions: tuple[Region, ...]) -> Types:
    custom = attrs.monoid == CUSTOM
    require(custom == bool(regions), "reduce.C1", f"monoid {attrs.monoid} with {len(regions)} regions")
    if not custom:
        require(attrs.monoid in monoids.MONOIDS, "reduce.C2", f"unknown monoid {attrs.monoid!r}")
        require_count("reduce", types, 1)
        require_kind("reduce", "C3", types[0], "biu" if attrs.monoid in ("and", "or", "xor") else "biufc")
        operands = types
    else:
        require(len(types) % 2 == 0 and bool(types), "reduce.C4", f"{len(types)} operands are not N arrays and N inits")
        operands = types[: len(types) // 2]
        check_region("reduce", operands, types[len(operands) :], regions[0])
    shape = operands[0].shape
    require_dims("reduce", "C5", "dims", attrs.dims, len(shape))
    for i, t in enumerate(operands):
        require(t.shape == shape, "reduce.C6", f"operand 0 has shape {list(shape)}, operand {i} {list(t.shape)}")
    kept = [n for d, n in enumerate(shape) if d not in attrs.dims]
    return tuple(t.with_shape(kept) for t in operands)


def check_region(op: str, operands: Types, inits: Types, region: Region) -> None:
    """C7: inits are scalars of the operands' dtypes. C8, C9: the region takes two and returns one of each."""
    wanted = tuple(t.with_shape(()) for t in operands)
    for i, (t, want) in enumerate(zip(inits, wanted, strict=True)):
        require(t.bare == want, f"{op}.C7", f"init {i} must be {want.text()}, but is {t.bare.text()}")
    params, results = (tuple(v.type.bare for v in vs) for vs in (region.params, region.results))
    require(params == wanted * 2, f"{op}.C8", f"the region takes {list(params)}, wanted is {list(wanted * 2)}")
    require(results == wanted, f"{op}.C9", f"the region returns {list(results)}, wanted is {list(wanted)}")


def _reduce_rule(types: Types, results: Types, attrs: ReduceAttrs) -> Rule:
    x, custom = types[0], attrs.monoid == CUSTOM
    gone = Factor(0, "select") if custom else Factor(0, "reduce", canonical_monoid(attrs.monoid, x))
    factors = tuple(Factor(n, gone.kind, gone.monoid) if d in attrs.dims else Factor(n) for d, n in enumerate(x.shape))
    whole = identity_map(x.rank)
    result = tuple((d,) for d in range(x.rank) if d not in attrs.dims)
    n = len(types) // 2 if custom else 1
    linear = ((0,),) if attrs.monoid == "add" and x.dtype.kind != "b" else ()
    return Rule(factors, (whole,) * n + ((),) * (n if custom else 0), (result,) * n, linear)


def canonical_monoid(monoid: str, x: TensorType) -> str:
    """On bool the sum is an or and the product an and."""
    return {"add": "or", "max": "or", "mul": "and", "min": "and"}.get(monoid, monoid) if x.dtype.kind == "b" else monoid


def _reduce_execute(machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
    attrs = node.attrs
    assert isinstance(attrs, ReduceAttrs)
    if attrs.monoid != CUSTOM:
        return [[monoids.reduce(attrs.monoid, x, attrs.dims) for x in arguments[0]]]
    n = len(arguments) // 2
    return _fold(machine, node.regions[0], arguments[:n], arguments[n:], attrs.dims)


def _fold(
    machine: Machine, region: Region, arrays: Sequence[Shards], inits: Sequence[Shards], dims: tuple[int, ...]
) -> list[Shards]:
    """Fold neighbours pairwise, the lower index left, until one is left; the inits come first of all.

    The combination may be regrouped, as StableHLO allows, but is never reordered.
    """
    shape = arrays[0][0].shape
    kept = [d for d in range(len(shape)) if d not in dims]
    rest = [shape[d] for d in kept]
    length = prod(shape[d] for d in dims)
    lines = [[x.transpose([*sorted(dims), *kept]).reshape([length, *rest]) for x in xs] for xs in arrays]
    firsts = [[np.broadcast_to(i, rest) for i in init] for init in inits]
    while length > 1:
        half = length // 2
        pairs = [[[x[s : 2 * half : 2] for x in xs] for xs in lines] for s in (0, 1)]
        folded = _run(machine, region, [*pairs[0], *pairs[1]], (half, *rest))
        if length % 2:
            folded = [
                [np.concatenate([f, x[-1:]]) for f, x in zip(fs, xs, strict=True)]
                for fs, xs in zip(folded, lines, strict=True)
            ]
        lines, length = folded, half + length % 2
    if length == 0:
        return firsts
    return _run(machine, region, [*firsts, *([x[0] for x in xs] for xs in lines)], tuple(rest))


def _run(machine: Machine, region: Region, arguments: Sequence[Shards], shape: Sequence[int]) -> list[Shards]:
    """The scalar region on whole arrays; what it computes from constants alone is still a scalar."""
    return [[np.broadcast_to(x, shape) for x in xs] for xs in machine.run(region, arguments)]


def _reduce_fold(types: Types, attrs: ReduceAttrs) -> Window | None:
    """The whole of the dims as one window."""
    if attrs.monoid != CUSTOM:
        return None
    return Window(WindowDim(n if d in attrs.dims else 1) for d, n in enumerate(types[0].shape))


def _reduce_kernel(attrs: ReduceAttrs, x: Array) -> Array:
    return monoids.reduce(attrs.monoid, x, attrs.dims)


def _reduce_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """Each device reduces its own, then all reduce the picks of all; an init stands where the padding is."""
    attrs, b = ctx.node.attrs, ctx.builder
    assert isinstance(attrs, ReduceAttrs)
    if attrs.monoid != CUSTOM:
        return (REDUCE(b, operands[0], dims=attrs.dims, monoid=attrs.monoid),)
    n = len(operands) // 2
    arrays, inits = list(operands[:n]), operands[n:]
    split = [d for d in sorted(attrs.dims) if ctx.axes_of(d)]
    for d in split:
        arrays = [ctx.mask(x, d, d, init) for x, init in zip(arrays, inits, strict=True)]
    picks = REDUCE.emit(b, (*arrays, *inits), attrs, (scalar_region(ctx.node.regions[0]),))
    if not split:
        return picks
    axes = tuple(a for d in split for a in ctx.axes_of(d))
    gathered: list[Value] = []
    for p in picks:
        lead = layout.RESHAPE(b, p, shape=ResultShape((1, *p.type.shape)))
        gathered.append(ctx.all_gather(lead, 0, axes))
    region = scalar_region(ctx.node.regions[0])
    return REDUCE.emit(b, (*gathered, *inits), ReduceAttrs((0,), CUSTOM), (region,))


def scalar_region(region: Region) -> Region:
    """A copy of a region on scalars, with values of its own and types without shardings."""
    copies: dict[Value, Value] = {}

    def copy(values: Sequence[Value]) -> tuple[Value, ...]:
        copies.update((v, Value(v.type.bare, v.name)) for v in values)
        return tuple(copies[v] for v in values)

    params = copy(region.params)
    nodes = tuple(
        Node(
            node.op,
            tuple(copies[v] for v in node.operands),
            copy(node.results),
            node.attrs,
            tuple(map(scalar_region, node.regions)),
            node.loc,
        )
        for node in region.nodes
    )
    return Region(params, nodes, tuple(copies[v] for v in region.results))


def _reduce_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    attrs = node.attrs
    assert isinstance(attrs, ReduceAttrs)
    if all(ct is None or not differentiable(ct.type) for ct in cotangents):
        return (None,) * len(node.operands)
    if attrs.monoid == CUSTOM:
        raise TypeRuleError(
            "a reduction by a region has no gradient", rule="reduce.D1", loc=node.loc, fix="reduce by a monoid"
        )
    (ct,), (x,) = cotangents, node.operands
    if ct is None or not differentiable(x.type):
        return (None,)
    wide = _spread(gradient, ct, x, attrs)
    if attrs.monoid == "add":
        return (wide.value,)
    value = Expression(gradient.builder, x)
    if attrs.monoid == "mul":
        return ((wide * _product_of_others(gradient, value, attrs)).value,)
    # Ties share the cotangent equally.
    hit = value.compare("EQ", _spread(gradient, node.result, x, attrs)).convert(x.type.dtype)
    count = REDUCE(gradient.builder, hit.value, dims=attrs.dims)
    return ((wide * hit / _spread(gradient, count, x, attrs)).value,)


def _product_of_others(gradient: Gradient, x: Expression, attrs: ReduceAttrs) -> Expression:
    """For each element the product of all others along the dims, without dividing by zero.

    With no zero it is the product over the element, with one it is that of the non-zeros, there alone, else zero.
    """
    b, like = gradient.builder, x.value
    zero = x.compare("EQ", x.number(0))
    safe = zero.select(x.number(1), x)
    product = _spread(gradient, REDUCE(b, safe.value, dims=attrs.dims, monoid="mul"), like, attrs)
    zeros = REDUCE(b, zero.convert(like.type.dtype).value, dims=attrs.dims)
    others = _spread(gradient, zeros, like, attrs) - zero.convert(like.type.dtype)
    return others.compare("EQ", x.number(0)).select(product / safe, x.number(0))


def _spread(gradient: Gradient, value: Value, like: Value, attrs: ReduceAttrs) -> Expression:
    """A result-shaped value repeated along the reduced dims."""
    kept = tuple(d for d in range(like.type.rank) if d not in attrs.dims)
    shape = ResultShape(like.type.shape)
    wide = layout.BROADCAST_IN_DIM(gradient.builder, value, shape=shape, dims=kept)
    return Expression(gradient.builder, wide)


REDUCE = OpDef(
    "reduce",
    ReduceAttrs,
    _reduce_infer,
    rule=_reduce_rule,
    kernel=_reduce_kernel,
    fast=copied,
    execute=_reduce_execute,
    localize=_reduce_localize,
    fold=_reduce_fold,
    vjp=_reduce_vjp,
    examples=(
        "reduce(f32[4, 6]) dims=[1]",
        "reduce(f32[4, 6, 5]) dims=[2, 0] monoid=add",
        "reduce(bf16[4, 7]) dims=[0] monoid=add",
        "reduce(f64[5, 4]) dims=[0] monoid=mul",
        "reduce(f32[6, 4]) dims=[0] monoid=max",
        "reduce(f32[4, 7]) dims=[1] monoid=min",
        "reduce(i8[4, 6]) dims=[0] monoid=min",
        "reduce(bool[4, 6]) dims=[1] monoid=and",
        "reduce(i32[6, 5]) dims=[0] monoid=or",
        "reduce(u16[6, 4]) dims=[0, 1] monoid=xor",
        "reduce(bool[5, 4]) dims=[0] monoid=add",
        "reduce(c64[4, 6]) dims=[1] monoid=add",
        "reduce(f32[4, 6], i32[4, 6], f32[], i32[]) dims=[1] monoid=custom "
        "(%a: f32[], %i: i32[], %b: f32[], %j: i32[]) { "
        "%gt = compare(%a, %b) direction=GT : bool[] "
        "%eq = compare(%a, %b) direction=EQ : bool[] "
        "%lt = compare(%i, %j) direction=LT : bool[] "
        "%tie = and(%eq, %lt) : bool[] "
        "%left = or(%gt, %tie) : bool[] "
        "%v = select(%left, %a, %b) : f32[] "
        "%k = select(%left, %i, %j) : i32[] "
        "return %v, %k }",
    ),
    doc="Combines the elements along some dimensions, by a monoid or by a region.",
)

FAMILY: tuple[OpDef[Any], ...] = (REDUCE,)
