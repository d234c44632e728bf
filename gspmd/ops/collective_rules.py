"""Collectives of per-device code: their index structure along the axes that are not in the user's hands.

Dimensions that exchange elements between devices have to be whole along the axes that are not in the user's hands; all
others pass. So do sums that are not complete along these axes, wherever numbers are moved or added.
"""

from __future__ import annotations

from gspmd.ir.attrs import Attrs
from gspmd.ir.opdef import Types
from gspmd.ir.rule import Factor, Rule, elementwise_rule
from gspmd.ops.collective_types import AllToAllAttrs, AxesAttrs, DimAxesAttrs, ReduceScatterAttrs


def dim_rule(operands: Types, results: Types, attrs: DimAxesAttrs | ReduceScatterAttrs) -> Rule:
    """One dimension changes its size."""
    return _whole_dims(operands, results, _linear(operands, attrs), attrs.dim)


def all_to_all_rule(operands: Types, results: Types, attrs: AllToAllAttrs) -> Rule:
    """Two dimensions change their sizes."""
    return _whole_dims(operands, results, _linear(operands, attrs), attrs.from_dim, attrs.to_dim)


def alike_rule(operands: Types, results: Types, attrs: Attrs) -> Rule:
    """Every element meets those at its own position."""
    return elementwise_rule(operands[0].shape, 1, linear=_linear(operands, attrs))


def axis_index_rule(operands: Types, results: Types, attrs: AxesAttrs) -> Rule:
    """A scalar of each device's own."""
    return Rule((), (), ((),))


def _linear(operands: Types, attrs: Attrs) -> tuple[tuple[int, ...], ...]:
    summed = getattr(attrs, "monoid", "add") == "add"
    return ((0,),) if summed and operands[0].dtype.kind != "b" else ()


def _whole_dims(operands: Types, results: Types, linear: tuple[tuple[int, ...], ...], *dims: int) -> Rule:
    before, after = operands[0].shape, results[0].shape
    factors = [Factor(n, "whole" if d in dims else "pass") for d, n in enumerate(before)]
    result = [(d,) for d in range(len(before))]
    for d in dims:
        result[d] = (len(factors),)
        factors.append(Factor(after[d], "whole"))
    return Rule(tuple(factors), (tuple((d,) for d in range(len(before))),), (tuple(result),), linear)
