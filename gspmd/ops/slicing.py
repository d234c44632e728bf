"""All slicing ops: the static ones of `moving`, and the dynamic slices (StableHLO's specification).

A dynamic slice addresses a dimension by data. Where that dimension is split, every device clamps the start by the
*global* size and works on the part of the block that it holds; blocks are put in place by static slices of dynamic
ones, so that the work is that of the block and not that of the operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import is_integer
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, OpDef, Types
from gspmd.ir.rule import DimMap, Factor, Rule, sole_factor
from gspmd.kernels import slicing as kernels
from gspmd.kernels.monoids import identity
from gspmd.ops.elementwise import ADD, CLAMP, SUBTRACT
from gspmd.ops.literal import full, scalar
from gspmd.ops.moving import CONCATENATE, PAD, REVERSE, SLICE
from gspmd.ops.moving import FAMILY as MOVING
from gspmd.ops.rules import require
from gspmd.ops.starts import as_i32

__all__ = ["CONCATENATE", "DYNAMIC_SLICE", "DYNAMIC_UPDATE_SLICE", "FAMILY", "PAD", "REVERSE", "SLICE"]

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DynamicSliceAttrs(Attrs):
    """The shape of the block."""

    sizes: ResultShape


def _check_starts(starts: Types, rank: int, rule: str) -> None:
    require(len(starts) == rank, rule, f"needs one start index per dimension: {rank}, got {len(starts)}")
    for i, start in enumerate(starts):
        ok = start.rank == 0 and is_integer(start.dtype)
        require(ok, rule, f"start index {i} must be an integer scalar, got {start.bare}")
    require(len({s.dtype for s in starts}) <= 1, rule, "all start indices must have one dtype")


def _check_block(sizes: Sequence[int], shape: Sequence[int], rule: str, name: str) -> None:
    require(len(sizes) == len(shape), rule, f"the {name} has rank {len(sizes)}, the operand {len(shape)}")
    for d, (w, n) in enumerate(zip(sizes, shape, strict=True)):
        require(0 <= w <= n, rule, f"dim {d}: the {name} has {w} elements, the operand {n}")


# -- dynamic_slice ---------------------------------------------------------------------------------------------------


def _slice_infer(types: Types, attrs: DynamicSliceAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: an operand. C2: one integer scalar start per dimension, of one dtype. C3: 0 <= sizes <= shape."""
    require(not regions, "dynamic_slice.C0", "takes no region")
    require(len(types) >= 1, "dynamic_slice.C1", "takes an operand and start indices, got nothing")
    _check_starts(types[1:], types[0].rank, "dynamic_slice.C2")
    _check_block(attrs.sizes, types[0].shape, "dynamic_slice.C3", "block")
    return (types[0].with_shape(attrs.sizes),)


def _slice_rule(operands: Types, results: Types, attrs: DynamicSliceAttrs) -> Rule:
    """A dim that the block covers passes; another is looked up, and the block's dim stands on its own."""
    x, out = operands[0], results[0]
    factors = [Factor(m) for m in out.shape]
    dims: list[DimMap] = []
    for d, (n, m) in enumerate(zip(x.shape, out.shape, strict=True)):
        if n == m:
            dims.append((d,))
        else:
            dims.append((len(factors),))
            factors.append(Factor(n, "lookup", "add"))
    block: tuple[DimMap, ...] = tuple((d,) for d in range(out.rank))
    return Rule(tuple(factors), (tuple(dims), *((),) * x.rank), (block,), ((0,),))


def _starts_in_shard(
    ctx: Localizer, starts: Sequence[Value], sizes: Sequence[int], moved: Sequence[Value]
) -> list[Value]:
    """Where the block starts, counted from this device's first element: clamped by the global size, may be outside."""
    b, x = ctx.builder, ctx.node.operands[0].type
    found: list[Value] = []
    for d, (start, n, w) in enumerate(zip(starts, x.shape, sizes, strict=True)):
        zero = scalar(b, 0, "i32")
        inside = CLAMP(b, zero, as_i32(b, start, n), scalar(b, n - w, "i32"))
        found.append(inside if n == w else SUBTRACT(b, ADD(b, inside, moved[d]), ctx.offset(_factor(ctx, 0, d))))
    return found


