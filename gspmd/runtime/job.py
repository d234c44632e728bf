"""The MPI job that this process is a rank of: started once, when first needed, and left in good order.

A rank may leave the program early (`sys.exit` in one branch) while others wait for it. So every rank says good-bye with
the number of collectives it began; a rank that waits in a later one knows that nobody will come, and ends the job.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gspmd.ir.errors import ExecutionError
from gspmd.runtime.abort import fail, install_abort_hook
from gspmd.runtime.environment import INSTALL_MPI, limit_threads, mpi_settings, oversubscribed, world
from gspmd.runtime.watchdog import Watchdog, timeout_from_environment

if TYPE_CHECKING:
    from mpi4py import MPI

_GOODBYE = 1
_READING = 2
# Ranks that share cores poll for so long, seconds, and then sleep between polls, at first short, at last longer.
_POLLING = 200e-6
_FIRST_NAP = 30e-6
_LAST_NAP = 500e-6


@lru_cache(maxsize=1)
def start() -> Job:
    """Start MPI in this process, at the first call; raises ExecutionError if that is not possible."""
    here = world()
    for name, value in mpi_settings(here.local_size).items():
        os.environ.setdefault(name, value)
    install_abort_hook()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError, OSError) as error:
        raise ExecutionError(f"mpi4py finds no MPI library: {' '.join(str(error).split())}", fix=INSTALL_MPI) from error
    size = MPI.COMM_WORLD.Get_size()
    if here.under_launcher and size != here.size:
        library = MPI.Get_library_version().splitlines()[0].strip("\0 ")
        raise ExecutionError(
            f"the launcher started {here.size} ranks, but the MPI library that mpi4py loads sees {size} ({library})",
            fix="start the program with the mpiexec of that library, or with `gspmd run`",
        )
    limit_threads()
    return Job(MPI.COMM_WORLD)


class Job:
    """This rank's place among the ranks, its communicators and its watchdog."""

    def __init__(self, whole: MPI.Intracomm) -> None:
        from mpi4py import MPI

        self.comm = whole.Dup()
        self.rank = whole.Get_rank()
        self.size = whole.Get_size()
        self.byte = MPI.BYTE
        self.wait_all = MPI.Request.Waitall
        self.large_counts = MPI.Get_version() >= (4, 0)
        self._crowded = oversubscribed(world().local_size)
        self.reads = whole.Dup()  # of the user's own gathers, so that they never pair with a program's collectives
        self._control = whole.Dup()
        self._splits: dict[Hashable, MPI.Comm] = {}
        self.calls = 0  # programs that this rank has run
        self.reading = False  # whether it waits to read an array, on all ranks at one point of the program
        self._told_reading = -1
        self._readers: dict[int, int] = {}
        self._notes: list[Any] = []
        self._left: dict[int, int] = {}
        self._lock = threading.Lock()
        from_threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self.watchdog = Watchdog(
            timeout_from_environment(),
            fail,
            who=f"rank {self.rank} of {self.size}",
            long_wait=self._missing if from_threads and self.size > 1 else None,
        ).start()
        if self.size > 1:
            atexit.register(self._leave)

    def split(self, key: Hashable, color: int, order: int) -> MPI.Comm:
        """The communicator of the ranks with this colour, kept under the key; a collective when it is new."""
        comm = self._splits.get(key)
        if comm is None:
            comm = self._splits[key] = self.comm.Split(color, order)
        return comm

    def meet(self, comm: MPI.Comm) -> None:
        """Where ranks share cores, wait until all ranks of the communicator are here; elsewhere do nothing.

        MPI polls while it waits, and even with a yield after each poll it takes half a core from a rank that works.
        Here a rank that waits for a late one sleeps; the exchange that follows finds everybody ready.
        """
        if not self._crowded:
            return
        request = comm.Ibarrier()
        end = time.perf_counter() + _POLLING
        nap = _FIRST_NAP
        while not request.Test():
            if time.perf_counter() < end:
                os.sched_yield()
            else:
                time.sleep(nap)
                nap = min(1.5 * nap, _LAST_NAP)

    def _missing(self) -> str | None:
        """Why nobody will come to what this rank waits in, as far as the other ranks have said."""
        self._tell_reading()
        self._read_notes(_GOODBYE, self._left)
        self._read_notes(_READING, self._readers)
        gone = [r for r, begun in sorted(self._left.items()) if begun < self.watchdog.ticket]
        if gone:
            return f"for rank {gone[0]}, which has left the program"
        early = [r for r, calls in sorted(self._readers.items()) if calls < self.calls and not self.reading]
        if early:
            return (
                f"for rank {early[0]}, which waits to read an array (np.asarray, float, print) after call "
                f"{self._readers[early[0]]} of a program, while this rank is in call {self.calls}: an array is read on "
                "every rank or on none"
            )
        return None

    def _tell_reading(self) -> None:
        """Tell the others, once, that this rank waits to read an array, and after how many calls."""
        if not self.reading or self._told_reading == self.calls:
            return
        from mpi4py import MPI

        self._told_reading = self.calls
        note = np.array([self.calls], np.int64)
        others = [r for r in range(self.size) if r != self.rank]
        self._notes += [(note, self._control.Isend([note, MPI.INT64_T], r, _READING)) for r in others]

    def _read_notes(self, tag: int, into: dict[int, int]) -> None:
        from mpi4py import MPI

        status = MPI.Status()
        with self._lock:
            while self._control.Iprobe(MPI.ANY_SOURCE, tag, status):
                number = np.empty(1, np.int64)
                source = status.Get_source()
                self._control.Recv([number, MPI.INT64_T], source, tag)
                into[source] = int(number[0])

    def _leave(self) -> None:
        """Say good-bye to all ranks, and wait for theirs: MPI may be shut down only when nobody needs it any more."""
        from mpi4py import MPI

        if MPI.Is_finalized():
            return
        self.watchdog.stop()
        begun = np.array([self.watchdog.ticket], np.int64)
        others = [r for r in range(self.size) if r != self.rank]
        requests: list[Any] = [self._control.Isend([begun, MPI.INT64_T], r, _GOODBYE) for r in others]
        pause = 1e-4
        while len(self._left) < len(others):
            self._read_notes(_GOODBYE, self._left)
            self._read_notes(_READING, self._readers)
            time.sleep(pause)
            pause = min(0.02, pause * 1.5)
        MPI.Request.Waitall(requests)
