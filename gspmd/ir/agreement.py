"""Whether the shardings around an op agree with its rule: the condition under which the op can run device by device.

They agree iff there is ONE assignment factor -> axes from which the sharding of every operand and result follows:

* a dimension made of factors f1 f2 ... (major to minor) is split over the axes of f1, then of f2, and so on; a minor
  factor has axes only where every more-major one is split to single elements, and then its shards must be even, since
  otherwise equal chunks of the dimension would straddle the factors;
* a factor has the same axes and the same chunk wherever it appears, and no two factors share an axis;
* an operand dimension read through an access may be split in any way (what it lacks is fetched);
* a `whole` factor has no axes;
* results are unreduced over exactly the axes of the factors that they lack and that leave partial values (`reduce`, and
  `lookup` in no result), and over those that an operand brings along: all operands of one `linear` group may be sums
  over the same axes, the others being reduced. `scan` and `select` factors are resolved by the op's own local body.

Paper section 4.2 and on (partitioning per operator); factors as in Shardy. Openness of dimensions and explicitly
replicated or manual axes play no part.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from types import MappingProxyType

from gspmd.ir.axes import Axes, as_set, first_overlap, overlaps, parts
from gspmd.ir.mesh import Mesh
from gspmd.ir.projection import deal
from gspmd.ir.rule import Access, DimMap, Rule, TensorMap
from gspmd.ir.sharding import Sharding

Shardings = tuple[Sharding, ...]
Pieces = tuple[tuple[int, Axes, int], ...]  # factor, its axes, elements of it in one shard


class _Disagreement(Exception):
    """Why shardings do not agree with a rule."""


@lru_cache(maxsize=1 << 16)
def assignment(rule: Rule, operands: Shardings, results: Shardings) -> Mapping[int, Axes] | str:
    """The axes of every factor (() for one that is not split), or a sentence that says why there is no assignment."""
    if not operands and not results:
        return MappingProxyType({})
    try:
        factors = _factor_axes(rule, operands, results)
        _check_unreduced(rule, operands, results, factors)
    except _Disagreement as why:
        return str(why)
    return MappingProxyType(factors)


def split_dim(rule: Rule, dim: DimMap, sharding: Sharding, number: int) -> Pieces | str:
    """How dimension `number` of a sharding falls on the factors of its map, the chunk of each with it.

    A sentence if it does not; () for an access. Every factor of the map is listed, with () where it is not split.
    """
    if isinstance(dim, Access):
        return ()
    return _split(rule, dim, sharding, number)


def _factor_axes(rule: Rule, operands: Shardings, results: Shardings) -> dict[int, Axes]:
    held: dict[int, tuple[Axes, int, str]] = {}
    for kind, maps, shardings in (("operand", rule.operands, operands), ("result", rule.results, results)):
        if len(maps) != len(shardings):
            raise _Disagreement(f"the rule has {len(maps)} {kind}s, the op {len(shardings)}")
        for i, (tensor, sharding) in enumerate(zip(maps, shardings, strict=True)):
            _collect(rule, tensor, sharding, f"{kind} {i}", held)
    mesh = (*operands, *results)[0].mesh
    factors = {f: held[f][0] if f in held else () for f in range(len(rule.factors))}
    for f, axes in factors.items():
        if axes and rule.factors[f].kind == "whole":
            raise _Disagreement(f"{held[f][2]} is split over {_show(axes, mesh)}, but the op needs it whole")
    clash = first_overlap([a for axes in factors.values() for a in axes])
    if clash is not None:
        p, q = (next(held[f][2] for f, axes in factors.items() if piece in axes) for piece in clash)
        raise _Disagreement(f"{p} and {q} are split over the same axis {clash[0].name}, but are independent")
    return factors


def _collect(
    rule: Rule, tensor: TensorMap, sharding: Sharding, name: str, held: dict[int, tuple[Axes, int, str]]
) -> None:
    if sharding.rank != len(tensor):
        raise _Disagreement(f"{name} has a sharding of rank {sharding.rank}, but {len(tensor)} dimensions")
    mesh = sharding.mesh
    for number, dim in enumerate(tensor):
        here = f"{name} dim {number}"
        pieces = split_dim(rule, dim, sharding, number)
        if isinstance(pieces, str):
            raise _Disagreement(f"{here} {pieces}")
        for f, axes, chunk in pieces:
            there_axes, there_chunk, there = held.setdefault(f, (axes, chunk, here))
            if axes != there_axes:
                raise _Disagreement(f"{there} is split over {_show(there_axes, mesh)}, {here} over {_show(axes, mesh)}")
            if chunk != there_chunk:
                raise _Disagreement(f"{there} has {there_chunk} elements in a shard, {here} has {chunk}")


def _split(rule: Rule, dim: tuple[int, ...], sharding: Sharding, number: int) -> Pieces | str:
    axes, sizes = sharding.dims[number].axes, rule.sizes(dim)
    if not axes:
        return tuple((f, (), n) for f, n in zip(dim, sizes, strict=True))
    if not dim:
        return f"carries no factor, but is split over {_show(axes, sharding.mesh)}"
    chunk = sharding.chunk(number, prod(sizes))
    if len(dim) == 1:
        return ((dim[0], axes, chunk),)
    dealt = deal(axes, sizes)
    if dealt.rest:
        return f"is split over {_show(axes, sharding.mesh)}, which does not fit its factors of sizes {list(sizes)}"
    if not prod(sizes):  # a dimension without elements says nothing of how large the shards of its factors are
        return tuple((f, axes, -(-n // parts(axes))) for f, axes, n in zip(dim, dealt.pieces, sizes, strict=True))
    # The dimension's chunk must be whole runs of what lies below the innermost factor that is split.
    last = max(i for i, piece in enumerate(dealt.pieces) if piece)
    below = max(prod(sizes[last + 1 :]), 1)
    held, count = chunk // below, parts(dealt.pieces[last])
    if chunk % below or (not dealt.leading and held * count != sizes[last]):
        return f"has shards of {chunk} elements, which are no runs of its factor of size {sizes[last]}"
    chunks = [held if i == last else 1 if piece else sizes[i] for i, piece in enumerate(dealt.pieces)]
    return tuple(zip(dim, dealt.pieces, chunks, strict=True))


def leaves_unreduced(rule: Rule, factor: int) -> bool:
    """Whether splitting the factor leaves the results unreduced by its monoid."""
    kind = rule.factors[factor].kind
    return kind == "reduce" or (kind == "lookup" and factor not in rule.result_factors())


def _check_unreduced(rule: Rule, operands: Shardings, results: Shardings, factors: Mapping[int, Axes]) -> None:
    axes, monoid = _carried(rule, operands)
    mesh = (*operands, *results)[0].mesh
    everywhere = tuple(a for held in factors.values() for a in held)
    if overlaps(axes, everywhere):
        raise _Disagreement(f"an operand is a sum over {_show(axes, mesh)}, over which another dimension is split")
    kept = rule.result_factors()
    for f, split in factors.items():
        if not split:
            continue
        factor = rule.factors[f]
        if leaves_unreduced(rule, f):
            if monoid is not None and monoid != factor.monoid:
                raise _Disagreement(f"the results would be unreduced both by {monoid} and by {factor.monoid}")
            axes, monoid = (*axes, *split), factor.monoid
        elif f not in kept and factor.kind == "pass" and factor.size > 1:
            raise _Disagreement(f"factor {f} is split over {_show(split, mesh)}, but no result has it")
    for i, result in enumerate(results):
        wanted = as_set(axes, result.mesh.axis_names)
        if result.unreduced != wanted or result.monoid != (monoid if wanted else None):
            is_, needs = _state(result.unreduced, result.monoid, result.mesh), _state(wanted, monoid, result.mesh)
            raise _Disagreement(f"result {i} is typed {is_}, but comes out {needs}")


def _carried(rule: Rule, operands: Shardings) -> tuple[Axes, str | None]:
    """The axes over which operands hold sums that the op passes on; () if all are reduced."""
    unreduced = tuple(i for i, s in enumerate(operands) if s.unreduced)
    if not unreduced:
        return (), None
    first = operands[unreduced[0]]
    names = ", ".join(map(str, unreduced))
    if unreduced not in [tuple(sorted(group)) for group in rule.linear]:
        allowed = " or ".join("{" + ", ".join(map(str, g)) + "}" for g in rule.linear) or "none"
        raise _Disagreement(f"operand {names} is unreduced, but the op is linear in {allowed} (all of a group at once)")
    for i in unreduced:
        if operands[i].unreduced != first.unreduced:
            raise _Disagreement(f"operands {names} are unreduced over different axes")
        if operands[i].monoid != "add":
            raise _Disagreement(f"operand {i} is unreduced by {operands[i].monoid}; an op can only pass on sums")
    return first.unreduced, "add"


def _state(axes: Axes, monoid: str | None, mesh: Mesh) -> str:
    return f"unreduced by {monoid} over {_show(axes, mesh)}" if axes else "reduced"


def _show(axes: Axes, mesh: Mesh) -> str:
    return "+".join(map(mesh.axis_text, axes)) or "nothing"