def _factor(ctx: Localizer, operand: int, dim: int) -> int:
    return sole_factor(ctx.rule.operands[operand][dim])


def _clamped(b: Builder, value: Value, high: int) -> Value:
    return CLAMP(b, scalar(b, 0, "i32"), value, scalar(b, high, "i32"))


def _nearest(b: Builder, at: Sequence[Value], shape: Sequence[int], sizes: Sequence[int]) -> list[Value]:
    """Starts of the block of `sizes` in a shard that holds all that the shard has of the block at `at`."""
    return [_clamped(b, a, c - m) for a, c, m in zip(at, shape, sizes, strict=True)]


def _slice_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """My part of the block in its place, the sum's identity elsewhere.

    With `near` the m = min(w, c) elements next to the block, they stand `near - at` from the block's first element: put
    into w + 2m identities at that distance from position m, and cut out [m, m + w).
    """
    b, x = ctx.builder, operands[0]
    full_sizes, sizes = ctx.node.results[0].type.shape, ctx.local_result().shape
    moved = [ctx.offset(sole_factor(dim)) for dim in ctx.rule.results[0]]
    at = _starts_in_shard(ctx, operands[1:], full_sizes, moved)
    m = [min(w, c) for w, c in zip(sizes, x.type.shape, strict=True)]
    whole = [
        (not ctx.axes_of(_factor(ctx, 0, d)) and not ctx.axes_of(sole_factor(dim))) or n == full_sizes[d]
        for d, (dim, n) in enumerate(zip(ctx.rule.results[0], ctx.node.operands[0].type.shape, strict=True))
    ]
    near = _nearest(b, at, x.type.shape, m)
    held = DYNAMIC_SLICE(b, x, *near, sizes=ResultShape(m))
    if all(whole):
        return [held]
    margin = [0 if w else k for w, k in zip(whole, m, strict=True)]
    room = [w + 2 * k for w, k in zip(sizes, margin, strict=True)]
    place = [
        _clamped(b, ADD(b, SUBTRACT(b, p, a), scalar(b, k, "i32")), r - q)
        for p, a, k, r, q in zip(near, at, margin, room, m, strict=True)
    ]
    empty = full(b, identity("add", x.type.dtype), x.type.dtype, room)
    put = DYNAMIC_UPDATE_SLICE(b, empty, held, *place)
    limit = tuple(k + w for k, w in zip(margin, sizes, strict=True))
    return [SLICE(b, put, start=tuple(margin), limit=limit, stride=(1,) * len(m))]


def _slice_kernel(attrs: DynamicSliceAttrs, x: Array, *starts: Array) -> Array:
    return kernels.dynamic_slice(x, starts, attrs.sizes)


def _slice_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,) = cotangents
    x, *starts = node.operands
    if ct is None:
        return [None] * len(node.operands)
    zeros = gradient.zeros(x.type.bare)
    return [DYNAMIC_UPDATE_SLICE(gradient.builder, zeros, ct, *starts), *[None] * len(starts)]


DYNAMIC_SLICE: OpDef[DynamicSliceAttrs] = OpDef(
    name="dynamic_slice",
    attrs=DynamicSliceAttrs,
    infer=_slice_infer,
    rule=_slice_rule,
    kernel=_slice_kernel,
    localize=_slice_localize,
    vjp=_slice_vjp,
    examples=(
        "dynamic_slice(f32[12, 7], i32[], i32[]) sizes=[5, 7]",
        "dynamic_slice(bf16[6, 9, 8], u8[], u8[], u8[]) sizes=[6, 4, 5]",
    ),
    doc="A block of a fixed shape at start indices that are data, moved so that it lies inside.",
)

# -- dynamic_update_slice --------------------------------------------------------------------------------------------


def _update_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    """C1: operand, update. C2: dtypes agree. C3: the update fits. C4: one integer scalar start per dimension."""
    require(not regions, "dynamic_update_slice.C0", "takes no region")
    require(len(types) >= 2, "dynamic_update_slice.C1", f"takes an operand, an update and starts, got {len(types)}")
    x, update = types[:2]
    require(x.dtype == update.dtype, "dynamic_update_slice.C2", f"the update is {update.bare}, the operand {x.bare}")
    _check_block(update.shape, x.shape, "dynamic_update_slice.C3", "update")
    _check_starts(types[2:], x.rank, "dynamic_update_slice.C4")
    return (x.bare,)


