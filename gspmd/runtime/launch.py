"""Starts the ranks of a job: finds mpiexec, sets it and the ranks' environment up right, and waits.

What a plain mpiexec gets wrong on one machine is mended here: threads per rank, ranks bound to one core, more ranks
than cores, root in a container, slow probing for networks.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType

from gspmd.ir.errors import ExecutionError, UsageError
from gspmd.runtime.environment import (
    INSTALL_MPI,
    LAUNCHER_PREFIXES,
    THREAD_VARIABLES,
    cores,
    find_mpiexec,
    mpi_settings,
    threads_per_rank,
)

USAGE = 2
# More processes than this for each core only fight for it.
_RANKS_PER_CORE = 32
# Says that the numbers of threads in the environment are this module's, and not what the user wants.
_OWN_THREADS = "GSPMD_OWN_THREADS"
_GRACE = 5.0


def launch(
    argv: Sequence[str], ranks: int, *, timeout: float | None = None, env: Mapping[str, str] | None = None
) -> int:
    """Run `python *argv` on `ranks` ranks of this machine and return 0, 1 (it failed) or 2 (bad usage).

    The ranks' output passes through. `env` adds to the environment of the ranks. An interrupt takes all of them down.
    Raises ExecutionError if there is no MPI to start them with, or after `timeout` seconds, when they are stopped.
    """
    command = [*launch_command(ranks), sys.executable, *argv]
    with subprocess.Popen(command, env=rank_environment(ranks, env)) as process, _terminated_with_us():
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _stop(process)
            raise ExecutionError(f"{ranks} ranks did not end within {timeout:g} s and were stopped") from None
        except BaseException:
            _stop(process)
            raise
    return exit_code(code)


def exit_code(code: int) -> int:
    """The launcher's exit code as ours: 0, 2 for bad usage, 1 for all else."""
    return code if code in (0, USAGE) else 1


def launch_command(ranks: int) -> list[str]:
    """`mpiexec -n ranks` with the options that its kind of MPI needs; raises ExecutionError if there is none."""
    if ranks < 1:
        raise ExecutionError(f"a job has at least one rank, not {ranks}")
    if ranks > _RANKS_PER_CORE * cores():
        raise UsageError(
            f"{ranks} ranks on this machine of {cores()} cores would stifle it",
            fix=f"start at most {_RANKS_PER_CORE * cores()} here, or more on several machines with mpiexec or srun",
        )
    mpiexec = find_mpiexec()
    if mpiexec is None:
        raise ExecutionError("no mpiexec next to the Python interpreter or on PATH", fix=INSTALL_MPI)
    if importlib.util.find_spec("mpi4py") is None:
        raise ExecutionError("mpi4py is not installed", fix=INSTALL_MPI)
    return [mpiexec, *_OPTIONS[launcher_kind(mpiexec)], "-n", str(ranks)]


# Shared memory alone serves one machine; looking for networks takes a second.
_OPENMPI = (
    "--oversubscribe",
    "--bind-to",
    "none",
    "--mca",
    "pml",
    "ob1",
    "--mca",
    "osc",
    "^ucx",
    "--mca",
    "btl",
)
_OPTIONS: dict[str, tuple[str, ...]] = {
    "mpich": ("-bind-to", "none"),
    "openmpi": (*_OPENMPI, "self,sm"),
    "openmpi4": (*_OPENMPI, "self,vader"),
    "other": (),
}


@lru_cache(maxsize=8)
def launcher_kind(mpiexec: str) -> str:
    """Which MPI a launcher belongs to: "mpich" (and its family), "openmpi", "openmpi4" (or older) or "other"."""
    try:
        done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExecutionError(f"{mpiexec} cannot be run: {error}", fix=INSTALL_MPI) from None
    text = (done.stdout + done.stderr).lower()
    if "open mpi" in text or "openrte" in text:
        old = "openrte" in text or re.search(r"open mpi\)? v?[1-4]\.", text)
        return "openmpi4" if old else "openmpi"
    return "mpich" if "hydra" in text or "intel(r) mpi" in text or "mvapich" in text else "other"


def rank_environment(ranks: int, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the ranks: ours, without an outer launcher's, with threads and MPI settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_PREFIXES)}
    threads = str(threads_per_rank(ranks))
    ours = set(THREAD_VARIABLES if _OWN_THREADS in env else ()) | {n for n in THREAD_VARIABLES if n not in env}
    env |= dict.fromkeys(ours, threads)
    if ours == set(THREAD_VARIABLES):
        env[_OWN_THREADS] = "1"
    for name, value in mpi_settings(ranks).items():
        env.setdefault(name, value)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        env |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return env | dict(extra or {})


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the launcher, which ends its ranks; by force if it does not listen."""
    for ask in (process.terminate, process.kill):
        ask()
        try:
            process.wait(_GRACE)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue
        return


@contextmanager
def _terminated_with_us() -> Generator[None]:
    """While the ranks run, let SIGTERM unwind this process, so that they do not outlive it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
