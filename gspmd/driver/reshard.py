"""Bring a held array from one sharding to another, outside of any program of the user's: a program of one reshard."""

from __future__ import annotations

from functools import lru_cache

from gspmd.driver.pipeline import run_stages
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program
from gspmd.ir.opdef import Shards
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.collective import RESHARD
from gspmd.runtime.executor import Executor
from gspmd.runtime.transport import Channel


def reshard(shards: Shards, held: TensorType, target: Sharding, channel: Channel) -> Shards:
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
