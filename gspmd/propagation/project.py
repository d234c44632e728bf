"""Rules made ready for propagation, and the projection of a tensor's axes onto an op's factors.

A plan is a rule without what never takes part: factors of size 1, `whole` factors and all that lies minor to them. An
access dimension stands for one factor: its axes are a hint, since the sizes differ (a slice, pad or concatenation keeps
a dimension's split, ragged as it may become).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gspmd.ir.axes import Axes
from gspmd.ir.projection import deal
from gspmd.ir.rule import Access, DimMap, Factor, Rule, TensorMap, dim_factors, identity_map
from gspmd.ir.sharding import Sharding
from gspmd.propagation.levels import MOVED, NEVER, SHIFTED, level_matrix

SHIFT_LIMIT = 8  # an access is shifted if an end is off by more than this part of the dimension
LAST_PRIORITY = 10**9  # with this every annotation is heard of


@dataclass(frozen=True, slots=True)
class DimPlan:
    """One dimension that takes part: its number, its size, its factors major to minor.

    `rest` is what they leave of its size: that of factors which stay whole, and of all minor to them. `even`: it is a
    product of factors, so that a factor's split is a split of the dimension only if nothing is ragged.
    """

    dim: int
    size: int
    factors: tuple[int, ...]
    rest: int
    even: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A rule as propagation uses it; tensors are the operands, then the results.

    `shared[source][target]` is the size of what a tensor has in common with another one: of a table no more than a row,
    as what is looked up has no other, but of the indices all. `whole` are the dimensions of each tensor that the op
    needs whole, `roomy` the factors, each a dimension by itself, that can take their axes; the largest first. `shifted`
    are factors that an access reads at places so far off that equal splits of both sides keep little where it is: hints
    to be followed where nothing else is known.
    """

    sizes: tuple[int, ...]
    tensors: tuple[tuple[DimPlan, ...], ...]
    volumes: tuple[int, ...]
    shared: tuple[tuple[int, ...], ...]
    levels: tuple[tuple[int, ...], ...]
    visits: tuple[int, ...]  # the distinct levels at which any step happens, lowest first
    whole: tuple[tuple[int, ...], ...]
    roomy: tuple[tuple[int, ...], ...]
    shifted: frozenset[int]


@dataclass(frozen=True, slots=True)
class View:
    """A tensor's axes seen from an op: per factor the axes and the dimension they are on.

    Dimensions in `hidden` have axes that no factors express, or do not count yet; they tell nothing and take nothing.
    `stranded` are dimensions with axes that the op needs whole.
    """

    axes: dict[int, Axes]
    dims: dict[int, int]
    hidden: frozenset[int]
    stranded: tuple[tuple[int, Axes], ...]


@lru_cache(maxsize=1 << 14)
def plan_of(rule: Rule) -> Plan:
    """The plan of a rule."""
    tensors = tuple(_tensor_plan(rule, t) for t in rule.tensors)
    factors = [frozenset(f for d in t for f in d.factors) for t in tensors]
    lookups = frozenset(f for f, factor in enumerate(rule.factors) if factor.kind == "lookup")
    levels = level_matrix(factors, len(rule.operands), rule.silent, lookups)
    visits = tuple(sorted({level for row in levels for level in row if level != NEVER}))
    volumes = tuple(_volume(rule, t) for t in rule.tensors)
    shared = tuple(tuple(prod(rule.factors[f].size for f in a & b) for b in factors) for a in factors)
    whole = tuple(_whole_dims(rule, t) for t in rule.tensors)
    roomy = _roomy(rule)
    shifted = frozenset(f for t in rule.tensors for d in t if (f := _shifted(rule, d)) is not None)
    late = {SHIFTED} if shifted and visits else set[int]()
    if any(whole) and any(roomy) and not rule.silent:
        late.add(MOVED)
    visits = tuple(sorted({*visits, *late}))
    return Plan(tuple(f.size for f in rule.factors), tensors, volumes, shared, levels, visits, whole, roomy, shifted)


