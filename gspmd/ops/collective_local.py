"""Collectives on local types: what they need around them where a dimension does not divide evenly.

A dimension that axes join is padded first, so that its pieces have the size of the chunk after it; one that axes leave
is cut back to the chunk after it. The bodies are given the global types by the node that they localise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gspmd.ir.axes import parts
from gspmd.ir.graph import Value
from gspmd.ir.opdef import Localizer
from gspmd.ir.types import TensorType
from gspmd.ops.moving import fit


def chunk(type_: TensorType, dim: int) -> int:
    """Elements that a device holds of a dimension of a global type."""
    return type_.placed.chunk(dim, type_.shape[dim])


def alike(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """The same collective: no dimension changes."""
    return ctx.node.op.emit(ctx.builder, operands, ctx.node.attrs)


def leaving(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """all_gather: axes leave a dimension."""
    attrs: Any = ctx.node.attrs
    (x,) = alike(ctx, operands)
    return (fit(ctx.builder, x, attrs.dim, chunk(ctx.node.result.type, attrs.dim)),)


def joining(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """all_slice and reduce_scatter: axes join a dimension."""
    attrs: Any = ctx.node.attrs
    held = chunk(ctx.node.result.type, attrs.dim) * parts(attrs.axes)
    return alike(ctx, (fit(ctx.builder, operands[0], attrs.dim, held),))


def crossing(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """all_to_all: axes leave one dimension and join another."""
    attrs: Any = ctx.node.attrs
    result = ctx.node.result.type
    if attrs.from_dim == attrs.to_dim:
        return alike(ctx, operands)  # only per-device code does that, where such a dimension is whole
    (x,) = alike(ctx, (fit(ctx.builder, operands[0], attrs.to_dim, chunk(result, attrs.to_dim) * parts(attrs.axes)),))
    return (fit(ctx.builder, x, attrs.from_dim, chunk(result, attrs.from_dim)),)