def _update_rule(operands: Types, results: Types, attrs: Attrs) -> Rule:
    """A dim that the update covers passes; in another the operand is addressed and the update's dim stays whole."""
    x, update = operands[:2]
    factors: list[Factor] = []
    dims: list[DimMap] = [(d,) for d in range(x.rank)]
    update_dims: list[DimMap] = []
    for n, m in zip(x.shape, update.shape, strict=True):
        factors.append(Factor(n) if n == m else Factor(n, "lookup", "add"))
    for d, (n, m) in enumerate(zip(x.shape, update.shape, strict=True)):
        if n == m:
            update_dims.append((d,))
        else:
            update_dims.append((len(factors),))
            factors.append(Factor(m, "whole"))
    maps = (tuple(dims), tuple(update_dims), *((),) * x.rank)
    return Rule(tuple(factors), maps, (tuple(dims),), ((0, 1),))


def _update_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """Update what I hold of the block: read it with margins around, update that, cut the margins off, write it back."""
    b, (x, update, *starts) = ctx.builder, operands
    shape, sizes = x.type.shape, update.type.shape
    zeros = [scalar(b, 0, "i32")] * len(shape)
    at = _starts_in_shard(ctx, starts, ctx.node.operands[1].type.shape, zeros)
    split = [bool(ctx.axes_of(sole_factor(dim))) and n != w for dim, n, w in _update_dims(ctx)]
    if not any(split):
        return [DYNAMIC_UPDATE_SLICE(b, x, update, *at)]
    m = [min(w, c) for w, c in zip(sizes, shape, strict=True)]
    near = _nearest(b, at, shape, m)
    held = DYNAMIC_SLICE(b, x, *near, sizes=ResultShape(m))
    margin = tuple(w if s else 0 for w, s in zip(sizes, split, strict=True))
    zero = scalar(b, 0, x.type.dtype)
    room = PAD(b, held, zero, low=margin, high=margin, interior=(0,) * len(m))
    place = [
        _clamped(b, ADD(b, SUBTRACT(b, a, p), scalar(b, k, "i32")), r - w)
        for a, p, k, r, w in zip(at, near, margin, room.type.shape, sizes, strict=True)
    ]
    put = DYNAMIC_UPDATE_SLICE(b, room, update, *place)
    limit = tuple(k + w for k, w in zip(margin, m, strict=True))
    mine = SLICE(b, put, start=margin, limit=limit, stride=(1,) * len(m))
    return [DYNAMIC_UPDATE_SLICE(b, x, mine, *near)]


def _update_dims(ctx: Localizer) -> list[tuple[DimMap, int, int]]:
    """Of each dimension: its map in the operand, the operand's and the update's global sizes."""
    x, update = ctx.node.operands[:2]
    return list(zip(ctx.rule.operands[0], x.type.shape, update.type.shape, strict=True))


def _update_kernel(attrs: Attrs, x: Array, update: Array, *starts: Array) -> Array:
    return kernels.dynamic_update_slice(x, update, starts)


def _update_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,) = cotangents
    if ct is None:
        return [None] * len(node.operands)
    _, update, *starts = node.operands
    b, type_ = gradient.builder, update.type.bare
    kept = DYNAMIC_UPDATE_SLICE(b, ct, gradient.zeros(type_), *starts)
    taken = DYNAMIC_SLICE(b, ct, *starts, sizes=ResultShape(type_.shape))
    return [kept, taken, *[None] * len(starts)]


DYNAMIC_UPDATE_SLICE: OpDef[Attrs] = OpDef(
    name="dynamic_update_slice",
    attrs=Attrs,
    infer=_update_infer,
    rule=_update_rule,
    kernel=_update_kernel,
    localize=_update_localize,
    vjp=_update_vjp,
    examples=(
        "dynamic_update_slice(f32[12, 7], f32[5, 7], i32[], i32[])",
        "dynamic_update_slice(bf16[6, 9, 8], bf16[6, 4, 5], u8[], u8[], u8[])",
    ),
    doc="The operand with a block replaced, at start indices that are data, moved so that the block lies inside.",
)

FAMILY: tuple[OpDef[Any], ...] = (*MOVING, DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE)
