"""Rules made ready for propagation, and the projection of a tensor's axes onto an op's factors.

A plan is a rule without what never takes part: factors of size 1, `whole` factors and all that lies minor to them. An
access dimension stands for one factor: its axes are a hint, since the sizes differ (a slice, pad or concatenation keeps
a dimension's split, ragged as it may become).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gspmd.ir.axes import Axes
from gspmd.ir.projection import deal
from gspmd.ir.rule import Access, DimMap, Factor, Rule, TensorMap, identity_map
from gspmd.ir.sharding import Sharding
from gspmd.propagation.levels import NEVER, level_matrix


@dataclass(frozen=True, slots=True)
class DimPlan:
    """One dimension that takes part: its number, its size, its factors major to minor.

    `even`: it is a product of factors, so that a factor's split is a split of the dimension only if nothing is ragged.
    """

    dim: int
    size: int
    factors: tuple[int, ...]
    even: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A rule as propagation uses it; tensors are the operands, then the results."""

    sizes: tuple[int, ...]
    tensors: tuple[tuple[DimPlan, ...], ...]
    volumes: tuple[int, ...]
    levels: tuple[tuple[int, ...], ...]
    visits: tuple[int, ...]  # the distinct levels at which any step happens, lowest first


@dataclass(frozen=True, slots=True)
class View:
    """A tensor's axes seen from an op: per factor the axes and the dimension they are on.

    Dimensions in `hidden` have axes that no factors express; they tell nothing and take nothing.
    """

    axes: dict[int, Axes]
    dims: dict[int, int]
    hidden: frozenset[int]


@lru_cache(maxsize=1 << 14)
def plan_of(rule: Rule) -> Plan:
    """The plan of a rule."""
    tensors = tuple(_tensor_plan(rule, t) for t in rule.tensors)
    factors = [frozenset(f for d in t for f in d.factors) for t in tensors]
    levels = level_matrix(factors, len(rule.operands))
    visits = tuple(sorted({level for row in levels for level in row if level != NEVER}))
    volumes = tuple(_volume(rule, t) for t in rule.tensors)
    return Plan(tuple(f.size for f in rule.factors), tensors, volumes, levels, visits)


@lru_cache(maxsize=1 << 10)
def identity_plan(shape: tuple[int, ...], tensors: int) -> Plan:
    """The plan of a data-flow edge: tensors that are one value at different places."""
    return plan_of(Rule(tuple(map(Factor, shape)), (identity_map(len(shape)),) * tensors, ()))


def view_of(plan: Plan, tensor: int, sharding: Sharding) -> View:
    """What a tensor's sharding says of the op's factors."""
    axes: dict[int, Axes] = {}
    dims: dict[int, int] = {}
    hidden: list[int] = []
    for d in plan.tensors[tensor]:
        split, complete = _project(d, plan.sizes, sharding.dims[d.dim].axes)
        for f, part in zip(d.factors, split, strict=True):
            axes[f], dims[f] = part, d.dim
        if not complete:
            hidden.append(d.dim)
    return View(axes, dims, frozenset(hidden))


def _project(d: DimPlan, sizes: tuple[int, ...], axes: Axes) -> tuple[tuple[Axes, ...], bool]:
    """The axes of one dimension dealt out to its factors, major to minor, and whether that says everything."""
    if not d.even:
        return (axes,), True
    dealt = deal(axes, [sizes[f] for f in d.factors])
    return dealt.without_ragged(), not dealt.rest and dealt.ragged is None


def _tensor_plan(rule: Rule, tensor: TensorMap) -> tuple[DimPlan, ...]:
    """The dimensions of a tensor that take part; of two that carry the same factor (a diagonal) the first."""
    kept: list[DimPlan] = []
    seen: set[int] = set()
    for i, dim in enumerate(tensor):
        plan = _dim_plan(rule, i, dim)
        if plan.factors and plan.size > 1 and seen.isdisjoint(plan.factors):
            kept.append(plan)
            seen.update(plan.factors)
    return tuple(kept)


def _dim_plan(rule: Rule, number: int, dim: DimMap) -> DimPlan:
    if isinstance(dim, Access):
        f = rule.main_factor(dim)
        kept = (f,) if _takes_part(rule.factors[f]) else ()
        return DimPlan(number, dim.size, kept, False)
    real = [f for f in dim if rule.factors[f].size != 1]
    whole = next((i for i, f in enumerate(real) if rule.factors[f].kind == "whole"), len(real))
    return DimPlan(number, rule.dim_size(dim), tuple(real[:whole]), len(real) > 1)


def _takes_part(factor: Factor) -> bool:
    return factor.size > 1 and factor.kind != "whole"


def _volume(rule: Rule, tensor: TensorMap) -> int:
    n = 1
    for dim in tensor:
        n *= rule.dim_size(dim)
    return n
