"""The shortest way between two shardings of one tensor: A* over what each device holds.

A state is, for each dimension, an ordered list of *atoms* (mesh-axis pieces cut where source or target cut them), and
the set of atoms over which the value is unreduced. What both ends of a dimension have in common, major first, takes no
part. A move is one collective. The search is bounded in memory: no state on the way holds more per device than the
larger end, or than a given multiple of it (paper section 4.5; the moves are those of the literature on redistribution).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import permutations
from math import lcm, prod

from gspmd.ir.axes import Axes, atoms, common_prefix, cut_points, first_overlap, parts, without_prefix
from gspmd.ir.mesh import Axis
from gspmd.ir.sharding import Sharding

# What one more collective costs, in bytes on the wire: latency, so that few large ones win over many small.
LATENCY_BYTES = 100.0
# After so many settled states the search turns greedy: its plans stay within about 1.2 of the best. After three times
# as many it goes by the atoms that are out of place alone, so that time stays bounded on meshes of many small axes.
_PATIENCE = 300
_GREED = 5.0
_HASTE = 3 * _PATIENCE


class MoveKind(Enum):
    """The kinds of moves, each one collective (a slice needs no communication)."""

    GATHER = auto()
    SLICE = auto()
    TRANSPOSE = auto()
    PERMUTE = auto()
    REDUCE = auto()
    REDUCE_SCATTER = auto()


@dataclass(frozen=True, slots=True)
class State:
    """Atoms of each dimension beyond the common prefix, and the atoms over which the value is unreduced."""

    dims: tuple[Axes, ...]
    unreduced: frozenset[Axis]


@dataclass(frozen=True, slots=True)
class Move:
    """One collective: what kind, on which dimensions, over which atoms, and its bytes on the wire per device."""

    kind: MoveKind
    wire: float
    dim: int = -1
    to_dim: int = -1
    axes: Axes = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One search: the sizes left to split in each dimension, the ends, and what the ends fix."""

    base: tuple[int, ...]  # elements of each dimension within the common prefix's shard
    prefixes: tuple[Axes, ...]
    itemsize: int
    source: State
    target: State
    home: dict[Axis, int]  # the dimension in which the target wants an atom
    known: Axes  # in an order that all ranks share
    points: dict[str, tuple[int, ...]]  # where the atoms are cut

    @staticmethod
    def of(shape: tuple[int, ...], itemsize: int, source: Sharding, target: Sharding, finer: bool = False) -> Problem:
        """Cut both ends into atoms; `finer` also cuts atoms where a smaller one could trade places with a part."""
        pairs = [(a.axes, b.axes) for a, b in zip(source.dims, target.dims, strict=True)]
        prefixes = tuple(common_prefix(a, b) for a, b in pairs)
        here = [without_prefix(a, p) for (a, _), p in zip(pairs, prefixes, strict=True)]
        there = [without_prefix(b, p) for (_, b), p in zip(pairs, prefixes, strict=True)]
        points = cut_points(*here, *there, source.unreduced, target.unreduced)
        if finer:
            points = _finer(points, {p for axes in (*here, *there) for p in atoms(axes, points)})
        start = State(tuple(atoms(a, points) for a in here), frozenset(atoms(source.unreduced, points)))
        goal = State(tuple(atoms(b, points) for b in there), frozenset(atoms(target.unreduced, points)))
        base = tuple(-(-n // parts(p)) for n, p in zip(shape, prefixes, strict=True))
        home = {p: d for d, axes in enumerate(goal.dims) for p in axes}
        known = {p for axes in (*start.dims, *goal.dims) for p in axes} | start.unreduced
        return Problem(base, prefixes, itemsize, start, goal, home, tuple(sorted(known, key=_by_name)), points)

    @property
    def trades(self) -> bool:
        """Whether an atom changes dimension while others of another size move, so that finer ones may help."""
        moved = {p for d, axes in enumerate(self.source.dims) for p in axes if self.home.get(p, d) != d}
        others = {p for axes in (*self.source.dims, *self.target.dims) for p in axes}
        return any(p.name != q.name and p.size != q.size for p in moved for q in others)

    def local_bytes(self, state: State) -> int:
        """What one device holds in a state."""
        return self.itemsize * prod(-(-n // parts(d)) for n, d in zip(self.base, state.dims, strict=True))

    def room(self) -> int:
        """What the larger end holds on one device, its dimensions rounded up to what divides evenly at both ends."""
        shards = [(parts(a), parts(b)) for a, b in zip(self.source.dims, self.target.dims, strict=True)]
        even = [-(-n // lcm(*pair)) * lcm(*pair) for n, pair in zip(self.base, shards, strict=True)]
        ends = (prod(n // pair[end] for n, pair in zip(even, shards, strict=True)) for end in (0, 1))
        return self.itemsize * max(ends)

    def remaining(self, state: State) -> float:
        """A lower bound on the wire bytes still to come: what the worst placed device lacks of its target."""
        if state == self.target:
            return 0.0
        have = float(self.itemsize)
        for n, a, b in zip(self.base, state.dims, self.target.dims, strict=True):
            if not _nested(a, b):
                have = 0.0
                break
            have *= n / max(parts(a), parts(b))
        local = self.local_bytes(self.target)
        group = prod(p.size for p in state.unreduced - self.target.unreduced)
        return max(local - have, (group - 1) / group * local, 0.0) * 0.999 + 1.0

    def misplaced(self, state: State) -> int:
        """How many atoms have to leave a dimension, or come to one, or be reduced."""
        count = len(state.unreduced - self.target.unreduced)
        for a, b in zip(state.dims, self.target.dims, strict=True):
            alike = len(common_prefix(a, b))
            count += len(a) + len(b) - 2 * alike
        return count


def _finer(points: dict[str, tuple[int, ...]], pieces: set[Axis]) -> dict[str, tuple[int, ...]]:
    """The cut points, and in each piece those that part off a major piece of another axis's size."""
    found = {name: set(cuts) for name, cuts in points.items()}
    for p in pieces:
        found[p.name].update(p.pre * q.size for q in pieces if q.name != p.name and p.size % q.size == 0)
    return {name: tuple(sorted(cuts)) for name, cuts in found.items()}


def _by_name(p: Axis) -> tuple[str, int, int]:
    return p.name, p.pre, p.size


def _nested(a: Axes, b: Axes) -> bool:
    n = min(len(a), len(b))
    return a[:n] == b[:n]


def search(problem: Problem, slack: int = 1) -> list[tuple[Move, State]] | None:
    """The moves from source to target, each with the state it leads to; None if there is no way.

    No state on the way holds more than `slack` times what the larger end does, rounded up to even shards.
    """
    best = {problem.source: 0.0}
    back: dict[State, tuple[State, Move]] = {}
    queue: list[tuple[float, int, State]] = [(problem.remaining(problem.source), 0, problem.source)]
    bound = slack * problem.room()
    settled: set[State] = set()
    clash = first_overlap(tuple(problem.known)) is not None
    weight, tick, hasty = 1.0, 0, float(problem.local_bytes(problem.source) + problem.local_bytes(problem.target))

    def priority(state: State) -> float:
        ahead = best[state] + weight * problem.remaining(state)
        return ahead if len(settled) < _HASTE else ahead + _GREED * hasty * problem.misplaced(state)

    while queue:
        state = heapq.heappop(queue)[2]
        if state == problem.target:
            return _trail(back, problem)
        if state in settled:
            continue
        settled.add(state)
        if len(settled) in (_PATIENCE, _HASTE):
            weight = _GREED
            queue = [(priority(s), i, s) for _, i, s in queue if s not in settled]
            heapq.heapify(queue)
        for move, reached in _moves(problem, state):
            if reached in settled or problem.local_bytes(reached) > bound:
                continue
            if clash and not _compatible(state, reached):
                continue
            cost = best[state] + move.wire + (LATENCY_BYTES if move.wire else 1.0)
            if cost < best.get(reached, float("inf")):
                best[reached], back[reached] = cost, (state, move)
                tick += 1
                heapq.heappush(queue, (priority(reached), tick, reached))
    return None


def _compatible(a: State, b: State) -> bool:
    """Whether one chain of cut points has the digits of both: an axis of 6 in halves and in thirds has none."""
    pieces = {p for state in (a, b) for axes in (*state.dims, state.unreduced) for p in axes}
    return first_overlap(tuple(pieces)) is None


def _trail(back: dict[State, tuple[State, Move]], problem: Problem) -> list[tuple[Move, State]]:
    steps: list[tuple[Move, State]] = []
    state = problem.target
    while state != problem.source:
        before, move = back[state]
        steps.append((move, state))
        state = before
    return steps[::-1]


def _moves(problem: Problem, state: State) -> Iterator[tuple[Move, State]]:
    held = problem.local_bytes(state)
    used = state.unreduced.union(*state.dims)
    for d in range(len(state.dims)):
        yield from _leaving(problem, state, d, held)
        yield from _slices(problem, state, d, used)
        yield from _permutes(problem, state, d, used, held)
    yield from _reductions(problem, state, held)
    if state.unreduced == problem.target.unreduced and all(
        parts(a) == parts(b) for a, b in zip(state.dims, problem.target.dims, strict=True)
    ):
        yield Move(MoveKind.PERMUTE, held), problem.target


def _put(state: State, *changes: tuple[int, Axes]) -> State:
    dims = list(state.dims)
    for d, axes in changes:
        dims[d] = axes
    return State(tuple(dims), state.unreduced)


def _leaving(problem: Problem, state: State, d: int, held: int) -> Iterator[tuple[Move, State]]:
    """The k minor atoms of a dimension are gathered, or go to another dimension."""
    axes = state.dims[d]
    for k in range(1, len(axes) + 1):
        moving, rest = axes[-k:], axes[:-k]
        n = parts(moving)
        gathered = _put(state, (d, rest))
        yield Move(MoveKind.GATHER, (n - 1) / n * problem.local_bytes(gathered), d, axes=moving), gathered
        for e in range(len(state.dims)):
            if e != d and any(problem.home.get(p) == e for p in moving):
                moved = _put(state, (d, rest), (e, state.dims[e] + moving))
                yield Move(MoveKind.TRANSPOSE, (n - 1) / n * held, d, e, moving), moved


def _slices(problem: Problem, state: State, d: int, used: frozenset[Axis]) -> Iterator[tuple[Move, State]]:
    """An atom of the target that nothing uses: slice, no bytes.

    Wanted elsewhere it may still fill up a dimension's number of shards, so that one permute brings all home.
    """
    room = parts(problem.target.dims[d]) // parts(state.dims[d])
    for p, home in problem.home.items():
        if p not in used and (home == d or (room > 1 and room % p.size == 0)):
            yield Move(MoveKind.SLICE, 0.0, d, axes=(p,)), _put(state, (d, (*state.dims[d], p)))


def _permutes(problem: Problem, state: State, d: int, used: frozenset[Axis], held: int) -> Iterator[tuple[Move, State]]:
    """Tiles change places: atoms reordered, replaced by unused ones of the same size, or swapped between dims."""
    axes = state.dims[d]
    move = Move(MoveKind.PERMUTE, held)
    if 1 < len(axes) <= 4:
        for order in permutations(axes):
            if order != axes:
                yield move, _put(state, (d, order))
    for i, p in enumerate(axes):
        for q in problem.known:
            if q not in used and q.size == p.size and q in problem.home:
                yield move, _put(state, (d, (*axes[:i], q, *axes[i + 1 :])))
        for e in range(d + 1, len(state.dims)):
            other = state.dims[e]
            for j, q in enumerate(other):
                if q.size == p.size:
                    swapped = (d, (*axes[:i], q, *axes[i + 1 :])), (e, (*other[:j], p, *other[j + 1 :]))
                    yield move, _put(state, *swapped)


def _reductions(problem: Problem, state: State, held: int) -> Iterator[tuple[Move, State]]:
    """Some of the unreduced atoms are reduced, and the result kept whole or scattered over a dimension.

    Reduced together are all of them, all that no dimension wants, or one. Scattered together are those that stand side
    by side in a dimension of the target, or all that dimensions want; one after the other sends no more bytes.
    """
    going = tuple(sorted(state.unreduced - problem.target.unreduced, key=_by_name))
    unwanted = tuple(p for p in going if p not in problem.home)
    for chosen in dict.fromkeys((going, unwanted, *((p,) for p in going))):
        if chosen:
            n = parts(chosen)
            left = State(state.dims, state.unreduced.difference(chosen))
            yield Move(MoveKind.REDUCE, 2 * (n - 1) / n * held, axes=chosen), left
    wanted = [tuple(p for p in axes if p in going) for axes in problem.target.dims]
    runs = {axes[i:j] for axes in wanted for j in range(1, len(axes) + 1) for i in range(j)}
    runs |= {tuple(p for axes in wanted for p in axes)} - {()}
    for chosen in sorted(runs, key=lambda axes: [_by_name(p) for p in axes]):
        n = parts(chosen)
        for d, axes in enumerate(state.dims):
            dims = _put(state, (d, axes + chosen)).dims
            scattered = State(dims, state.unreduced.difference(chosen))
            yield Move(MoveKind.REDUCE_SCATTER, (n - 1) / n * held, d, axes=chosen), scattered
