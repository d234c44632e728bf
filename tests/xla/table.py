"""How our partitioning compares with XLA's, program by program; rewrites docs/xla.md.

    python -m tests.xla.table [NAME ...]      with names: only prints those
    python -m tests.xla.table --values        runs each program and compares the results with XLA's (minutes)

Wire bytes are per device, under the ring model of `hlo.py`, loops counted as often as they run.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import gspmd
from tests.xla.case import Case, differences
from tests.xla.judge_programs import CASES
from tests.xla.oracle import Answer
from tests.xla.record import Record

RECORD = Record()
PAGE = Path(__file__).parents[2] / "docs" / "xla.md"
# The limits that the comparison keeps to, where shardings of inputs and outputs are fixed.
MOST_HIGHER = 3
HIGHEST_RATIO = 1.25
# Bytes that are no difference: a scalar more or less.
SLACK = 64.0


@dataclass(frozen=True)
class Row:
    """One program: XLA's bytes and ours, and with which collectives."""

    case: Case
    theirs: float
    ours: float
    their_kinds: str
    our_kinds: str

    @property
    def higher(self) -> bool:
        """Whether we send more."""
        return self.ours > self.theirs + SLACK

    @property
    def ratio(self) -> float:
        """Our bytes over theirs; 1 where neither sends any."""
        return self.ours / self.theirs if self.theirs else float("inf") if self.ours else 1.0


def answer_for(case: Case) -> Answer:
    """XLA's recorded answer on the program as it was exported last; KeyError, saying how to ask, if there is none."""
    path = RECORD.folder / "programs" / case.file
    entry = RECORD.find(path.read_text(encoding="utf-8"), case.mesh.size) if path.exists() else None
    if entry is None:
        raise KeyError(f"XLA was not asked about {case.name}; python -m tests.xla.export {case.name} asks")
    return entry.answer


def row_of(case: Case) -> Row:
    """Compile one program, and look XLA's answer up."""
    answer = answer_for(case)
    uses = gspmd.compile(case.module(), mesh=case.mesh, until="optimized", verify=False).collectives()
    ours = sum(use.wire_bytes * use.count for use in uses)
    # XLA combines several all-reduces into one; the arrays of an all-to-all are the parts of one.
    their_kinds = _kinds(
        (c.kind.replace("-", "_"), 1 if "all-to-all" in c.kind else c.members) for c in answer.collectives
    )
    return Row(case, answer.wire_bytes, ours, their_kinds, _kinds((use.kind, 1) for use in uses))


def _kinds(found: Iterable[tuple[str, int]]) -> str:
    counts: Counter[str] = Counter()
    for kind, count in found:
        counts[kind] += count
    return ", ".join(f"{n} {kind}" if n > 1 else kind for kind, n in sorted(counts.items()))


def line(row: Row) -> str:
    """A row of the table."""
    mesh = " x ".join(f"{name} {size}" for name, size in row.case.mesh.axes)
    ratio = "-" if not row.theirs and not row.ours else f"{row.ratio:.2f}"
    notes = ("ragged" if row.case.ragged else "", "free" if row.case.loose else "")
    marks = " ".join(n for n in notes if n)
    return (
        f"| {row.case.name} | {mesh} | {marks} | {row.theirs:,.0f} | {row.ours:,.0f} | {ratio} "
        f"| {row.their_kinds} | {row.our_kinds} |"
    )


def summary(rows: Sequence[Row]) -> str:
    """The counts and totals over the programs whose shardings are fixed."""
    fixed = [r for r in rows if not r.case.loose]
    theirs, ours = sum(r.theirs for r in fixed), sum(r.ours for r in fixed)
    higher = [r for r in fixed if r.higher]
    lower = sum(r.theirs > r.ours + SLACK for r in fixed)
    two = sum(len(r.case.mesh.axes) == 2 for r in rows)
    return (
        f"{len(rows)} programs, {two} on meshes of two axes, {sum(r.case.ragged for r in rows)} ragged; "
        f"in {len(fixed)} the shardings of inputs and outputs are fixed. Of those we send less than XLA in {lower}, "
        f"as much in {len(fixed) - lower - len(higher)}, more in {len(higher)}"
        f"{': ' + ', '.join(r.case.name for r in higher) if higher else ''}. "
        f"All together: XLA {theirs:,.0f} bytes a device, we {ours:,.0f} ({ours / max(theirs, 1):.3f})."
    )


def page(rows: Sequence[Row]) -> str:
    """The text of docs/xla.md."""
    head = (
        "| program | mesh | | XLA | ours | ratio | XLA's collectives | our collectives |\n"
        "|---|---|---|---:|---:|---:|---|---|\n"
    )
    return f"{INTRODUCTION}\n{summary(rows)}\n\n{head}" + "".join(f"{line(r)}\n" for r in rows)


INTRODUCTION = """# Our partitioning beside XLA's

This page is written by `python -m tests.xla.table`; `tests/xla/test_judge.py` holds it to its limits.

The programs of `tests/xla/judge_programs` are written once, in our front end. `tests/xla/export.py` hands them to XLA
(jaxlib's CPU client, GSPMD partitioner) as StableHLO with the same shardings of inputs, outputs and annotations; the
answers are kept in `tests/xla/answers.json`. Both compute the same values: `python -m tests.xla.table --values` runs
ours on all devices in lockstep and XLA's on one.

Each number is the bytes that one device puts on the wire in one run: all-gather (g-1)/g of its output, reduce-scatter
and all-to-all (g-1)/g of their operand, all-reduce twice that, permutes their operand; loops count as often as they
run. An all-reduce of XLA's that is only sliced is counted as the reduce-scatter that pipelines for other devices than
CPUs make of it. `ragged` programs have sizes that do not divide; in `free` ones each lays out the results as it likes,
so that their numbers say little.
"""


def _compare_values(cases: Sequence[Case]) -> int:
    """Run each program by both; returns 1 if some differ."""
    wrong = 0
    for case in cases:
        found = differences(case)
        wrong += bool(found)
        print(f"{case.name:40} {'; '.join(found) or 'same values'}", flush=True)
    return 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.xla.table", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--values", action="store_true", help="compare results with XLA's instead")
    args = parser.parse_args(arguments)
    names = tuple(args.names)
    if args.values:
        return _compare_values([case for case in CASES if not names or case.name.startswith(names)])
    rows = [row_of(case) for case in CASES if not names or case.name.startswith(names)]
    if names:
        print("\n".join(map(line, rows)))
        return 0
    PAGE.write_text(page(rows), encoding="utf-8")
    print(summary(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
