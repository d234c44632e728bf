"""The fixed point: batches of steps by level and depth, each against a snapshot, until nothing changes.

A batch is all waiting steps of one level and one depth (the longest path from an input; at backward levels the deep
ones go first). Its proposals for a value are merged in a canonical order; the steps around what changed then wait at
all their levels, and the lowest level is served first. Before all others go the annotations that leave nothing open:
how to shard a value is said of the value itself, not of what is made of it. None of this looks at the order in which
ops are stored.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from gspmd.propagation.levels import FIRST_BACKWARD
from gspmd.propagation.network import Network
from gspmd.propagation.states import CLASH, States
from gspmd.propagation.step import Change, apply

_LEVEL = 1 << 40  # keys are level * _LEVEL + depth, so that integers sort as pairs would
_DEEPEST = 1 << 39

_Offers = dict[int, list[tuple[int, Change]]]  # per value the steps that propose, and what


class Entry(NamedTuple):
    """What happened to a value, or, in a log of what was lost, did not: the step that spoke, when, and what it said."""

    value: int
    step: int
    batch: int
    change: Change


class Search:
    """The state of every value, the waiting batches, and logs of what was applied and what lost."""

    def __init__(self, network: Network, states: States, initial: list[int]) -> None:
        self.network, self.states = network, states
        self.state = list(initial)
        self.applied: list[Entry] = []
        self.lost: list[Entry] = []
        self.levels: list[int] = []  # of each batch
        memos: dict[int, tuple[dict[tuple[int, ...], tuple[Change, ...]], ...]] = {}
        visits: dict[int, tuple[tuple[int, int, int], ...]] = {}
        for plan in {id(p): p for p in network.plans}.values():
            visits[id(plan)] = tuple(_visit(level) for level in plan.visits)
            memos[id(plan)] = tuple({} for _ in range(plan.visits[-1] + 1))
        self._visits = [visits[id(p)] for p in network.plans]
        self._memo_tables = list(memos.values())
        self._memos = [memos[id(p)] for p in network.plans]
        self._heard = 0  # the priority of annotations up to which they count
        self._queued = [0] * len(network.plans)  # per step a bit for each level that it waits at
        self._waiting: dict[int, list[int]] = {}
        self._heap: list[int] = []

    def run(self) -> None:
        """A full propagation for each priority of annotations, lowest first (Shardy's user priorities)."""
        initial = list(enumerate(self.state))
        dims = {n: s.sharding.dims for n, s in enumerate(self.states.items)}
        for priority in sorted({0, *(d.priority for held in dims.values() for d in held)}):
            self._heard = priority
            if priority:
                for tables in self._memo_tables:
                    for table in tables:
                        table.clear()
            new = {n for n, held in dims.items() if any(d.priority == priority and (priority or d.axes) for d in held)}
            if self.network.naming:
                self.levels.append(0)
                self._touch(self._settle(self._offers(self.network.naming, 0)))
            self._touch([value for value, state in initial if state in new])
            self._round()

    def _round(self) -> None:
        """Serve batches until none waits."""
        heap, waiting, queued, memos = self._heap, self._waiting, self._queued, self._memos
        state, tensors = self.state, self.network.tensors
        while heap:
            key = heappop(heap)
            level = key // _LEVEL
            self.levels.append(level)
            batch = waiting.pop(key)
            if len(batch) == 1:  # in a deep program most batches are one step that has nothing new to say
                (step,) = batch
                said = memos[step][level].get(tuple([state[v] for v in tensors[step]]))
                if said is not None and not said:
                    queued[step] &= ~(1 << level)
                    continue
            offers = self._offers(batch, level)
            if offers:
                self._touch(self._settle(offers))

    def _touch(self, values: list[int]) -> None:
        """Let the steps around values that changed wait at all their levels."""
        adjacent, depths, visits = self.network.adjacent, self.network.depths, self._visits
        queued, waiting, heap = self._queued, self._waiting, self._heap
        for value in values:
            for step in adjacent[value]:
                have = queued[step]
                for bit, base, sign in visits[step]:
                    if have & bit:
                        continue
                    have |= bit
                    key = base + sign * depths[step]
                    batch = waiting.get(key)
                    if batch is None:
                        waiting[key] = [step]
                        heappush(heap, key)
                    else:
                        batch.append(step)
                queued[step] = have

    def _offers(self, batch: list[int], level: int) -> _Offers:
        """What the steps of a batch propose, all looking at the same snapshot."""
        offers: _Offers = {}
        tensors, state, queued, memos = self.network.tensors, self.state, self._queued, self._memos
        done = ~(1 << level)
        for step in batch:
            queued[step] &= done
            members = tensors[step]
            key = tuple([state[v] for v in members])
            memo = memos[step][level]
            changes = memo.get(key)
            if changes is None:
                changes = memo[key] = apply(self.network.plans[step], self.states, key, level, self._heard)
            for change in changes:
                value = members[change.tensor]
                if value in offers:
                    offers[value].append((step, change))
                else:
                    offers[value] = [(step, change)]
        return offers

    def _settle(self, offers: _Offers) -> list[int]:
        """Merge a batch's proposals into the values' states, those with most axes first; the values that changed."""
        items, merge, state = self.states.items, self.states.merge, self.state
        batch, note = len(self.levels) - 1, self.applied.append
        for value, proposed in offers.items():
            if len(proposed) == 1:
                step, change = proposed[0]
                state[value] = change.state
                note(Entry(value, step, batch, change))
                continue
            proposed.sort(key=lambda offer: items[offer[1].state].order)
            for step, change in proposed:
                merged = merge(state[value], change.state)
                if merged == CLASH:
                    self.lost.append(Entry(value, step, batch, change))
                elif merged != state[value]:
                    state[value] = merged
                    note(Entry(value, step, batch, change))
        return list(offers)


def _visit(level: int) -> tuple[int, int, int]:
    """The bit of a level, and what makes a step's key of its depth: `base + sign * depth`."""
    forward = level < FIRST_BACKWARD
    return 1 << level, level * _LEVEL + (0 if forward else _DEEPEST), 1 if forward else -1
