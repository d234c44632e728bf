"""Cells beyond the end of a tensor, and how an op keeps them out of its results (paper section 4.1).

A shard's buffer has a chunk of cells in each dimension; those beyond the tensor's end hold anything. Where they could
reach a result they are replaced by a neutral element first: by the identity of the monoid that a reduction combines
with, by zero on every operand of a contraction (zero on one alone would still multiply infinities and NaNs).
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Value
from gspmd.ir.rule import Factor, Rule
from gspmd.kernels.monoids import identity
from gspmd.ops import cells
from gspmd.ops.elementwise import REMAINDER
from gspmd.ops.literal import scalar
from gspmd.ops.slicing import DYNAMIC_SLICE

# For each dimension where the device's results start, and the block from whose multiple on they were computed.
Leads = Sequence[tuple[Value, int] | None]


def masked(builder: Builder, value: Value, dim: int, offset: Value | None, size: int, fill: Value) -> Value:
    """The value with a scalar fill beyond position `size` of a dimension that starts at `offset`."""
    return cells.choose(builder, cells.within(builder, value.type.shape, dim, offset, None, size), value, fill)


def neutral(builder: Builder, rule: Rule, factor: int, like: Value) -> Value:
    """What padding must hold along a factor that is combined: zero if several operands carry it, else the identity."""
    f = rule.factors[factor]
    if f.monoid is None or carriers(rule, factor) > 1:
        return cells.zero(builder, like)
    return scalar(builder, identity(f.monoid, like.type.dtype), like.type.dtype)


def carriers(rule: Rule, factor: int) -> int:
    """How many operands have a dimension that is this factor."""
    return sum((factor,) in operand for operand in rule.operands)


def combines(factor: Factor) -> bool:
    """Whether padding at the end of a split factor reaches real results."""
    return factor.kind == "reduce" or (factor.kind == "scan" and factor.reverse)


def crop(builder: Builder, value: Value, shape: Sequence[int], leads: Leads) -> Value:
    """Results that were computed from a multiple of a block on, without those before the device's own."""
    starts: list[Value] = []
    for lead in leads:
        if lead is None:
            starts.append(scalar(builder, 0, cells.I32))
        else:
            offset, block = lead
            starts.append(REMAINDER(builder, offset, scalar(builder, block, offset.type.dtype)))
    return DYNAMIC_SLICE(builder, value, *starts, sizes=ResultShape(shape))
