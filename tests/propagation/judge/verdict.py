"""How our propagation of each program compares: equal, fewer bytes, as many, or more, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.propagation.judge.compare import SLACK, Bill, Difference, Question, bill, differences, question
from tests.propagation.judge.programs import FAMILIES
from tests.propagation.judge.reasons import REASONS
from tests.propagation.judge.record import JUDGES, Answer
from tests.xla.case import Case
from tests.xla.judge_programs import CASES


@dataclass(frozen=True)
class Comparison:
    """One program beside one judge: the values compared, those that differ."""

    program: str
    judge: str
    compared: int
    differing: tuple[Difference, ...]


@dataclass(frozen=True)
class Verdict:
    """A comparison and its price; `kind`: equal, fewer, same or more bytes, or silent where the judge said nothing."""

    comparison: Comparison
    kind: str
    ours: Bill | None = None
    theirs: Bill | None = None

    @property
    def reason(self) -> str:
        """Why ours costs more, if it does; "" if nobody knows."""
        return REASONS.get((self.comparison.program, self.comparison.judge), "")


def programs() -> Iterator[tuple[str, Case]]:
    """All programs by name: the judge's own, and those that XLA judges by bytes."""
    for family, cases in FAMILIES.items():
        for case in cases:
            yield f"{family}/{case.name}", case
    for case in CASES:
        yield f"xla/{case.name}", case


def asked(case: Case) -> Question:
    """The question about a case."""
    return question(case.module().program)


def comparisons(name: str, q: Question, answer: Answer) -> list[Comparison]:
    """A program beside each judge."""
    out: list[Comparison] = []
    for judge in JUDGES:
        found, count = differences(q, answer.shardings(judge, q.mesh))
        out.append(Comparison(name, judge, count, tuple(found)))
    return out


def verdict(comparison: Comparison, q: Question, answer: Answer, ours: Bill | None = None) -> Verdict:
    """What a comparison comes to; `ours` is the price of our own shardings if it is known."""
    if not comparison.compared:
        return Verdict(comparison, "silent")
    if not comparison.differing:
        return Verdict(comparison, "equal")
    ours = ours or bill(q, {})
    theirs = bill(q, answer.shardings(comparison.judge, q.mesh))
    if ours.wire_bytes > theirs.wire_bytes + SLACK:
        return Verdict(comparison, "more", ours, theirs)
    kind = "fewer" if ours.wire_bytes < theirs.wire_bytes - SLACK else "same"
    return Verdict(comparison, kind, ours, theirs)
