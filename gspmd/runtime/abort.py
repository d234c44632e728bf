"""One rank that fails takes the job down, with one message.

MPI has no idea of exceptions: a rank that raises stays behind, and the others wait for it without end. A hook prints
the message and aborts the job. A mistake that all ranks make is told once: ranks other than 0 first wait a moment, and
of those on one node only the first to bind a name tells its reason.
"""

from __future__ import annotations

import errno
import io
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, cast

from gspmd.ir.errors import GspmdError
from gspmd.runtime.environment import World, world

_HEAD_START = 0.3
_STEP = 0.04
_MOST = 1.0
# How long a rank whose reason is not told waits to be ended with the job.
_PATIENCE = 10.0
# Launchers forward output through a pipe and drop what is in it once the job is aborted.
_DRAIN = 0.1

_failing = threading.Lock()


def install_abort_hook() -> None:
    """Make an uncaught exception, in any thread, end all ranks of the job; does nothing outside a launcher.

    From then on ranks also print whole lines, at once: what lingers in a buffer is lost when another rank ends the job.
    """
    here = world()
    if here.size == 1 or isinstance(sys.excepthook, _Hook):
        return
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        cast("io.TextIOWrapper[Any]", stdout).reconfigure(line_buffering=True, write_through=False)
    hook = _Hook(here)
    sys.excepthook = hook
    threading.excepthook = lambda args: hook(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback, args.thread
    )


class _Hook:
    """An exception hook that tells the failure, with the rank, and ends the job."""

    def __init__(self, here: World) -> None:
        self._here = here

    def __call__(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
        thread: threading.Thread | None = None,
    ) -> None:
        if issubclass(kind, SystemExit):
            return
        who = f"rank {self._here.rank} of {self._here.size}"
        if thread is not None:
            who += f", thread {thread.name}"
        if issubclass(kind, KeyboardInterrupt):
            text = "interrupted"
        elif isinstance(error, GspmdError):
            text = f"{who}: {error}"
        else:
            text = f"{who}: uncaught exception\n" + "".join(traceback.format_exception(kind, error, trace)).rstrip()
        fail(text)


def fail(text: str, code: int = 1) -> None:
    """Print a message and end the whole job; does not return.

    Only one thread of a process gets to tell its reason, and one rank of those that a launcher started on a node.
    """
    if not _failing.acquire(blocking=False):
        while True:
            time.sleep(1)
    here = world()
    if here.rank:
        time.sleep(_HEAD_START + min(_MOST, _STEP * here.rank))
    if here.size > 1 and not _first_on_node():
        time.sleep(_PATIENCE)
        os._exit(code)
    try:
        sys.stdout.flush()
        # In one write, so that the lines of two ranks do not mix.
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody reads any more; the job must end all the same
    time.sleep(_DRAIN)
    end_job(code)


def _first_on_node() -> bool:
    """Whether no other rank of the launcher that started this one has told a reason; where that is unknown, True.

    The name that is bound is Linux's abstract kind, which goes with the process; ranks of one node have one parent.
    """
    if sys.platform != "linux":
        return True
    try:
        claim = socket.socket(socket.AF_UNIX)
        claim.bind(f"\0gspmd-{os.getuid()}-{os.getppid()}-failed")
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    claim.detach()  # open until the process ends
    return True


def end_job(code: int) -> None:
    """End all ranks of the job with the exit code; does not return."""
    _ask_hydra(code)
    abort = _mpi_abort()
    if abort is not None:
        # A library that cannot abort from a second thread must not keep us here.
        threading.Thread(target=abort, args=(code,), daemon=True).start()
        time.sleep(5)
    os._exit(code)


def _ask_hydra(code: int) -> None:
    """Ask MPICH's launcher to end the job, in the words of its wire protocol (PMI-1).

    It works before MPI has started in this process, where the launcher sees nothing wrong in a process that ends while
    the others wait for it; and it works without the library's own noise. Other launchers look at the exit code.
    """
    descriptor = os.environ.get("PMI_FD", "")
    if descriptor.isdigit() and "MPI_LOCALNRANKS" in os.environ:
        try:
            os.write(int(descriptor), f"cmd=abort exitcode={code}\n".encode())
            time.sleep(1)
        except OSError:
            pass


def _mpi_abort() -> Callable[[int], Any] | None:
    """MPI's abort, if this process runs MPI now."""
    module: Any = sys.modules.get("mpi4py.MPI")
    if module is None or not module.Is_initialized() or module.Is_finalized():
        return None
    return module.COMM_WORLD.Abort
