"""Whether two runs of one program agree: all stages against the first, many devices against one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gspmd.inspect.units import count_text
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.errors import ExecutionError
from gspmd.ir.opdef import Array
from gspmd.kernels.closeness import compare
from gspmd.runtime.executor import Executor

# Roundings that a whole program's result may go through, as in a sum of so many terms; narrow floats are summed wide.
_TERMS, _NARROW_TERMS = 1 << 14, 1 << 4
# What is left where nearly equal numbers cancel is rounding, which no bound on the result's own size allows for.
_ROUNDED = (
    "bisect names the first op that differs; if that is a difference of nearly equal numbers (a residual), "
    "its rounding differs: run with 64-bit inputs to see it shrink"
)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many arrays were compared and the largest error relative to what is allowed."""

    arrays: int = 0
    worst: float = 0.0
    bound: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        worst = max((self, other), key=lambda t: t.worst)
        return Tally(self.arrays + other.arrays, worst.worst, worst.bound)

    def text(self, against: str = "one device") -> str:
        """`compared 12 arrays with one device, largest error 1.2e-07 (allowed 3e-05)`."""
        if not self.arrays:
            return "compared no arrays"
        compared = f"compared {count_text(self.arrays, 'array')} with {against}"
        return f"{compared}, largest error {self.worst:.3g} (allowed {self.bound:.3g})"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The comparison of every stage with the first."""

    stages: Mapping[str, Tally]

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """One line a stage."""
        return "\n".join(f"{name:12} {tally.text()}" for name, tally in self.stages.items())


def compare_results(
    actual: Sequence[Array], expected: Sequence[Array], what: str, against: str = "one device"
) -> Tally:
    """Compare results one by one; raises ExecutionError if there are none, or naming the first that differs.

    Rounding is allowed for, as in `kernels.closeness`.
    """
    if not expected:
        raise ExecutionError(f"{what} has no results: nothing was compared", rule="check")
    tally = Tally()
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        outcome = compare(a, e, terms=_TERMS if e.dtype.itemsize >= 4 else _NARROW_TERMS)
        if not outcome.ok:
            raise ExecutionError(
                f"{what}: result {i} differs from {against}: {outcome.message}",
                rule="check",
                fix=_ROUNDED if dtype_kind(e.dtype) in ("float", "complex") else "",
            )
        tally = tally + Tally(1, outcome.max_error, outcome.bound)
    return tally


def check_stages(executors: Mapping[str, Executor], arrays: Sequence[Array]) -> CheckReport:
    """Run every stage and compare its results with the first one's; raises ExecutionError at the first that differs."""
    names = list(executors)
    expected = executors[names[0]].run_whole(arrays)
    tallies: dict[str, Tally] = {}
    for name in names[1:]:
        tallies[name] = compare_results(executors[name].run_whole(arrays), expected, f"stage {name}")
    return CheckReport(tallies)
