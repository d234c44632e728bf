"""docs/propagation.md: the programs that others propagate otherwise, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.propagation.judge.record import JUDGES
from tests.propagation.judge.verdict import Verdict

PAGE = Path(__file__).parents[3] / "docs" / "propagation.md"

INTRODUCTION = """# Our propagation beside Shardy's and XLA's

This page is written by `python -m tests.propagation.judge`; `tests/propagation/test_judge.py` holds it to today's
propagation. The programs are those of `tests/propagation/judge/programs` and `tests/xla/judge_programs`, annotated on
a few values. Shardy (`sdy-propagation-pipeline`) and XLA (GSPMD) are asked through jaxlib for the sharding of every
value; compared are those that depend on an argument and that a result needs. Where a value is sharded otherwise, both
sets of shardings are put on all values as annotations and compiled by our partitioner: the bytes are those that one
device puts on the wire.

* *equal*: every value is sharded alike. *fewer*, *same*, *more*: some are not, and ours costs that many bytes.
* XLA's strings cannot say open dimensions of arguments, priorities, replicated axes, groups and barriers: in `marks/`
  it answers another question. Shardy takes pieces of axes off arguments and results again once it has propagated.
* `python -m tests.propagation.judge --random 100` compares random programs.
"""


def page(found: Sequence[Verdict]) -> str:
    """The text of the page."""
    head = "| program | judge | values | other | first difference (ours / theirs) | ours | theirs | |\n"
    rule = "|---|---|---:|---:|---|---:|---:|---|\n"
    rows = "".join(f"{row(v)}\n" for v in found if v.kind not in ("equal", "silent"))
    return f"{INTRODUCTION}\n{summary(found)}\n\n{head}{rule}{rows}"


def row(v: Verdict) -> str:
    """A line of the table."""
    c = v.comparison
    first = c.differing[0]
    assert v.ours is not None and v.theirs is not None
    price = f"{v.ours.wire_bytes:,.0f} | {v.theirs.wire_bytes:,.0f}"
    shown = f"{first.value} `{first.ours}` / `{first.theirs}`"
    note = f"{v.kind}: {v.reason}" if v.reason else v.kind
    return f"| {c.program} | {c.judge} | {c.compared} | {len(c.differing)} | {shown} | {price} | {note} |"


def summary(found: Sequence[Verdict]) -> str:
    """The counts for each judge."""
    lines: list[str] = []
    for judge in JUDGES:
        of = [v for v in found if v.comparison.judge == judge and v.kind != "silent"]
        kinds = Counter(v.kind for v in of)
        values = sum(v.comparison.compared for v in of)
        other = sum(len(v.comparison.differing) for v in of)
        ours = sum(v.ours.wire_bytes for v in of if v.ours)
        theirs = sum(v.theirs.wire_bytes for v in of if v.theirs)
        lines.append(
            f"{judge}: {len(of)} programs, {kinds['equal']} equal, {kinds['fewer']} with fewer bytes, {kinds['same']} "
            f"with as many, {kinds['more']} with more; {values - other} of {values} values alike; where they differ "
            f"ours costs {ours:,.0f} bytes, theirs {theirs:,.0f}."
        )
    return "\n\n".join(lines)
