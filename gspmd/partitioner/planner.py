"""The reshard planner: from any sharding of a tensor to any other, as a chain of collectives.

`plan` is pure and memoised: the choice of a partitioning asks it for costs, the `collectives` stage for steps. The
search works on axes as if chunks nested; a dimension that does not divide evenly then gets a `rechunk` where a step
needs other chunks than the ones that it finds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes, atoms, canonical, contains, difference, intersection, parts, without_prefix
from gspmd.ir.errors import PartitionError
from gspmd.ir.opdef import OpDef
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.ops import collective as ops
from gspmd.ops.hold_once import HOLD_ONCE
from gspmd.ops.rechunk import RECHUNK
from gspmd.partitioner.search import LATENCY_BYTES, Move, MoveKind, Problem, State, search


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One collective of a plan on global types: the op, its attributes, the sharding after it, its wire bytes."""

    op: OpDef[Any]
    attrs: Attrs
    sharding: Sharding
    wire_bytes: float


@dataclass(frozen=True, slots=True)
class Plan:
    """How to reshard: the steps, their wire bytes per device, and the cost (wire bytes plus latency)."""

    steps: tuple[PlanStep, ...]
    wire_bytes: float
    cost: float


_NOTHING = Plan((), 0.0, 0.0)


@lru_cache(maxsize=1 << 16)
def plan(shape: tuple[int, ...], itemsize: int, source: Sharding, target: Sharding) -> Plan:
    """The cheapest chain found from `source` to `target`.

    What is to be unreduced where the source is not becomes so last, at no cost. Raises PartitionError if the target
    differs in mesh, manual axes or monoid.
    """
    source, target = (s.normal(shape).settled() for s in (source, target))
    if source == target:
        return _NOTHING
    _check_possible(source, target)
    added = difference(target.unreduced, source.unreduced)
    if added:
        return _parted(shape, itemsize, source, target, added)
    problems = [Problem.of(shape, itemsize, source, target)]
    if problems[0].trades:
        problems.append(Problem.of(shape, itemsize, source, target, finer=True))
    # Within the memory of the larger end, if it can be: what padding adds to small dimensions may ask for more.
    slack = 1
    while slack <= 2 * prod(shape) + 1:
        plans = [_solved(problem, shape, source, target, slack) for problem in problems]
        found = min((p for p in plans if p is not None), key=lambda p: p.cost, default=None)
        if found is not None:
            return found
        slack *= 2
    raise PartitionError(f"no way from {source.text(shape)} to {target.text(shape)}")


def _solved(problem: Problem, shape: tuple[int, ...], source: Sharding, target: Sharding, slack: int) -> Plan | None:
    """The plan for a problem; None if there is no way."""
    moves = search(problem, slack)
    if moves is None:
        return None
    trail = _Trail(shape, problem.itemsize, source, target, problem)
    for move, state in _slices_joined(moves):
        trail.follow(move, state)
    trail.finish()
    wire = sum(s.wire_bytes for s in trail.steps)
    cost = wire + sum(LATENCY_BYTES if s.wire_bytes else 1.0 for s in trail.steps)
    return Plan(tuple(trail.steps), wire, cost)


def _slices_joined(moves: list[tuple[Move, State]]) -> list[tuple[Move, State]]:
    """Slices of one dimension in a row as one, so that no chunk between has to divide."""
    out: list[tuple[Move, State]] = []
    for move, state in moves:
        if out and move.kind is out[-1][0].kind is MoveKind.SLICE and move.dim == out[-1][0].dim:
            move = replace(move, axes=canonical(out.pop()[0].axes + move.axes))
        out.append((move, state))
    return out


def _parted(shape: tuple[int, ...], itemsize: int, source: Sharding, target: Sharding, added: Axes) -> Plan:
    """The plan for a target that is unreduced over more axes than the source; what is split over them stays so."""
    before = target.with_unreduced(difference(target.unreduced, added), target.monoid)
    pairs = zip(source.dims, target.dims, strict=True)
    dims = tuple(s if not t.axes and all(contains(added, a) for a in s.axes) else t for s, t in pairs)
    first = plan(shape, itemsize, source, before.with_dims(dims))
    step = PlanStep(HOLD_ONCE, ops.AllReduceAttrs(added, str(target.monoid)), target, 0.0)
    return Plan((*first.steps, step), first.wire_bytes, first.cost + 1.0)


def _check_possible(source: Sharding, target: Sharding) -> None:
    if source.mesh != target.mesh:
        raise PartitionError(f"cannot reshard between meshes {source.mesh.text()} and {target.mesh.text()}")
    if source.manual != target.manual:
        raise PartitionError(f"cannot reshard between manual axes: {source.text()} to {target.text()}")
    kept = intersection(target.unreduced, source.unreduced)
    if kept and target.monoid != source.monoid:
        raise PartitionError(f"cannot combine by another monoid: {source.text()} to {target.text()}")


