"""Which ways there are to split one op: assignments of mesh axes to its factors.

Candidates are greedy merges of what its operands are and its results should be, in every order, made realisable: no
axis twice, nothing on `whole` factors, and in a dimension made of several factors axes on a minor one only below fully
split major ones, evenly but for the leading one. When what a tensor brings sits on a factor that cannot be split (or
only at the price of a halo), a candidate that moves it to another pass-through factor stands beside.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations

from gspmd.ir.axes import Axes, canonical, cut, free_prefix, is_prefix, overlaps, parts
from gspmd.ir.projection import deal, join, misfit
from gspmd.ir.rule import Access, DimMap, Rule, TensorMap
from gspmd.ir.sharding import DimSharding, Sharding

Assignment = tuple[tuple[int, Axes], ...]  # (factor, axes), by factor; factors that are whole are left out

_MOST_VIEWS = 4
_MOST_CANDIDATES = 64
_MOST_PLACES = 4
_UNSPLIT = DimSharding()


def project(rule: Rule, tensor: TensorMap, sharding: Sharding) -> dict[int, Axes]:
    """The axes of a tensor's dimensions dealt out to the factors, as far as the factors can express them."""
    out: dict[int, Axes] = {}
    for dim, held in zip(tensor, sharding.dims, strict=True):
        axes = held.axes
        if not axes:
            continue
        if isinstance(dim, Access):
            out.setdefault(rule.main_factor(dim), axes)
            continue
        dealt = deal(axes, rule.sizes(dim))
        for f, piece in zip(dim, dealt.pieces if dealt.leading else dealt.without_ragged(), strict=True):
            if piece:
                out.setdefault(f, piece)
    return out


def tensor_sharding(rule: Rule, tensor: TensorMap, assignment: dict[int, Axes], like: Sharding) -> Sharding:
    """The sharding of a tensor under an assignment, on the mesh of `like`; nothing unreduced."""
    dims = tuple(_dim_sharding(rule, d, assignment) for d in tensor)
    return Sharding(like.mesh, dims, manual=like.manual)


def _dim_sharding(rule: Rule, dim: DimMap, assignment: dict[int, Axes]) -> DimSharding:
    axes = dim_axes(rule, dim, assignment)
    if not axes:
        return _UNSPLIT
    if isinstance(dim, Access) or len(dim) == 1:
        return DimSharding(axes)
    # Shards are whole runs of what lies below the factor that is split.
    size, count = rule.dim_size(dim), parts(axes)
    below, first = size, 1
    for f in dim:
        first = rule.factors[f].size
        below //= max(first, 1)
        if first > 1:
            break
    chunk = -(-first // count) * below if count < first else -(-size // count)
    return DimSharding(axes, chunk=None if chunk == -(-size // count) else chunk)


def dim_axes(rule: Rule, dim: DimMap, assignment: dict[int, Axes]) -> Axes:
    """The axes of one dimension under an assignment."""
    if isinstance(dim, Access):
        return assignment.get(rule.main_factor(dim), ())
    return join([assignment.get(f, ()) for f in dim], rule.sizes(dim))


def _realisable(rule: Rule, assignment: dict[int, Axes]) -> dict[int, Axes]:
    """The assignment less what some tensor cannot express; a factor that goes may make others go."""
    left = {f: a for f, a in assignment.items() if a and rule.factors[f].kind != "whole"}
    products = dict.fromkeys(d for t in rule.tensors for d in t if not isinstance(d, Access) and len(d) > 1)
    changed = True
    while changed:
        changed = False
        for dim in products:
            while (i := misfit([left.get(f, ()) for f in dim], rule.sizes(dim))) is not None:
                del left[dim[i]]
                changed = True
    return left


@lru_cache(maxsize=1 << 14)
def candidates(rule: Rule, shardings: tuple[Sharding, ...]) -> tuple[Assignment, ...]:
    """The distinct assignments worth costing, given the sharding that each tensor has or should get."""
    views: list[Assignment] = []
    for tensor, sharding in zip(rule.tensors, shardings, strict=True):
        view = tuple(sorted(project(rule, tensor, sharding).items()))
        if view and view not in views:
            views.append(view)
    found: dict[Assignment, None] = {(): None}
    for k in range(1, min(len(views), _MOST_VIEWS) + 1):
        for order in permutations(views, k):
            merged = _merge(order)
            for variant in (merged, *_moved(rule, merged)):
                found.setdefault(tuple(sorted(_realisable(rule, variant).items())))
            if len(found) >= _MOST_CANDIDATES:
                return tuple(found)
    return tuple(found)


def _merge(order: tuple[Assignment, ...]) -> dict[int, Axes]:
    """Factor by factor, each view extends what the ones before it left free."""
    merged: dict[int, Axes] = {}
    used: list[Axes] = []
    for view in order:
        for f, axes in view:
            now = merged.get(f, ())
            if axes == now or not is_prefix(now, axes):
                continue
            rest = cut(axes, parts(now))
            more = free_prefix(rest[1] if rest else (), [a for axes_ in used for a in axes_])
            if more:
                merged[f] = canonical(now + more)
                used.append(more)
    return merged


def _moved(rule: Rule, assignment: dict[int, Axes]) -> list[dict[int, Axes]]:
    """Axes on factors that are whole or read through an access go to a pass factor with room: unsplit, large.

    One way for each pass factor that they may rather go to.
    """
    awkward = {d.factor for t in rule.tensors for d in t if isinstance(d, Access)}
    awkward |= {f for f, factor in enumerate(rule.factors) if factor.kind == "whole"}
    out = {f: a for f, a in assignment.items() if f not in awkward}
    shared = [
        f
        for f, factor in sorted(enumerate(rule.factors), key=lambda item: -item[1].size)
        if factor.kind == "pass" and f not in awkward and all(_carries(t, f) for t in rule.results)
    ]
    going = [f for f in awkward if assignment.get(f)]
    if not going or not shared:
        return [out]
    by_room = sorted(shared, key=lambda g: bool(out.get(g)))
    return [_placed(rule, assignment, out, going, [rather, *by_room]) for rather in by_room[:_MOST_PLACES]]


def _placed(
    rule: Rule, assignment: dict[int, Axes], kept: dict[int, Axes], going: list[int], places: list[int]
) -> dict[int, Axes]:
    """The kept assignment with the axes of factors on the first place that has room for them."""
    out = dict(kept)
    for f in going:
        axes = assignment[f]
        if any(overlaps(axes, a) for a in out.values()):
            continue
        for g in places:
            joined = canonical(out.get(g, ()) + axes)
            if parts(joined) <= rule.factors[g].size:
                out[g] = joined
                break
    return out


def _carries(tensor: TensorMap, factor: int) -> bool:
    return any(not isinstance(d, Access) and d == (factor,) for d in tensor)
