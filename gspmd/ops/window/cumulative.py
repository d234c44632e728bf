"""Running reductions along a dimension (sums, products, extremes): a `scan` factor, resolved by the op itself.

A device scans its own part; the totals of all devices are gathered, and those before it combined with its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, OpDef, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.kernels import monoids
from gspmd.kernels import window as kernels
from gspmd.ops import elementwise as ew
from gspmd.ops import layout
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.indexing import SCATTER
from gspmd.ops.literal import IOTA, full
from gspmd.ops.moving import section
from gspmd.ops.reduce import REDUCE, canonical_monoid
from gspmd.ops.rules import differentiable, require, require_count, require_dims, require_kind
from gspmd.ops.window.sides import KINDS

_OP = "cumulative_reduce"
# The element-wise op of each monoid.
COMBINE = {
    "add": ew.ADD,
    "mul": ew.MULTIPLY,
    "max": ew.MAXIMUM,
    "min": ew.MINIMUM,
    "and": ew.AND,
    "or": ew.OR,
    "xor": ew.XOR,
}


@dataclass(frozen=True, slots=True)
class CumulativeReduceAttrs(Attrs):
    """The dimension, the monoid, and whether each element gets what lies behind it instead of before it."""

    dim: int
    monoid: str = "add"
    reverse: bool = False


def _cumulative_infer(types: Types, attrs: CumulativeReduceAttrs, regions: tuple[Region, ...]) -> Types:
    require_count(_OP, types, 1)
    require(attrs.monoid in monoids.MONOIDS, f"{_OP}.C1", f"unknown monoid {attrs.monoid!r}")
    require_kind(_OP, "C2", types[0], KINDS[attrs.monoid])
    require_dims(_OP, "C3", "dim", (attrs.dim,), types[0].rank)
    return (types[0].bare,)


def _cumulative_rule(types: Types, results: Types, attrs: CumulativeReduceAttrs) -> Rule:
    x = types[0]
    monoid = canonical_monoid(attrs.monoid, x)
    factors = tuple(
        Factor(n, "scan", monoid, attrs.reverse) if d == attrs.dim else Factor(n) for d, n in enumerate(x.shape)
    )
    whole = identity_map(x.rank)
    linear = ((0,),) if attrs.monoid == "add" and x.dtype.kind != "b" else ()
    return Rule(factors, (whole,), (whole,), linear)


def _cumulative_kernel(attrs: CumulativeReduceAttrs, x: Array) -> Array:
    return kernels.cumulative(attrs.monoid, x, attrs.dim, attrs.reverse)


def _cumulative_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    attrs, b = ctx.node.attrs, ctx.builder
    assert isinstance(attrs, CumulativeReduceAttrs)
    d, axes = attrs.dim, ctx.axes_of(attrs.dim)
    own = CUMULATIVE_REDUCE(b, operands[0], dim=d, monoid=attrs.monoid, reverse=attrs.reverse)
    if not axes or own.type.shape[d] == 0:
        return (own,)
    shape = own.type.shape
    at = 0 if attrs.reverse else shape[d] - 1
    totals = ctx.all_gather(section(b, own, d, at, at + 1), d, axes)
    number = IOTA(b, shape=ResultShape(totals.type.shape), dtype=as_dtype("i32"), dimension=d)
    here = Expression(b, ctx.index(axes)).spread(totals.type.shape)
    before = Expression(b, number).compare("GT" if attrs.reverse else "LT", here)
    none = full(b, monoids.identity(attrs.monoid, own.type.dtype), own.type.dtype, totals.type.shape)
    carried = REDUCE(b, before.select(Expression(b, totals), Expression(b, none)).value, dims=(d,), monoid=attrs.monoid)
    kept = tuple(i for i in range(len(shape)) if i != d)
    wide = layout.BROADCAST_IN_DIM(b, carried, shape=ResultShape(shape), dims=kept)
    combine = COMBINE[ctx.rule.factors[d].monoid or attrs.monoid]
    return (combine(b, own, wide) if attrs.reverse else combine(b, wide, own),)


def _cumulative_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,), (x,), attrs, b = cotangents, node.operands, node.attrs, gradient.builder
    assert isinstance(attrs, CumulativeReduceAttrs)
    if ct is None or not differentiable(x.type):
        return (None,)
    if attrs.monoid == "add":
        return (_behind(b, ct, attrs).value,)
    if attrs.monoid == "mul":
        return (_product_cotangent(b, ct, x, node.results[0], attrs),)
    return (_extreme_cotangent(b, ct, x, node.results[0], attrs),)


def _behind(b: Builder, ct: Value, attrs: CumulativeReduceAttrs) -> Expression:
    """The sums of what each element took part in."""
    return Expression(b, CUMULATIVE_REDUCE(b, ct, dim=attrs.dim, reverse=not attrs.reverse))


def _product_cotangent(b: Builder, ct: Value, x: Value, y: Value, attrs: CumulativeReduceAttrs) -> Value:
    """Products without the element itself, not by dividing where it is zero: only the first zero then counts."""
    value, wide = Expression(b, x), Expression(b, ct)
    zero = value.compare("EQ", 0)
    safe = zero.select(value.number(1), value)

    def scan(v: Expression, monoid: str) -> Expression:
        return v.apply(CUMULATIVE_REDUCE, dim=attrs.dim, monoid=monoid, reverse=attrs.reverse)

    first = scan(zero.convert(x.type.dtype), "add").compare("EQ", 1)
    products = scan(safe, "mul")
    without = first.select(products, products.number(0))
    through = _behind(b, (wide * Expression(b, y)).value, attrs) / safe
    at_zero = _behind(b, (wide * without).value, attrs)
    return zero.select(first.select(at_zero, at_zero.number(0)), through).value


def _extreme_cotangent(b: Builder, ct: Value, x: Value, y: Value, attrs: CumulativeReduceAttrs) -> Value:
    """Each cotangent goes to the latest element that is the extreme so far."""
    i32, d = as_dtype("i32"), attrs.dim
    shape = x.type.shape
    index = Expression(b, IOTA(b, shape=ResultShape(shape), dtype=i32, dimension=d))
    hit = Expression(b, x).compare("EQ", Expression(b, y))
    never = index.number(shape[d] if attrs.reverse else -1)
    place = CUMULATIVE_REDUCE(
        b, hit.select(index, never).value, dim=d, monoid="min" if attrs.reverse else "max", reverse=attrs.reverse
    )
    others = tuple(i for i in range(len(shape)) if i != d)
    zeros = full(b, 0, x.type.dtype, shape)
    return SCATTER(
        b,
        zeros,
        place,
        ct,
        update_window_dims=(),
        inserted_window_dims=(d,),
        input_batching_dims=others,
        scatter_indices_batching_dims=others,
        scatter_dims_to_operand_dims=(d,),
        index_vector_dim=len(shape),
        monoid="add",
    )


CUMULATIVE_REDUCE = OpDef(
    _OP,
    CumulativeReduceAttrs,
    _cumulative_infer,
    rule=_cumulative_rule,
    kernel=_cumulative_kernel,
    localize=_cumulative_localize,
    vjp=_cumulative_vjp,
    examples=(
        "cumulative_reduce(f32[7, 4]) dim=0",
        "cumulative_reduce(f64[4, 6]) dim=1 reverse=true",
        "cumulative_reduce(bf16[9]) dim=0 monoid=add",
        "cumulative_reduce(f64[5, 4]) dim=0 monoid=mul",
        "cumulative_reduce(f32[6, 5]) dim=1 monoid=max reverse=true",
        "cumulative_reduce(f32[8]) dim=0 monoid=min reverse=true",
        "cumulative_reduce(i8[4, 6]) dim=1 monoid=min reverse=true",
        "cumulative_reduce(i32[7]) dim=0 monoid=xor",
        "cumulative_reduce(bool[5, 4]) dim=0 monoid=add",
        "cumulative_reduce(u16[6]) dim=0 monoid=and reverse=true",
        "cumulative_reduce(u8[6, 3]) dim=0 monoid=or",
        "cumulative_reduce(c64[4, 6]) dim=1 monoid=add",
    ),
    doc="Each element combined with all those before it (or behind it) along a dimension.",
)