class _Trail:
    """Turns moves into steps, following the size of the chunks."""

    def __init__(
        self, shape: tuple[int, ...], itemsize: int, source: Sharding, target: Sharding, problem: Problem
    ) -> None:
        self.shape, self.itemsize, self.target, self.problem = shape, itemsize, target, problem
        self.at = source
        self.steps: list[PlanStep] = []

    def follow(self, move: Move, state: State) -> None:
        """Append what one move takes."""
        if move.kind is MoveKind.PERMUTE:
            self._permute(state)
        elif move.kind is MoveKind.GATHER:
            self._step(ops.ALL_GATHER, ops.DimAxesAttrs(move.dim, move.axes))
        elif move.kind is MoveKind.SLICE:
            self._make_room(move.dim, move.axes)
            self._step(ops.ALL_SLICE, ops.DimAxesAttrs(move.dim, move.axes))
        elif move.kind is MoveKind.TRANSPOSE:
            self._make_room(move.to_dim, move.axes)
            self._step(ops.ALL_TO_ALL, ops.AllToAllAttrs(move.dim, move.to_dim, move.axes))
        elif move.kind is MoveKind.REDUCE:
            self._step(ops.ALL_REDUCE, ops.AllReduceAttrs(move.axes, str(self.at.monoid)))
        else:
            self._make_room(move.dim, move.axes)
            self._step(ops.REDUCE_SCATTER, ops.ReduceScatterAttrs(move.dim, move.axes, str(self.at.monoid)))

    def finish(self) -> None:
        """Give every dimension the chunks that the target has."""
        for d, n in enumerate(self.shape):
            self._rechunk(d, self.target.chunk(d, n))

    def _make_room(self, dim: int, axes: Axes) -> None:
        """Before axes join a split dimension its chunk must divide among them."""
        if not self.at.dims[dim].axes:
            return
        n, count = self.shape[dim], parts(axes)
        if self.at.chunk(dim, n) % count:
            self._rechunk(dim, count * -(-n // (self.at.dims[dim].parts * count)))

    def _rechunk(self, dim: int, chunk: int) -> None:
        if chunk == self.at.chunk(dim, self.shape[dim]):
            return
        dims = list(self.at.dims)
        dims[dim] = DimSharding(dims[dim].axes, chunk=chunk)
        after = self.at.with_dims(tuple(dims)).normal(self.shape)
        wire = rechunk_elements(self.shape[dim], dims[dim].parts, self.at.chunk(dim, self.shape[dim]), chunk)
        row = prod(self.at.local_shape(self.shape)) // max(self.at.chunk(dim, self.shape[dim]), 1)
        self._append(RECHUNK, ops.ReshardAttrs(after), after, wire * row * self.itemsize)

    def _permute(self, state: State) -> None:
        """Tiles move to the devices that hold the same tile indices under the new axes."""
        dims = tuple(
            DimSharding(canonical(prefix + axes), chunk=held.chunk)
            for prefix, axes, held in zip(self.problem.prefixes, state.dims, self.at.dims, strict=True)
        )
        after = self.at.with_dims(dims).normal(self.shape)
        changed = [d for d, (a, b) in enumerate(zip(self.at.dims, dims, strict=True)) if a.axes != b.axes]
        source = tuple(p for d in changed for p in self._atoms(self.at.dims[d].axes, d))
        target = tuple(p for d in changed for p in state.dims[d])
        source += tuple(p for p in target if p not in source)
        target += tuple(p for p in source if p not in target)
        wire = self.itemsize * prod(self.at.local_shape(self.shape))
        attrs = ops.PermuteAttrs(canonical(source), canonical(target), after)
        self._append(ops.COLLECTIVE_PERMUTE, attrs, after, float(wire))

    def _atoms(self, axes: Axes, dim: int) -> Axes:
        return atoms(without_prefix(axes, self.problem.prefixes[dim]), self.problem.points)

    def _step(self, op: OpDef[Any], attrs: Attrs) -> None:
        before = TensorType("i8", self.shape, self.at)
        after = op.infer((before,), attrs, ())[0].sharding
        assert after is not None
        wire = 0.0
        if op.traffic is not None:
            wire = op.traffic(attrs, *self._padded_bytes(after)).wire_bytes
        self._append(op, attrs, after, wire)

    def _padded_bytes(self, after: Sharding) -> tuple[int, int]:
        """Bytes of a device's operand and result, each padded to where the other's pieces fit."""
        before_shape, after_shape = list(self.at.local_shape(self.shape)), list(after.local_shape(self.shape))
        for d, (a, b) in enumerate(zip(self.at.dims, after.dims, strict=True)):
            if a.parts < b.parts:
                before_shape[d] = after_shape[d] * (b.parts // a.parts)
            elif a.parts > b.parts:
                after_shape[d] = before_shape[d] * (a.parts // b.parts)
        return self.itemsize * prod(before_shape), self.itemsize * prod(after_shape)

    def _append(self, op: OpDef[Any], attrs: Attrs, after: Sharding, wire: float) -> None:
        self.steps.append(PlanStep(op, attrs, after, wire))
        self.at = after


def rechunk_elements(n: int, parts: int, chunk: int, wanted: int) -> int:
    """Elements along a dimension that one device must receive, at most, when chunks change size.

    Device i goes from [i*chunk, ...) to [i*wanted, ...); what it lacks grows with i until it is a whole chunk.
    """
    last = min(parts, -(-n // wanted)) - 1 if wanted else 0
    lacks = 0
    for i in {0, 1, last - 1, last} & set(range(last + 1)):
        lo, hi = i * wanted, min(n, (i + 1) * wanted)
        overlap = max(0, min(hi, (i + 1) * chunk) - max(lo, i * chunk))
        lacks = max(lacks, hi - lo - overlap)
    return lacks
