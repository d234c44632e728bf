"""`--check` for programs that call compiled functions themselves: calls are compared with one device as they happen."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

import numpy as np

from gspmd.driver.module import Module, as_numpy
from gspmd.frontend.tree import flatten
from gspmd.inspect.check import Tally, compare_results
from gspmd.ir.errors import ExecutionError
from gspmd.runtime.environment import world

CHECK_VARIABLE = "GSPMD_CHECK"
_FIRST_CALLS = 3


class CallChecker:
    """Runs some of the calls of one compiled function again on one device and compares.

    The first few calls are checked, then those whose number is a power of two: a training loop stays usable.
    """

    def __init__(self, module: Module) -> None:
        self.module = Module(module.program, module.in_tree, module.out_tree)
        self.calls = 0

    @staticmethod
    def from_environment(module: Module) -> CallChecker | None:
        """A checker if `gspmd run --check` asked for one."""
        return CallChecker(module) if os.environ.get(CHECK_VARIABLE, "0") not in ("", "0") else None

    def after_call(self, arguments: tuple[Any, ...], results: Any) -> None:
        """Compare one call's results; raises ExecutionError, on every rank, if they differ."""
        self.calls += 1
        if self.calls > _FIRST_CALLS and self.calls & (self.calls - 1):
            return
        leaves = self.module.flatten(arguments)
        arrays = [as_numpy(x, t) for x, t in zip(leaves, self.module.input_types, strict=True)]
        expected, _ = flatten(self.module.run(*_nest(self.module, arrays)))
        actual = [np.asarray(x) for x in flatten(results)[0]]
        tally = compare_results(actual, [np.asarray(x) for x in expected], f"call {self.calls}")
        _TOTAL.add(tally)


def _nest(module: Module, arrays: list[Any]) -> tuple[Any, ...]:
    return tuple(arrays) if module.in_tree is None else module.in_tree.unflatten(arrays)


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
            print(f"check: {self.tally.text()}", file=sys.stderr, flush=True)


_TOTAL = _Total()


def require_checked() -> None:
    """Raise ExecutionError if nothing was compared although a check was asked for."""
    if not _TOTAL.tally.arrays:
        raise ExecutionError(
            "--check compared no arrays: the program called no compiled function",
            fix="call what gspmd.compile or @gspmd.jit returns",
        )
