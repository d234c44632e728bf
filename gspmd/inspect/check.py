"""Whether two runs of one program agree: all stages against the first, many devices against one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gspmd.inspect.reference import ALLOWED_MOVES, UNITS, Reference
from gspmd.inspect.units import count_text
from gspmd.ir.errors import ExecutionError
from gspmd.ir.opdef import Array
from gspmd.kernels.closeness import Comparison, compare
from gspmd.runtime.executor import Executor

# Roundings that a whole program's result may go through, as in a sum of so many terms; narrow floats are summed wide.
_TERMS, _NARROW_TERMS = 1 << 14, 1 << 4


@dataclass(frozen=True, slots=True)
class Tally:
    """How many arrays were compared, the largest error and what was allowed there.

    `uncertain` counts the arrays that differ by more than a result of their size may, and by no more than the
    reference's own uncertainty.
    """

    arrays: int = 0
    worst: float = 0.0
    bound: float = 0.0
    uncertain: int = 0

    def __add__(self, other: Tally) -> Tally:
        worst = max((self, other), key=lambda t: t.worst)
        return Tally(self.arrays + other.arrays, worst.worst, worst.bound, self.uncertain + other.uncertain)

    def text(self, against: str = "one device") -> str:
        """`compared 12 arrays with one device, largest error 1.2e-07 (allowed 3e-05)`."""
        if not self.arrays:
            return "compared no arrays"
        compared = f"compared {count_text(self.arrays, 'array')} with {against}"
        told = f"{compared}, largest error {self.worst:.3g} (allowed {self.bound:.3g})"
        if not self.uncertain:
            return told
        return (
            f"{told}; {count_text(self.uncertain, 'array')} allowed {ALLOWED_MOVES} times what moving the inputs "
            f"by {UNITS} units in the last place changes"
        )


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The comparison of every stage with the first."""

    stages: Mapping[str, Tally]

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """One line a stage."""
        return "\n".join(f"{name:12} {tally.text()}" for name, tally in self.stages.items())


def compare_results(actual: Sequence[Array], expected: Reference, what: str, against: str = "one device") -> Tally:
    """Compare results one by one; raises ExecutionError if there are none, or naming the first that differs.

    Rounding is allowed for as in `kernels.closeness`; where that is too little for a float, as much as the reference
    moves, as in `inspect.reference`.
    """
    if not expected.results:
        raise ExecutionError(f"{what} has no results: nothing was compared", rule="check")
    tally = Tally()
    for i, (a, e) in enumerate(zip(actual, expected.results, strict=True)):
        outcome, allowance = _compare(a, e), None
        if not outcome.ok:
            allowance = expected.allowance(i)
            outcome = outcome if allowance is None else _compare(a, e, allowance)
        if not outcome.ok:
            raise ExecutionError(
                f"{what}: result {i} differs from {against}: {outcome.message}",
                rule="check",
                fix="" if allowance is None else _wrong(float(np.max(allowance, initial=0.0))),
            )
        tally = tally + Tally(1, outcome.max_error, outcome.bound, int(allowance is not None))
    return tally


def _compare(actual: Array, expected: Array, allowance: Array | float = 0.0) -> Comparison:
    terms = _TERMS if expected.dtype.itemsize >= 4 else _NARROW_TERMS
    return compare(actual, expected, terms=terms, allowance=allowance)


def _wrong(allowed: float) -> str:
    """What to do about a float that is not merely rounded otherwise."""
    return (
        f"bisect names the first op that differs; it is more than rounding: {ALLOWED_MOVES} times what moving the "
        f"inputs by {UNITS} units in the last place changes is {allowed:.3g}"
    )


def check_stages(executors: Mapping[str, Executor], arrays: Sequence[Array]) -> CheckReport:
    """Run every stage and compare its results with the first one's; raises ExecutionError at the first that differs."""
    names = list(executors)
    expected = Reference(executors[names[0]].run_whole, arrays)
    tallies: dict[str, Tally] = {}
    for name in names[1:]:
        tallies[name] = compare_results(executors[name].run_whole(arrays), expected, f"stage {name}")
    return CheckReport(tallies)
