"""Reports a collective that does not end, with rank, collective and source line, and ends the job.

The runtime writes down what it is about to wait for, two plain attribute writes; a thread looks at the note now and
then. A rank waits without end if another left the program, raised where nothing could tell, or took another branch.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from gspmd.ir.errors import ExecutionError
from gspmd.ir.location import Location

DEFAULT_TIMEOUT = 300.0
_LONG_WAIT = 1.0


def timeout_from_environment() -> float:
    """GSPMD_TIMEOUT in seconds (default 300); 0 turns the watchdog off."""
    text = os.environ.get("GSPMD_TIMEOUT", "")
    try:
        return float(text) if text else DEFAULT_TIMEOUT
    except ValueError:
        raise ExecutionError(
            f"GSPMD_TIMEOUT is a number of seconds, not {text!r}", fix="set it to 300, or to 0 for no limit"
        ) from None


class Watchdog:
    """A thread that ends the job when one wait lasts too long; waits do not nest.

    `expired(message)` is called from the thread with what to print. `long_wait()`, called about once a second while a
    wait lasts, may find the cause earlier: what it returns ("for rank 1, which ...") ends the job too.
    """

    def __init__(
        self,
        timeout: float,
        expired: Callable[[str], None],
        *,
        who: str = "rank 0",
        long_wait: Callable[[], str | None] | None = None,
    ) -> None:
        self.what: str | None = None
        self.where: Location | None = None
        self.ticket = 0
        self.timeout = timeout
        self._expired = expired
        self._who = who
        self._long_wait = long_wait
        self._stop = threading.Event()
        self._poll = min(0.25, timeout / 4) if timeout > 0 else 0.25
        self._thread = threading.Thread(target=self._watch, name="gspmd-watchdog", daemon=True)

    def start(self) -> Watchdog:
        """Begin to watch; returns itself."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread, for a process that goes on without MPI."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def enter(self, what: str, where: Location | None = None) -> None:
        """Note that a wait begins: the collective and, if known, the user's source line."""
        self.where = where
        self.what = what
        self.ticket += 1

    def leave(self) -> None:
        """Note that the wait is over."""
        self.what = None

    def _watch(self) -> None:
        seen, waited, asked, before = -1, 0.0, 0.0, time.monotonic()
        while not self._stop.wait(self._poll):
            now = time.monotonic()
            # A process that was stopped (a debugger, job control) has not waited all the time that went by.
            step, before = min(now - before, 4 * self._poll), now
            what, where, ticket = self.what, self.where, self.ticket
            if what is None or ticket != seen:
                seen, waited, asked = ticket, 0.0, 0.0
                continue
            waited += step
            message = None
            if self._long_wait is not None and waited - asked >= _LONG_WAIT:
                asked = waited
                cause = self._long_wait()
                message = None if cause is None else f"{self._who}: waits in {what} {cause}"
            if message is None and 0 < self.timeout <= waited:
                message = f"{self._who}: {what} has not ended within {self.timeout:g} s"
            if message is None or self.ticket != ticket or self.what is None:
                continue
            self._expired(self._text(message, where))
            return

    def _text(self, message: str, where: Location | None) -> str:
        at = f"\n  at {where.text()}" if where is not None else ""
        return (
            f"{message}{at}\n  fix: every rank must run the same collectives in the same order; "
            "GSPMD_TIMEOUT=seconds allows longer waits"
        )
