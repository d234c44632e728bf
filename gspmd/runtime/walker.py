"""The one graph walker: runs a region on a list of shards.

One shard is the reference interpreter, all shards of a mesh the lockstep simulator, one rank's the MPI executor; which
of them it is depends on the transport alone. A region is prepared once: values become slots, and each step knows which
slots nobody reads any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from gspmd.ir.errors import ExecutionError, GspmdError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array, Machine, Shards, Transport
from gspmd.runtime.fusion.run import fused_runner
from gspmd.runtime.transport import LockstepTransport

# Runs one node on the shards of its operands.
Runner = Callable[[Machine, Node, Sequence[Shards]], Sequence[Shards]]
# In the slot of a value that nobody reads any more.
_GONE: Shards = []


class Step(NamedTuple):  # of which a walk unpacks a hundred thousand
    """One node and its line, its slots, and the slots that are read for the last time here."""

    node: Node
    loc: Location | None
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
        steps.append(Step(node, node.loc, _runner(node), operands, outs, dead))
    return Prepared(tuple(reversed(steps)), len(slot), results)


class Walker:
    """Runs regions over the shards that `transport` holds; the `Machine` of collectives and control flow."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._prepared: dict[Region, Prepared] = {}
        self._others: dict[tuple[Mesh, tuple[int, ...]], Walker] = {}

    def run(self, region: Region, arguments: Sequence[Shards], *, consume: bool = False) -> list[Shards]:
        """Run a region; an argument and a result is a list of arrays, one per shard held here.

        With `consume` the list of arguments is emptied: what nobody else holds is freed at its last use.
        """
        prepared = self._prepared.get(region)
        if prepared is None:
            prepared = self._prepared[region] = prepare(region)
        slots: list[Shards] = [_GONE] * prepared.slots
        slots[: len(arguments)] = arguments
        if consume and isinstance(arguments, list):
            arguments.clear()
        transport = self.transport
        step: Step | None = None
        try:
            for step in prepared.steps:
                node, loc, run, operands, results, dead = step
                transport.place = loc
                outs = run(self, node, [slots[i] for i in operands])
                for i, shards in zip(results, outs, strict=True):
                    slots[i] = shards
                for i in dead:
                    slots[i] = _GONE
        except GspmdError as error:
            raise error.at(None if step is None else step.loc) from None
        except (ValueError, TypeError, IndexError, MemoryError, ArithmeticError) as error:
            if step is None:
                raise
            raise ExecutionError(f"{step.node.op.name} failed: {error}", loc=step.loc) from error
        return [slots[i] for i in prepared.results]

    def across(self, mesh: Mesh) -> Walker:
        """The walker over all devices of a mesh, or those below the ones held here, in this process."""
        below = mesh.size // self.transport.mesh.size
        return self._other(mesh, tuple(i * below + j for i in self.transport.indices for j in range(below)))

    def among(self, places: Sequence[int]) -> Walker:
        """The walker over some of the shards held here."""
        return self._other(self.transport.mesh, tuple(self.transport.indices[p] for p in places))

    def _other(self, mesh: Mesh, indices: tuple[int, ...]) -> Walker:
        found = self._others.get((mesh, indices))
        if found is None:
            found = self._others[mesh, indices] = Walker(LockstepTransport(mesh, indices))
            found._prepared = self._prepared
        return found


def _runner(node: Node) -> Runner:
    if (kernel := fused_runner(node)) is not None:
        return kernel
    if node.op.execute is not None:
        return node.op.execute
    if node.op.kernel is None:
        raise ExecutionError(f"{node.op.name} cannot be run", loc=node.loc)
    if not node.operands:
        return _literal
    return _single(node) if len(node.results) == 1 else _several


def _single(node: Node) -> Runner:
    """The kernel on each shard's operands; where NumPy turns 0-d arrays into scalars, they are made arrays again."""
    assert node.op.kernel is not None
    kernel = cast("Callable[..., Array]", partial(node.op.kernel, node.attrs))
    if node.result.type.shape:
        return lambda machine, node, args: (list(map(kernel, *args)),)
    return lambda machine, node, args: (list(map(np.asarray, map(kernel, *args))),)


def _literal(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    kernel = node.op.kernel
    assert kernel is not None
    return ([np.asarray(kernel(node.attrs)) for _ in machine.transport.indices],)


def _several(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    kernel, attrs = node.op.kernel, node.attrs
    assert kernel is not None
    rows = [kernel(attrs, *row) for row in zip(*args, strict=True)]
    return [[np.asarray(row[k]) for row in rows] for k in range(len(node.results))]
