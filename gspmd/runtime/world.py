"""Which transport a mesh gets in this process: the simulator alone, MPI in a job of as many ranks as devices.

And what runs a program without any job.
"""

from __future__ import annotations

from functools import cache

from gspmd.ir.errors import ExecutionError
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.runtime.environment import world
from gspmd.runtime.executor import Executor
from gspmd.runtime.mpi import MpiTransport
from gspmd.runtime.transport import Channel, LockstepTransport


@cache  # for good: arrays and programs hold the transport of their mesh, and under MPI making one is a collective
def channel_for(mesh: Mesh) -> Channel:
    """The transport for a mesh, made once; raises ExecutionError if the job has neither one rank nor one per device."""
    here = world()
    if here.size == 1:
        return lockstep(mesh)
    if here.size != mesh.size:
        named = f"the mesh {mesh.text()}" if mesh.axes else "a program without a mesh"
        raise ExecutionError(
            f"{named} has {mesh.size} devices, but this job has {here.size} ranks",
            fix=f"start {mesh.size} ranks, or give a mesh of {here.size} devices",
        )
    return MpiTransport(mesh)


_MOST_SIMULATED = 1 << 16


@cache
def lockstep(mesh: Mesh) -> Channel:
    """The transport that holds the shards of every device in this process; raises ExecutionError for too many."""
    if mesh.size > _MOST_SIMULATED:
        raise ExecutionError(
            f"the mesh {mesh.text()} has {mesh.size} devices; at most {_MOST_SIMULATED} are simulated in one process",
            fix="run a smaller mesh, or only compile (gspmd opt, gspmd collectives)",
        )
    return LockstepTransport(mesh)


def executor_for(program: Program) -> Executor:
    """What runs a program in this process: on one device, or on all devices of its mesh for a local stage."""
    return Executor(program, lockstep(program.mesh) if program.is_local and program.mesh is not None else None)
