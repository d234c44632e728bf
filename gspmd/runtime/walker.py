"""The one graph walker: runs a region on a list of shards.

One shard is the reference interpreter, all shards of a mesh the lockstep simulator, one rank's the MPI executor; which
of them it is depends on the transport alone. A region is prepared once: values become slots, and each step knows which
slots nobody reads any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.errors import ExecutionError, GspmdError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Machine, Shards, Transport
from gspmd.runtime.fusion.run import fused_runner

# Runs one node on the shards of its operands.
Runner = Callable[[Machine, Node, Sequence[Shards]], Sequence[Shards]]


@dataclass(frozen=True, slots=True)
class Step:
    """One node, its slots, and the slots that are read for the last time here."""

    node: Node
    run: Runner
    operands: tuple[int, ...]
    results: tuple[int, ...]
    dead: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A region in slots: its parameters take the first ones."""

    steps: tuple[Step, ...]
    slots: int
    results: tuple[int, ...]


def prepare(region: Region) -> Prepared:
    """Number the values of a region and find where each is read last."""
    slot: dict[Value, int] = {}
    for value in region.params:
        slot[value] = len(slot)
    for node in region.nodes:
        for value in node.results:
            slot[value] = len(slot)
    results = tuple(slot[v] for v in region.results)
    alive = set(results)
    steps: list[Step] = []
    for node in reversed(region.nodes):
        operands = tuple(slot[v] for v in node.operands)
        outs = tuple(slot[v] for v in node.results)
        dead = tuple({*operands, *outs} - alive)
        alive.update(operands)
        steps.append(Step(node, _runner(node), operands, outs, dead))
    return Prepared(tuple(reversed(steps)), len(slot), results)


class Walker:
    """Runs regions over the shards that `transport` holds; the `Machine` of collectives and control flow."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._prepared: dict[Region, Prepared] = {}

    def run(self, region: Region, arguments: Sequence[Shards]) -> list[Shards]:
        """Run a region; an argument and a result is a list of arrays, one per shard held here."""
        prepared = self._prepared.get(region)
        if prepared is None:
            prepared = self._prepared[region] = prepare(region)
        slots: list[Shards | None] = [None] * prepared.slots
        slots[: len(arguments)] = arguments
        for step in prepared.steps:
            self._step(step, slots)
        return [_held(slots, i) for i in prepared.results]

    def _step(self, step: Step, slots: list[Shards | None]) -> None:
        node = step.node
        self.transport.place = node.loc
        try:
            outs = step.run(self, node, [_held(slots, i) for i in step.operands])
        except GspmdError as error:
            raise error.at(node.loc) from None
        except (ValueError, TypeError, IndexError, MemoryError) as error:
            raise ExecutionError(f"{node.op.name} failed: {error}", loc=node.loc) from error
        for i, shards in zip(step.results, outs, strict=True):
            slots[i] = shards
        for i in step.dead:
            slots[i] = None


def _held(slots: list[Shards | None], i: int) -> Shards:
    shards = slots[i]
    assert shards is not None, "a value is read after its last use"
    return shards


def _runner(node: Node) -> Runner:
    compiled = fused_runner(node)
    if compiled is not None:
        return compiled
    if node.op.execute is not None:
        return node.op.execute
    if node.op.kernel is None:
        raise ExecutionError(f"{node.op.name} cannot be run", loc=node.loc)
    return _single if len(node.results) == 1 else _several


def _single(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    kernel, attrs = node.op.kernel, node.attrs
    assert kernel is not None
    count = len(machine.transport.indices)
    return ([_array(kernel(attrs, *(a[i] for a in args))) for i in range(count)],)


def _several(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    kernel, attrs = node.op.kernel, node.attrs
    assert kernel is not None
    count = len(machine.transport.indices)
    rows = [kernel(attrs, *(a[i] for a in args)) for i in range(count)]
    return [[_array(row[k]) for row in rows] for k in range(len(node.results))]


def _array(x: Any) -> Array:
    """NumPy turns 0-d arrays into scalars on the way; here they are arrays throughout."""
    return np.asarray(x)
