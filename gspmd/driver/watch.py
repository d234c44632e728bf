"""`--check` for programs that call compiled functions themselves: calls are compared with one device as they happen."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

import numpy as np

from gspmd.driver.module import Module
from gspmd.frontend.tree import flatten
from gspmd.inspect.check import Tally, compare_results
from gspmd.inspect.reference import Reference
from gspmd.ir.errors import ExecutionError
from gspmd.ir.opdef import Array
from gspmd.runtime.environment import world

CHECK_VARIABLE = "GSPMD_CHECK"
_FIRST_CALLS = 3


class CallChecker:
    """Runs some of the calls of one compiled function again on one device and compares.

    The first few calls are checked, then those whose number is a power of two: a training loop stays usable.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.calls = 0

    @staticmethod
    def from_environment(module: Module) -> CallChecker | None:
        """A checker if `gspmd run --check` asked for one; a program at a local stage has nothing to compare with."""
        asked = os.environ.get(CHECK_VARIABLE, "0") not in ("", "0")
        return CallChecker(module) if asked and not module.program.is_local else None

    def before_call(self, arguments: tuple[Any, ...]) -> list[Array] | None:
        """The whole arguments of a call that is to be checked (it may use them up), None if this one is not."""
        self.calls += 1
        if self.calls > _FIRST_CALLS and self.calls & (self.calls - 1):
            return None
        return self.module.whole(arguments)

    def after_call(self, arguments: list[Array], results: Any) -> None:
        """Compare one call's results; raises ExecutionError, on every rank, if they differ."""
        expected = Reference(self.module.run_flat, arguments)
        actual = [np.asarray(x) for x in flatten(results)[0]]
        _TOTAL.add(compare_results(actual, expected, f"call {self.calls} of {self.module.program.name}"))


class _Total:
    """What all checkers of this process compared, told when it ends."""

    def __init__(self) -> None:
        self.tally = Tally()

    def add(self, tally: Tally) -> None:
        if not self.tally.arrays:
            atexit.register(self.tell)
        self.tally = self.tally + tally

    def tell(self) -> None:
        if world().rank == 0:
            sys.stderr.write(f"check: {self.tally.text()}\n")


_TOTAL = _Total()


def require_checked() -> None:
    """Raise ExecutionError if nothing was compared although a check was asked for."""
    if not _TOTAL.tally.arrays:
        raise ExecutionError(
            "--check compared no arrays: the program called no compiled function",
            fix="call what gspmd.compile or @gspmd.jit returns",
        )
