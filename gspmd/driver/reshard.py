"""Bring a held array from one sharding to another, outside of any program of the user's: a program of one reshard."""

from __future__ import annotations

from functools import lru_cache

from gspmd.array import Array
from gspmd.driver.pipeline import run_stages
from gspmd.ir.builder import Builder
from gspmd.ir.errors import ExecutionError
from gspmd.ir.graph import Program
from gspmd.ir.opdef import Array as NumpyArray
from gspmd.ir.opdef import Shards
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.collective import RESHARD
from gspmd.runtime.executor import Executor, detached
from gspmd.runtime.layout import distribute, sharding_of
from gspmd.runtime.transport import Channel


def resharded(held: Array, target: Sharding) -> Array:
    """The array under another sharding of its mesh, in memory of its own."""
    buffers = held.buffers
    shards = detached(_moved(buffers, held.type, target, held.channel), buffers)
    return Array(held.type.with_sharding(target), shards, held.channel)


def shards_of(held: Array | NumpyArray, type_: TensorType, channel: Channel) -> Shards:
    """An argument as the shards that a program takes; a sharded array laid out otherwise is resharded.

    Raises ExecutionError (call.C3) if the array lives on another mesh.
    """
    if not isinstance(held, Array):
        return distribute(held, type_, channel.indices)
    theirs = held.channel
    if theirs is not channel and (theirs.mesh != channel.mesh or theirs.indices != channel.indices):
        raise ExecutionError(
            f"an array lives on the mesh {theirs.mesh.text()}, the program runs on {channel.mesh.text()}",
            rule="call.C3",
            fix="bring it there with gspmd.shard(array, mesh, ...)",
        )
    target = sharding_of(type_)
    return held.buffers if held.sharding == target else _moved(held.buffers, held.type, target, channel)


def _moved(shards: Shards, held: TensorType, target: Sharding, channel: Channel) -> Shards:
    """The shards of a value of a global type under the target sharding, by the planner's cheapest collectives."""
    (result,) = _resharder(held, target, channel).run_shards([shards])
    return result


@lru_cache(maxsize=256)
def _resharder(held: TensorType, target: Sharding, channel: Channel) -> Executor:
    builder = Builder()
    x = builder.param(held, "x")
    y = RESHARD(builder, x, sharding=target)
    program = Program.of("resharding", builder.region([y]), target.mesh, "explicit")
    return Executor(run_stages(program).last, channel)