@lru_cache(maxsize=1 << 10)
def identity_plan(shape: tuple[int, ...], tensors: int) -> Plan:
    """The plan of a data-flow edge: tensors that are one value at different places."""
    return plan_of(Rule(tuple(map(Factor, shape)), (identity_map(len(shape)),) * tensors, ()))


def view_of(plan: Plan, tensor: int, sharding: Sharding, heard: int) -> View:
    """What a tensor's sharding says of the op's factors, dimensions up to a priority being heard of."""
    axes: dict[int, Axes] = {}
    dims: dict[int, int] = {}
    hidden: list[int] = []
    for d in plan.tensors[tensor]:
        if sharding.dims[d.dim].priority > heard:
            axes.update(dict.fromkeys(d.factors, ()))
            hidden.append(d.dim)
            continue
        split, complete = _project(d, plan.sizes, sharding.dims[d.dim].axes)
        for f, part in zip(d.factors, split, strict=True):
            axes[f], dims[f] = part, d.dim
        if not complete:
            hidden.append(d.dim)
    stranded = [
        (d, sharding.dims[d].axes)
        for d in plan.whole[tensor]
        if sharding.dims[d].axes and sharding.dims[d].priority <= heard
    ]
    return View(axes, dims, frozenset(hidden), tuple(stranded))


def _project(d: DimPlan, sizes: tuple[int, ...], axes: Axes) -> tuple[tuple[Axes, ...], bool]:
    """The axes of one dimension dealt out to its factors, major to minor, and whether that says everything."""
    if not d.even:
        return (axes,), True
    dealt = deal(axes, [*(sizes[f] for f in d.factors), d.rest])
    *split, left = dealt.without_ragged()
    return tuple(split), not dealt.rest and not left and dealt.ragged is None


def _whole_dims(rule: Rule, tensor: TensorMap) -> tuple[int, ...]:
    """The dimensions of a tensor that are one factor, never split."""
    alone = [(d, dim[0]) for d, dim in enumerate(tensor) if not isinstance(dim, Access) and len(dim) == 1]
    return tuple(d for d, f in alone if rule.factors[f].kind == "whole" and rule.factors[f].size > 1)


def _shifted(rule: Rule, dim: DimMap) -> int | None:
    """The factor of an access whose ends lie further from where equal splits expect them than a halo does."""
    if not isinstance(dim, Access) or dim.kernel_factor is not None:
        return None
    n = dim.size * dim.div
    ends = dim.add, dim.mul * (rule.factors[dim.factor].size - 1) + dim.add
    first, last = min(ends), max(ends)
    off = max(abs(first), abs(n - dim.div - last))
    return dim.factor if off * SHIFT_LIMIT > n else None


def _roomy(rule: Rule) -> tuple[tuple[int, ...], ...]:
    """For each tensor the pass factors that are dimensions of it and of all results, the largest first."""
    accessed = {f for t in rule.tensors for d in t if isinstance(d, Access) for f in dim_factors(d)}
    alone = [{d[0] for d in t if not isinstance(d, Access) and len(d) == 1} for t in rule.tensors]
    shared = [
        f
        for f, factor in enumerate(rule.factors)
        if factor.kind == "pass" and f not in accessed and all(f in a for a in alone[len(rule.operands) :])
    ]
    shared.sort(key=lambda f: -rule.factors[f].size)
    return tuple(tuple(f for f in shared if f in a) for a in alone)


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
        return DimPlan(number, dim.size, kept, 1, False)
    real = [f for f in dim if rule.factors[f].size != 1]
    whole = next((i for i, f in enumerate(real) if rule.factors[f].kind == "whole"), len(real))
    rest = prod(rule.factors[f].size for f in real[whole:])
    return DimPlan(number, rule.dim_size(dim), tuple(real[:whole]), rest, len(real) > 1)


def _takes_part(factor: Factor) -> bool:
    return factor.size > 1 and factor.kind != "whole"


def _volume(rule: Rule, tensor: TensorMap) -> int:
    n = 1
    for dim in tensor:
        n *= rule.dim_size(dim)
    return n
