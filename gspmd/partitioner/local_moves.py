"""Ops that move data along fixed positions: their local bodies, from the rule's accesses alone (paper section 4.3).

For every operand each split access dimension is fetched, so that a device holds the positions that its results read.
Then the access is applied locally: dilated, cut or padded to its span, every `mul`-th element taken, reversed. Several
operands are put together by position, and so is the fill around a padded operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gspmd.ir.axes import parts
from gspmd.ir.graph import Value
from gspmd.ir.rule import Access, dim_factors
from gspmd.ops import cells
from gspmd.ops.fetch import FETCH
from gspmd.ops.fetch_plan import Reading, geometry
from gspmd.ops.literal import full, scalar
from gspmd.ops.moving import PAD, REVERSE, SLICE
from gspmd.partitioner import padding
from gspmd.partitioner.context import LocalContext
from gspmd.partitioner.halo import strideless


@dataclass(frozen=True, slots=True)
class _Step:
    """What remains to do along one dimension: padding config, stride, reversal, and the results to crop to."""

    low: int = 0
    high: int = 0
    interior: int = 0
    stride: int = 1
    reverse: bool = False
    block: int = 1


def move(context: LocalContext, operands: Sequence[Value]) -> Value:
    """The local body of an op that moves data."""
    b, rule, out = context.builder, context.rule, context.local_result()
    if 0 in out.shape:
        return full(b, 0, out.dtype, out.shape)
    fills = {d.fill_operand for t in rule.operands for d in t if isinstance(d, Access)} - {None}
    fill = operands[min(f for f in fills if f is not None)] if fills else None
    result: Value | None = None
    for number, (tensor, x) in enumerate(zip(rule.operands, operands, strict=True)):
        if number in fills or any(isinstance(d, Access) and d.size == 0 for d in tensor):
            continue
        piece = _piece(context, number, x, fill)
        under = result or (None if fill in context.devices.zeros else fill)
        where = _where(context, number) if under is not None else None
        result = piece if where is None or under is None else cells.choose(b, where, piece, under)
    if result is None:
        result = cells.spread(b, fill or scalar(b, 0, out.dtype), out.shape)
    return result


def _piece(context: LocalContext, number: int, x: Value, fill: Value | None) -> Value:
    """What the results read of one operand; unspecified where they do not read it."""
    steps: list[_Step] = []
    for d, dim in enumerate(context.rule.operands[number]):
        if not isinstance(dim, Access):
            steps.append(_Step())
            continue
        x, step = _read(context, number, x, d, dim, fill)
        steps.append(step)
    return _apply(context, x, steps, fill)


def _read(context: LocalContext, number: int, x: Value, d: int, dim: Access, fill: Value | None) -> tuple[Value, _Step]:
    """Fetch one dimension if it is split; what is to do then. A fill known to be zero comes with the fetch."""
    held = context.local_result().shape[d]
    type_ = context.node.operands[number].type
    axes, to_axes = type_.placed.dims[d].axes, context.axes_of(dim.factor)
    size = context.rule.factors[dim.factor].size
    r = Reading(dim.size, axes, x.type.shape[d], size, to_axes, held, dim.mul, dim.add, dim.div)
    first, r = strideless(r)
    x = _every(context, x, d, first, x.type.shape[d] // max(r.chunk, 1))
    g = geometry(r)
    if parts(axes) > 1 or parts(to_axes) > 1:
        x = FETCH(context.builder, x, dim=d, reading=r, fill=0.0 if fill in context.devices.zeros else None)
        low = g.phase
    else:
        low = g.phase - dim.div * g.base
    high = g.span - low - ((x.type.shape[d] - 1) * dim.div + 1)
    return x, _Step(low, high, dim.div - 1, abs(r.mul), dim.mul < 0, g.block)


def _every(context: LocalContext, x: Value, d: int, first: int, step: int) -> Value:
    """Every step-th element along a dimension, so that nobody is sent those between."""
    if step < 2:
        return x
    shape = x.type.shape
    start = tuple(first if i == d else 0 for i in range(len(shape)))
    stride = tuple(step if i == d else 1 for i in range(len(shape)))
    return SLICE(context.builder, x, start=start, limit=shape, stride=stride)


def _apply(context: LocalContext, x: Value, steps: list[_Step], fill: Value | None) -> Value:
    """The access of each dimension applied to what the device holds."""
    b = context.builder
    if any(s.interior or s.low > 0 or s.high > 0 for s in steps):
        low, high = tuple(s.low for s in steps), tuple(s.high for s in steps)
        around = fill or cells.zero(b, x)
        x = PAD(b, x, around, low=low, high=high, interior=tuple(s.interior for s in steps))
        steps = [replace(s, low=0, high=0, interior=0) for s in steps]
    if any(s.low or s.high or s.stride > 1 for s in steps):
        limit = tuple(n + s.high for n, s in zip(x.type.shape, steps, strict=True))
        x = SLICE(b, x, start=tuple(-s.low for s in steps), limit=limit, stride=tuple(s.stride for s in steps))
    turned = tuple(d for d, s in enumerate(steps) if s.reverse)
    if turned:
        x = REVERSE(b, x, dims=turned)
    if any(s.block > 1 for s in steps):
        x = _crop(context, x, steps)
    return x


def _crop(context: LocalContext, x: Value, steps: list[_Step]) -> Value:
    """Drop the results before the device's own."""
    own = [dim_factors(dim) for dim in context.rule.results[0]]
    leads = [None if s.block == 1 else (context.offset(f[0]), s.block) for f, s in zip(own, steps, strict=True)]
    return padding.crop(context.builder, x, context.local_result().shape, leads)


def _where(context: LocalContext, number: int) -> Value | None:
    """Which results read an operand; None if all do."""
    b, out = context.builder, context.local_result().shape
    where: Value | None = None
    for d, dim in enumerate(context.rule.operands[number]):
        if not isinstance(dim, Access):
            continue
        low, high = readers(dim)
        size = context.rule.factors[dim.factor].size
        if low > 0 or high < size:
            place = context.positions(dim.factor, (out[d],), 0)
            test = cells.inside(b, place, low if low > 0 else None, high if high < size else None)
            assert test is not None
            where = cells.both(b, where, cells.along(b, test, out, d))
    return where


def readers(dim: Access) -> tuple[int, int]:
    """The range of o whose position lies in the tensor: [low, high), whether div divides or not."""
    first, last = -dim.add, dim.div * (dim.size - 1) - dim.add
    if dim.mul < 0:
        first, last = last, first
    return -(-first // dim.mul), last // dim.mul + 1
