"""hold_once: a value that devices hold whole, or split, becomes one that is still to be combined (paper section 4.2).

Each element stays on one device of a group, and the others hold the monoid's identity in its place. Nothing is sent: a
sum that a loop carries starts so, and is then combined once, behind the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gspmd.ir.axes import Axes, contains, difference, overlaps
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Region, Value
from gspmd.ir.opdef import Localizer, OpDef, Trait, Types
from gspmd.ir.sharding import DimSharding
from gspmd.kernels.monoids import identity
from gspmd.ops.collective import as_it_is
from gspmd.ops.collective_types import AllReduceAttrs
from gspmd.ops.elementwise import COMPARE, MULTIPLY, SELECT
from gspmd.ops.literal import full, scalar
from gspmd.ops.moving import fit
from gspmd.ops.slicing import DYNAMIC_UPDATE_SLICE


def only_first(ctx: Localizer, x: Value, axes: Axes, monoid: str) -> Value:
    """The value on the first device of each group over the axes, the monoid's identity on the others."""
    b = ctx.builder
    nothing = full(b, identity(monoid, x.type.dtype), x.type.dtype, x.type.shape)
    return SELECT(b, COMPARE(b, ctx.index(axes), scalar(b, 0, "i32"), direction="EQ"), x, nothing)


def _infer(types: Types, attrs: AllReduceAttrs, regions: tuple[Region, ...]) -> Types:
    (x,) = types
    held = x.placed
    if held.monoid not in (None, attrs.monoid) or overlaps(held.unreduced, attrs.axes):
        raise TypeRuleError(
            f"a value that is {held.text()} cannot be combined by {attrs.monoid} over {held.axes_text(attrs.axes)} too",
            rule="hold_once.C1",
        )
    dims = tuple(DimSharding() if _joins(d, attrs.axes) else d for d in held.dims)
    return (x.with_sharding(held.with_dims(dims).with_unreduced(held.unreduced + attrs.axes, attrs.monoid)),)


def _joins(dim: DimSharding, axes: Axes) -> bool:
    return bool(dim.axes) and all(contains(axes, a) for a in dim.axes)


def _localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """What is split goes to its place in a whole of identities; of what is not, the first device keeps its copy."""
    b, (x,), attrs = ctx.builder, operands, ctx.node.attrs
    assert isinstance(attrs, AllReduceAttrs)
    type_ = ctx.node.operands[0].type
    split: Axes = ()
    for d, dim in enumerate(type_.placed.dims):
        if not _joins(dim, attrs.axes):
            continue
        split += dim.axes
        chunk, shape = x.type.shape[d], list(x.type.shape)
        shape[d] = chunk * dim.parts
        start = [scalar(b, 0, "i32")] * len(shape)
        start[d] = MULTIPLY(b, ctx.index(dim.axes), scalar(b, chunk, "i32"))
        nothing = full(b, identity(attrs.monoid, x.type.dtype), x.type.dtype, shape)
        x = fit(b, DYNAMIC_UPDATE_SLICE(b, nothing, x, *start), d, type_.shape[d])
    rest = difference(attrs.axes, split)
    return (only_first(ctx, x, rest, attrs.monoid) if rest else x,)


HOLD_ONCE: OpDef[AllReduceAttrs] = OpDef(
    "hold_once", AllReduceAttrs, _infer, execute=as_it_is, localize=_localize, traits=frozenset((Trait.RESHARD,))
)

FAMILY: tuple[OpDef[Any], ...] = (HOLD_ONCE,)
