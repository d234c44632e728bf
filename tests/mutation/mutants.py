"""The ways in which a factor rule can be wrong: each a name and the altered rule.

A name says what was altered by number, so that one mutant of an op alters its rule for every example that it fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from gspmd.ir.opdef import OpDef, Types
from gspmd.ir.rule import Access, DimMap, FactorKind, Rule

_OTHER_MONOID = {"add": "max", "mul": "add", "max": "min", "min": "max", "and": "or", "or": "and", "xor": "or"}
# What each kind is mistaken for. (A pass factor called whole is no mistake, only a chance lost.)
_OTHER_KIND: dict[str, tuple[FactorKind, ...]] = {
    "pass": ("reduce", "lookup"),
    "reduce": ("pass",),
    "lookup": ("pass",),
    "select": ("pass", "reduce"),
    "scan": ("pass", "reduce"),
    "whole": ("pass",),
}


def mutants(op: OpDef[Any], rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Every alteration of a rule of an op that leaves it a rule."""
    # Only where the local body is derived from the rule does anybody ask whether values depend on positions.
    positions = () if op.localize is not None else _positions(rule)
    for name, altered in (*_maps(rule), *_factors(rule), *positions, *_linear(rule)):
        if altered != rule:
            yield name, altered


def mutant_of(op: OpDef[Any], name: str) -> OpDef[Any]:
    """The op with its rule altered as the name says, wherever that fits."""
    original = op.rule
    assert original is not None

    def altered(operands: Types, results: Types, attrs: Any) -> Rule:
        rule = original(operands, results, attrs)
        return dict(mutants(op, rule)).get(name, rule)

    return replace(op, rule=altered)


def _maps(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """What tensors' dimensions are made of: factors dropped or exchanged, accesses shifted, scaled or mirrored."""
    for kind, tensors in (("operand", rule.operands), ("result", rule.results)):
        for t, tensor in enumerate(tensors):
            for d, dim in enumerate(tensor):
                place = f"{kind} {t} dim {d}"
                for what, other in _dims(dim):
                    yield f"{what} {place}", _with_dim(rule, kind, t, {d: other})
            for d, e in combinations(range(len(tensor)), 2):
                exchanged = {d: tensor[e], e: tensor[d]}
                yield f"swap {kind} {t} dims {d} and {e}", _with_dim(rule, kind, t, exchanged)


def _dims(dim: DimMap) -> Iterator[tuple[str, DimMap]]:
    if not isinstance(dim, Access):
        for i in range(len(dim)):
            yield f"drop factor {i} of", dim[:i] + dim[i + 1 :]
        if len(dim) > 1:
            yield "reverse the factors of", dim[::-1]
        return
    yield "drop the access of", (dim.factor,)
    yield "add 1 to the access of", replace(dim, add=dim.add + 1)
    yield "take 1 from the access of", replace(dim, add=dim.add - 1)
    yield "stretch the access of", replace(dim, mul=dim.mul * 2)
    yield "mirror the access of", replace(dim, mul=-dim.mul)
    yield "divide the access of", replace(dim, div=dim.div * 2)


def _with_dim(rule: Rule, kind: str, number: int, dims: dict[int, DimMap]) -> Rule:
    tensors = list(rule.operands if kind == "operand" else rule.results)
    tensors[number] = tuple(dims.get(d, dim) for d, dim in enumerate(tensors[number]))
    return replace(rule, operands=tuple(tensors)) if kind == "operand" else replace(rule, results=tuple(tensors))


def _factors(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """What factors are: another kind, another monoid, another direction."""
    for f, factor in enumerate(rule.factors):
        if factor.size < 2:
            continue  # never split: whatever it is called is true of it
        carried = f in rule.result_factors()
        for kind in _OTHER_KIND[factor.kind]:
            if carried and {kind, factor.kind} == {"pass", "lookup"}:
                continue  # in a result both say the same: each index stands alone
            monoid = None if kind == "pass" else factor.monoid or "add"
            yield f"{kind} factor {f}", _with_factor(rule, f, kind=kind, monoid=monoid)
        if factor.monoid in _OTHER_MONOID and not (carried and factor.kind == "lookup"):  # there nothing is combined
            yield f"other monoid of factor {f}", _with_factor(rule, f, monoid=_OTHER_MONOID[factor.monoid])
        if factor.kind == "scan":
            yield f"other direction of factor {f}", _with_factor(rule, f, reverse=not factor.reverse)


def _positions(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Positions that do or do not matter."""
    for f, factor in enumerate(rule.factors):
        if factor.size > 1 and factor.kind == "pass" and all((f,) in result for result in rule.results):
            yield f"other position flag of factor {f}", _with_factor(rule, f, position=not factor.position)


def _with_factor(rule: Rule, number: int, **changes: Any) -> Rule:
    factors = tuple(replace(f, **changes) if i == number else f for i, f in enumerate(rule.factors))
    return replace(rule, factors=factors)


def _linear(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Sums that may pass: a group too many, a group too few."""
    numbers = range(len(rule.operands))
    known = {tuple(sorted(group)) for group in rule.linear}
    for group in {(i,) for i in numbers} | ({tuple(numbers)} if numbers else set()):
        if group not in known:
            yield f"claim linear in {group}", replace(rule, linear=(*rule.linear, group))
    for group in rule.linear:
        yield f"drop linear in {group}", replace(rule, linear=tuple(g for g in rule.linear if g != group))
