"""What the ranks of the MPI tests run: `python -m tests.runtime.mpi_program MODE`."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np

from gspmd.ir.errors import ExecutionError
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.runtime.abort import install_abort_hook
from gspmd.runtime.environment import world
from gspmd.runtime.mpi import MpiTransport
from gspmd.runtime.transport import LockstepTransport
from tests.runtime.collective_cases import add, all_calls


def compare() -> None:
    """Every call gives this rank the bits that lockstep gives its device."""
    size, compared, kept = world().size, 0, []
    transports: dict[Mesh, MpiTransport] = {}
    for call in all_calls(size):
        transport = transports.setdefault(call.mesh, MpiTransport(call.mesh))
        (me,) = transport.indices
        assert call.mesh.device(me) == world().rank
        expected = getattr(LockstepTransport(call.mesh), call.method)(call.xs, *call.args)[me]
        x = call.xs[me].copy(order="K")
        (result,) = getattr(transport, call.method)([x], *call.args)
        assert result.shape == expected.shape and result.dtype == expected.dtype, call
        assert x.tobytes() == call.xs[me].tobytes()
        kept.append((call.method, result, expected.tobytes()))
        compared += 1
    # Looked at last: a result must not lie in a buffer that a later call uses again.
    wrong = {method for method, result, expected in kept if result.tobytes() != expected}
    assert not wrong, wrong
    print(f"rank {world().rank}: {compared} equal")


def job() -> None:
    """What concerns the job as a whole."""
    rank, size = world().rank, world().size
    transport = MpiTransport(Mesh({"a": size}))
    transport.same(b"one program")
    try:
        transport.same(b"other" if rank == 1 else b"one")
    except ExecutionError as error:
        assert "same program: rank 1 differs from rank 0" in str(error)
    else:
        raise AssertionError("ranks with different programs were not told")
    try:
        MpiTransport(Mesh({"a": size + 1}))
    except ExecutionError as error:
        assert f"{size + 1} devices" in str(error) and f"{size} ranks" in str(error)
    else:
        raise AssertionError("a mesh of another size was taken")
    print(f"rank {rank}: job ok")


def reduce_once() -> None:
    mesh = Mesh({"a": world().size})
    transport = MpiTransport(mesh)
    transport.place = Location("model.py", 12)
    transport.all_reduce([np.ones(5, np.float32)], (mesh.axis("a"),), add)


def many() -> None:
    """Enough rounds that waiting ranks which keep their cores would take minutes."""
    mesh = Mesh({"a": world().size})
    transport = MpiTransport(mesh)
    x = np.full(3000, world().rank, np.float32)
    for _ in range(300):
        (total,) = transport.all_reduce([x], (mesh.axis("a"),), add)
    assert set(total.tolist()) == {sum(range(world().size))}
    print(f"rank {world().rank}: reduced")


def leave_early() -> None:
    """Nobody fails: ranks 0 and 1 leave after their part of a collective in which rank 2 still waits for rank 3."""
    mesh = Mesh({"a": 2, "b": 2})
    transport = MpiTransport(mesh)
    for _ in range(2):
        (total,) = transport.all_reduce([np.ones(5, np.float32)], (mesh.axis("b"),), add)
        assert total[0] == 2
        time.sleep(2.5 if world().rank == 3 else 0)


def fail(mode: str) -> None:
    """Rank 1 fails as the mode says, the others wait for it; `all` fails everywhere, `early` before MPI starts."""
    install_abort_hook()
    first = world().rank == 1
    if mode == "early" and first:
        raise ValueError("before MPI")
    reduce_once()
    if mode == "all":
        raise ExecutionError("everybody is wrong", fix="be right")
    if not first:
        reduce_once()
    elif mode == "error":
        raise ExecutionError("rank one is wrong")
    elif mode == "exception":
        raise ValueError("a bug")
    elif mode == "exit":
        sys.exit(3)
    elif mode == "thread":
        threading.Thread(target=lambda: 1 / 0, name="worker").start()
        reduce_once()
        reduce_once()
    elif mode == "hang":
        time.sleep(60)
    elif mode == "kill":
        os.kill(os.getpid(), 9)


if __name__ == "__main__":
    {"compare": compare, "job": job, "many": many, "leave": leave_early}.get(sys.argv[1], lambda: fail(sys.argv[1]))()
