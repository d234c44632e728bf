"""One op, one moment: which of its tensors learn what from the others.

Pure: a function of the plan, the level and the tensors' states, so that its answers are remembered and a model's
hundredth layer costs a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspmd.ir.axes import Axes, canonical, free_prefix, is_prefix, overlaps, parts, without_prefix
from gspmd.ir.mesh import Axis
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.propagation.levels import MOVED, SHIFTED
from gspmd.propagation.project import DimPlan, Plan, View, view_of
from gspmd.propagation.states import States


@dataclass(frozen=True, slots=True)
class Move:
    """Axes that a dimension gained, and the tensor of the op and its dimension that they came from."""

    dim: int
    axes: Axes
    source: int
    source_dim: int


@dataclass(frozen=True, slots=True)
class Change:
    """What one tensor of an op learned: its new state and where each part of it came from."""

    tensor: int
    state: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a source would like one factor of the target to be split over; `order` says who is heard first."""

    order: tuple[int, int, int, int, int]
    plan: DimPlan
    factor: int
    axes: Axes
    source: int
    source_dim: int


def apply(plan: Plan, states: States, numbers: Sequence[int], level: int, heard: int = 0) -> tuple[Change, ...]:
    """The changes to an op's tensors, in these states, by steps of at most this level; all from one snapshot.

    Of annotations those up to the priority `heard` count.
    """
    shardings = [states.items[n].sharding for n in numbers]
    views = [view_of(plan, t, s, heard) for t, s in enumerate(shardings)]
    changes: list[Change] = []
    for t, sharding in enumerate(shardings):
        wishes = _wishes(plan, sharding, views, t, level)
        if not wishes:
            continue
        dims, moves = _grant(plan, sharding, views[t], wishes)
        if moves:
            number = states.number(states.items[numbers[t]].shape, sharding.with_dims(dims))
            changes.append(Change(t, number, moves))
    return tuple(changes)


def may_grow(dim: DimSharding) -> bool:
    """Whether propagation may split a dimension further: open, and with shards of the usual size."""
    return dim.open and dim.chunk is None


def fits(d: DimPlan, factor_size: int, old: int, new: int) -> bool:
    """Whether a factor's split into `old` parts may grow to `new`: never empty by count, and each shard nests."""
    if d.even:
        return factor_size % new == 0
    if new > d.size:
        return False
    return old == 1 or -(-d.size // new) * (new // old) == -(-d.size // old)


def _wishes(plan: Plan, sharding: Sharding, views: list[View], t: int, level: int) -> list[_Wish]:
    """What the other tensors wish for each factor of the target that may still grow, in the order of hearing."""
    found: list[_Wish] = []
    for d in plan.tensors[t]:
        if d.dim in views[t].hidden or not may_grow(sharding.dims[d.dim]):
            continue
        for f in d.factors:
            wishes = _factor_wishes(plan, d, views, t, f, level)
            if not wishes and level >= MOVED:
                moved = _moved_wish(plan, d, sharding, views, t, f)
                wishes = [] if moved is None else [moved]
            found += wishes
    found.sort(key=lambda w: w.order)
    return found


def _factor_wishes(plan: Plan, d: DimPlan, views: list[View], t: int, f: int, level: int) -> list[_Wish]:
    """The wishes for a factor: lowest level, most in common with the target, most parts, first operand.

    A later one adds to those before it if it is longer and agrees with them, and stands in where their axes are taken.
    """
    mine = views[t].axes[f]
    least = SHIFTED if f in plan.shifted else 0
    wishes: list[_Wish] = []
    for s, view in enumerate(views):
        rank = max(plan.levels[s][t], least)
        if rank <= level and (theirs := view.axes.get(f)) and theirs != mine and is_prefix(mine, theirs):
            order = (rank, -plan.shared[s][t], -parts(theirs), s, f)
            wishes.append(_Wish(order, d, f, theirs, s, view.dims[f]))
    return wishes


def _moved_wish(plan: Plan, d: DimPlan, sharding: Sharding, views: list[View], t: int, f: int) -> _Wish | None:
    """What a tensor whose axes the op leaves stranded wishes for a factor of the target: that it takes them over.

    They go to a factor that is a dimension of both: an unsplit one if there is one, the largest. Little says nothing
    of much.
    """
    mine = views[t].axes[f]
    for s, view in enumerate(views):
        if s == t or not view.stranded or f not in plan.roomy[t] or 2 * plan.volumes[s] < plan.volumes[t]:
            continue
        source_dim, axes = next(((n, a) for n, a in view.stranded if not overlaps(a, sharding.used)), (-1, ()))
        theirs = canonical(mine + axes)
        # A factor that the source's shards do not fit is in no view.
        room = [g for g in plan.roomy[s] if g in view.axes and parts(view.axes[g]) * parts(axes) <= plan.sizes[g]]
        taken = min(room, key=lambda g: bool(view.axes[g]), default=None)
        if axes and f == taken and is_prefix(view.axes[f], mine):
            return _Wish((MOVED, -plan.volumes[s], -parts(theirs), s, f), d, f, theirs, s, source_dim)
    return None


def _grant(
    plan: Plan, sharding: Sharding, view: View, wishes: list[_Wish]
) -> tuple[tuple[DimSharding, ...], tuple[Move, ...]]:
    """The target's new dimensions after as many wishes as its free axes allow, and where they came from."""
    axes = dict(view.axes)
    used = [*sharding.used, *sharding.unreduced, *sharding.replicated, *sharding.manual]
    moves: list[Move] = []
    touched: dict[int, DimPlan] = {}
    waiting = wishes
    while waiting:
        later: list[_Wish] = []
        for w in waiting:
            if not _is_reachable(w, axes, plan.sizes):
                later.append(w)  # a more major factor may yet be used up by a later wish
                continue
            mine = axes[w.factor]
            gained = _gain(w, mine, used, plan.sizes[w.factor]) if is_prefix(mine, w.axes) else ()
            if gained:
                axes[w.factor] = canonical(axes[w.factor] + gained)
                used += gained
                touched[w.plan.dim] = w.plan
                moves.append(Move(w.plan.dim, gained, w.source, w.source_dim))
        if len(later) == len(waiting):
            break
        waiting = later
    dims = list(sharding.dims)
    for number, d in touched.items():
        dims[number] = DimSharding(canonical(a for f in d.factors for a in axes[f]), open=True)
    return tuple(dims), tuple(moves)


def _is_reachable(w: _Wish, axes: dict[int, Axes], sizes: tuple[int, ...]) -> bool:
    """Whether all factors of the dimension that are more major than the wish's are fully split."""
    for f in w.plan.factors:
        if f == w.factor:
            return True
        if parts(axes[f]) != sizes[f]:
            return False
    return True


def _gain(w: _Wish, mine: Axes, used: list[Axis], factor_size: int) -> Axes:
    """The part of a wish, beyond what is there, that uses free axes only and fits the dimension."""
    gained = free_prefix(without_prefix(w.axes, mine), used)
    old = parts(mine)
    while gained and not fits(w.plan, factor_size, old, old * parts(gained)):
        gained = gained[:-1]
    return gained
