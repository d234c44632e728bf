"""slice, pad, concatenate, reverse: ops that move data along fixed positions (StableHLO; paper section 4.3).

A dimension that they change is an `Access`, one that they leave alone a plain factor; the partitioner derives their
local bodies (halo exchange) from that alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Trait, Types
from gspmd.ir.rule import Access, DimMap, Factor, Rule
from gspmd.ir.types import TensorType
from gspmd.kernels import slicing as kernels
from gspmd.ops.elementwise import SELECT
from gspmd.ops.literal import full, scalar
from gspmd.ops.reduce import REDUCE
from gspmd.ops.rules import require, require_dims

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceAttrs(Attrs):
    """First index, limit (exclusive) and step in each dimension."""

    start: Ints
    limit: Ints
    stride: Ints


@dataclass(frozen=True, slots=True)
class PadAttrs(Attrs):
    """Fills before, behind (negative: elements cut off) and between neighbours, in each dimension."""

    low: Ints
    high: Ints
    interior: Ints


@dataclass(frozen=True, slots=True)
class ConcatenateAttrs(Attrs):
    """The dimension along which operands follow each other."""

    dimension: int


@dataclass(frozen=True, slots=True)
class ReverseAttrs(Attrs):
    """The dimensions to reverse."""

    dims: Ints


def _no_regions(regions: tuple[Region, ...], rule: str) -> None:
    require(not regions, f"{rule}.C0", f"takes no region, got {len(regions)}")


# -- slice -----------------------------------------------------------------------------------------------------------


def _slice_infer(types: Types, attrs: SliceAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one operand. C2: start, limit, stride have its rank. C3: 0 <= start <= limit <= size. C4: stride > 0."""
    _no_regions(regions, "slice")
    require(len(types) == 1, "slice.C1", f"takes one operand, got {len(types)}")
    (x,) = types
    for name, given in (("start", attrs.start), ("limit", attrs.limit), ("stride", attrs.stride)):
        require(len(given) == x.rank, "slice.C2", f"{name} {list(given)} must have the operand's rank {x.rank}")
    shape: list[int] = []
    for d, (a, b, s, n) in enumerate(zip(attrs.start, attrs.limit, attrs.stride, x.shape, strict=True)):
        require(0 <= a <= b <= n, "slice.C3", f"dim {d}: 0 <= start <= limit <= size must hold, got {a}, {b}, {n}")
        require(s > 0, "slice.C4", f"dim {d}: the stride must be positive, got {s}", "reverse first to step backwards")
        shape.append(-(-(b - a) // s))
    return (x.with_shape(shape),)


def _slice_rule(operands: Types, results: Types, attrs: SliceAttrs) -> Rule:
    dims: list[DimMap] = []
    for d, (n, m) in enumerate(zip(operands[0].shape, results[0].shape, strict=True)):
        same = n == m and attrs.start[d] == 0 and attrs.stride[d] == 1
        dims.append((d,) if same else Access(n, d, mul=attrs.stride[d], add=attrs.start[d]))
    return _moving_rule(results[0], [tuple(dims)], ((0,),))


def _moving_rule(result: TensorType, operands: list[tuple[DimMap, ...]], linear: tuple[Ints, ...]) -> Rule:
    factors = tuple(Factor(n) for n in result.shape)
    return Rule(factors, tuple(operands), (tuple((d,) for d in range(result.rank)),), linear)


def _slice_kernel(attrs: SliceAttrs, x: Array) -> Array:
    return kernels.slice_(x, attrs.start, attrs.limit, attrs.stride)


def _slice_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,) = cotangents
    if ct is None:
        return [None]
    b, attrs, shape = gradient.builder, node.attrs, node.operands[0].type.shape
    assert isinstance(attrs, SliceAttrs)
    reach = [a + (m - 1) * s + 1 if m else a for a, s, m in zip(attrs.start, attrs.stride, ct.type.shape, strict=True)]
    high = tuple(n - r for n, r in zip(shape, reach, strict=True))
    interior = tuple(s - 1 for s in attrs.stride)
    return [PAD(b, ct, _zero(b, ct.type), low=attrs.start, high=high, interior=interior)]


def _zero(builder: Builder, type_: TensorType) -> Value:
    return scalar(builder, 0, type_.dtype)


SLICE: OpDef[SliceAttrs] = OpDef(
    name="slice",
    attrs=SliceAttrs,
    infer=_slice_infer,
    rule=_slice_rule,
    kernel=_slice_kernel,
    vjp=_slice_vjp,
    traits=frozenset((Trait.MOVES,)),
    examples=(
        "slice(f32[13, 6]) start=[2, 0] limit=[12, 6] stride=[3, 1]",
        "slice(i32[9, 8, 5]) start=[0, 1, 0] limit=[7, 8, 5] stride=[1, 1, 1]",
        "slice(bf16[16, 11]) start=[4, 0] limit=[16, 11] stride=[1, 2]",
    ),
    doc="Every stride-th element from start (inclusive) to limit (exclusive) in each dimension.",
)

# -- pad -------------------------------------------------------------------------------------------------------------


def _pad_infer(types: Types, attrs: PadAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: operand and fill. C2: fill is a scalar of its dtype. C3: ranks. C4: interior >= 0. C5: no negative size."""
    _no_regions(regions, "pad")
    require(len(types) == 2, "pad.C1", f"takes an operand and a fill, got {len(types)} operands")
    x, fill = types
    require(
        fill.rank == 0 and fill.dtype == x.dtype, "pad.C2", f"the fill of {x.bare} must be a scalar, got {fill.bare}"
    )
    for name, given in (("low", attrs.low), ("high", attrs.high), ("interior", attrs.interior)):
        require(len(given) == x.rank, "pad.C3", f"{name} {list(given)} must have the operand's rank {x.rank}")
    shape: list[int] = []
    for d, (lo, hi, gap, n) in enumerate(zip(attrs.low, attrs.high, attrs.interior, x.shape, strict=True)):
        require(gap >= 0, "pad.C4", f"dim {d}: the interior padding cannot be negative, got {gap}")
        size = lo + hi + n + max(n - 1, 0) * gap
        require(size >= 0, "pad.C5", f"dim {d}: low {lo} and high {hi} cut off more than the {size - lo - hi} elements")
        shape.append(size)
    return (x.with_shape(shape),)


def _pad_rule(operands: Types, results: Types, attrs: PadAttrs) -> Rule:
    dims: list[DimMap] = []
    for d, n in enumerate(operands[0].shape):
        lo, hi, gap = attrs.low[d], attrs.high[d], attrs.interior[d]
        same = lo == hi == 0 and (gap == 0 or n <= 1)
        dims.append((d,) if same else Access(n, d, add=-lo, div=gap + 1, fill_operand=1))
    return _moving_rule(results[0], [tuple(dims), ()], ((0, 1),))


def _pad_kernel(attrs: PadAttrs, x: Array, fill: Array) -> Array:
    return kernels.pad(x, fill, attrs.low, attrs.high, attrs.interior)


def _pad_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,) = cotangents
    if ct is None:
        return [None, None]
    b, attrs, shape = gradient.builder, node.attrs, node.operands[0].type.shape
    assert isinstance(attrs, PadAttrs)
    padding = PAD.emit(b, (full(b, False, "bool", shape), scalar(b, True, "bool")), attrs)[0]
    fills = SELECT(b, padding, ct, full(b, 0, ct.type.dtype, ct.type.shape))
    return [_unpad(b, ct, attrs, shape), REDUCE(b, fills, dims=tuple(range(ct.type.rank)), monoid="add")]


def _unpad(b: Builder, ct: Value, attrs: PadAttrs, shape: Ints) -> Value:
    """The cotangent at the operand's elements: zero for those that negative padding cut off."""
    uncut = PAD(
        b,
        ct,
        _zero(b, ct.type),
        low=tuple(max(-lo, 0) for lo in attrs.low),
        high=tuple(max(-hi, 0) for hi in attrs.high),
        interior=(0,) * len(shape),
    )
    start = tuple(max(lo, 0) for lo in attrs.low)
    stride = tuple(gap + 1 for gap in attrs.interior)
    limit = tuple(a + (n - 1) * s + 1 if n else a for a, n, s in zip(start, shape, stride, strict=True))
    return SLICE(b, uncut, start=start, limit=limit, stride=stride)


PAD: OpDef[PadAttrs] = OpDef(
    name="pad",
    attrs=PadAttrs,
    infer=_pad_infer,
    rule=_pad_rule,
    kernel=_pad_kernel,
    vjp=_pad_vjp,
    traits=frozenset((Trait.MOVES,)),
    examples=(
        "pad(f32[6, 5], f32[]) low=[2, 0] high=[1, 0] interior=[0, 0]",
        "pad(i32[5, 8], i32[]) low=[0, -2] high=[4, -1] interior=[2, 0]",
        "pad(f32[9, 4, 6], f32[]) low=[-1, 3, 0] high=[2, -1, 0] interior=[1, 1, 0]",
    ),
    doc="The operand with fills before, behind and between its elements; negative low and high cut elements off.",
)

# -- concatenate -----------------------------------------------------------------------------------------------------


def _concatenate_infer(types: Types, attrs: ConcatenateAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one operand or more. C2: equal dtypes. C3: dimension in range. C4: shapes equal but for that dimension."""
    _no_regions(regions, "concatenate")
    require(len(types) >= 1, "concatenate.C1", "takes at least one operand, got none")
    first, at = types[0], attrs.dimension
    require(0 <= at < first.rank, "concatenate.C3", f"dimension {at} must lie in [0, {first.rank})")
    for i, x in enumerate(types):
        require(x.dtype == first.dtype, "concatenate.C2", f"operand {i} is {x.bare}, operand 0 is {first.bare}")
        rest = x.rank == first.rank and all(
            n == m for d, (n, m) in enumerate(zip(x.shape, first.shape, strict=True)) if d != at
        )
        require(rest, "concatenate.C4", f"operand {i} is {x.bare}, operand 0 is {first.bare}: only dim {at} may differ")
    total = sum(x.shape[at] for x in types)
    return (first.with_shape(first.shape[:at] + (total,) + first.shape[at + 1 :]),)


def _concatenate_rule(operands: Types, results: Types, attrs: ConcatenateAttrs) -> Rule:
    maps: list[tuple[DimMap, ...]] = []
    start, at = 0, attrs.dimension
    for x in operands:
        n = x.shape[at]
        dims: list[DimMap] = [(d,) for d in range(x.rank)]
        if len(operands) > 1:
            dims[at] = Access(n, at, add=-start)
        maps.append(tuple(dims))
        start += n
    return _moving_rule(results[0], maps, (tuple(range(len(operands))),))


def _concatenate_kernel(attrs: ConcatenateAttrs, *xs: Array) -> Array:
    return kernels.concatenate(xs, attrs.dimension)


def _concatenate_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,) = cotangents
    if ct is None:
        return [None] * len(node.operands)
    attrs = node.attrs
    assert isinstance(attrs, ConcatenateAttrs)
    dim, at = attrs.dimension, 0
    parts: list[Value | None] = []
    for x in node.operands:
        end = at + x.type.shape[dim]
        parts.append(section(gradient.builder, ct, dim, at, end))
        at = end
    return parts


CONCATENATE: OpDef[ConcatenateAttrs] = OpDef(
    name="concatenate",
    attrs=ConcatenateAttrs,
    infer=_concatenate_infer,
    rule=_concatenate_rule,
    kernel=_concatenate_kernel,
    vjp=_concatenate_vjp,
    traits=frozenset((Trait.MOVES,)),
    examples=(
        "concatenate(f32[5, 6], f32[8, 6]) dimension=0",
        "concatenate(i32[4, 7], i32[4, 5], i32[4, 1]) dimension=1",
    ),
    doc="The operands one behind the other along a dimension.",
)

# -- reverse ---------------------------------------------------------------------------------------------------------


def _reverse_infer(types: Types, attrs: ReverseAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one operand. C2: dims are distinct and in range."""
    _no_regions(regions, "reverse")
    require(len(types) == 1, "reverse.C1", f"takes one operand, got {len(types)}")
    require_dims("reverse", "C2", "dims", attrs.dims, types[0].rank)
    return (types[0].bare,)


def _reverse_rule(operands: Types, results: Types, attrs: ReverseAttrs) -> Rule:
    dims: list[DimMap] = [
        Access(n, d, mul=-1, add=n - 1) if d in attrs.dims else (d,) for d, n in enumerate(operands[0].shape)
    ]
    return _moving_rule(results[0], [tuple(dims)], ((0,),))


def _reverse_kernel(attrs: ReverseAttrs, x: Array) -> Array:
    return kernels.reverse(x, attrs.dims)


def _reverse_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,) = cotangents
    return [None if ct is None else node.op.emit(gradient.builder, (ct,), node.attrs)[0]]


REVERSE: OpDef[ReverseAttrs] = OpDef(
    name="reverse",
    attrs=ReverseAttrs,
    infer=_reverse_infer,
    rule=_reverse_rule,
    kernel=_reverse_kernel,
    vjp=_reverse_vjp,
    traits=frozenset((Trait.MOVES,)),
    examples=("reverse(f32[8, 5]) dims=[0]", "reverse(i32[7, 6, 9]) dims=[2, 0]"),
    doc="The operand with the elements of some dimensions in the opposite order.",
)


def section(builder: Builder, value: Value, dim: int, low: int, high: int) -> Value:
    """The elements [low, high) along a dimension."""
    shape = value.type.shape
    if (low, high) == (0, shape[dim]):
        return value
    start = tuple(low if d == dim else 0 for d in range(len(shape)))
    limit = tuple(high if d == dim else n for d, n in enumerate(shape))
    return SLICE(builder, value, start=start, limit=limit, stride=(1,) * len(shape))


def fit(builder: Builder, value: Value, dim: int, size: int) -> Value:
    """The value with so many elements along a dimension: cut off at the end, or padded there with zeros."""
    shape = value.type.shape
    if shape[dim] >= size:
        return section(builder, value, dim, 0, size)
    high = tuple(size - n if d == dim else 0 for d, n in enumerate(shape))
    none = (0,) * len(shape)
    return PAD(builder, value, scalar(builder, 0, value.type.dtype), low=none, high=high, interior=none)


FAMILY: tuple[OpDef[Any], ...] = (SLICE, PAD, CONCATENATE, REVERSE)
