"""How we partition single ops beside XLA; writes docs/xla_single.md.

python -m tests.xla.single.table [NAME ...]      with names: only prints the rows whose names hold one
python -m tests.xla.single.table --values        runs every row and compares with XLA on one device (minutes)
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gspmd
from tests.xla.case import differences
from tests.xla.single.exceptions import EXCEPTIONS, OTHER_VALUES
from tests.xla.single.program import Single
from tests.xla.single.record import Recorded, answers, kinds
from tests.xla.single.rows import SINGLES

PAGE = Path(__file__).parents[3] / "docs" / "xla_single.md"
# Bytes that are no difference: a scalar or two.
SLACK = 8.0


@dataclass(frozen=True, slots=True)
class Row:
    """One program: XLA's bytes and ours, and by which collectives."""

    single: Single
    theirs: Recorded
    ours: float
    our_kinds: str

    @property
    def higher(self) -> bool:
        """Whether we send more."""
        return self.ours > self.theirs.wire_bytes + SLACK

    @property
    def lower(self) -> bool:
        """Whether we send less."""
        return self.ours < self.theirs.wire_bytes - SLACK


def row_of(single: Single, theirs: Recorded) -> Row:
    """Compile one program."""
    uses = gspmd.compile(single.module(), mesh=single.mesh, until="optimized", verify=False).collectives()
    ours = sum(use.wire_bytes * use.count for use in uses)
    return Row(single, theirs, ours, kinds(Counter(use.kind for use in uses)))


def rows(names: Sequence[str] = ()) -> list[Row]:
    """All rows, or those whose names hold one of some texts."""
    known = answers()
    wanted = [s for s in SINGLES if not names or any(n in s.name for n in names)]
    return [row_of(s, known[s.name]) for s in wanted]


def total(found: Sequence[Row]) -> str:
    """Counts and bytes of rows, as cells of a table."""
    theirs, ours = sum(r.theirs.wire_bytes for r in found), sum(r.ours for r in found)
    lower, higher = sum(r.lower for r in found), sum(r.higher for r in found)
    counts = f"{len(found)} | {lower} | {len(found) - lower - higher} | {higher}"
    return f"{counts} | {theirs:,.0f} | {ours:,.0f} | {ours / theirs if theirs else 1:.2f}"


def line(row: Row) -> str:
    """A row of the long table."""
    s = row.single
    mesh = " ".join(f"{name}={size}" for name, size in s.mesh.axes)
    marks = " ".join(m for m in ("ragged" if s.ragged else "", "free" if s.loose else "") if m)
    numbers = f"{row.theirs.wire_bytes:,.0f} | {row.ours:,.0f}"
    return f"| {s.name} | {mesh} | {marks} | {numbers} | {row.theirs.collectives} | {row.our_kinds} |"


def page(found: Sequence[Row]) -> str:
    """The text of docs/xla_single.md."""
    head = "| programs | fewer | equal | more | XLA's bytes | ours | ratio |\n"
    rule = "---:|---:|---:|---:|---:|---:|---:|"
    kinds_of_ops = dict.fromkeys(r.single.kind for r in found)
    ragged, idle = sum(r.single.ragged for r in found), sum(len(r.single.mesh.axes) > 1 for r in found)
    parts = [
        INTRODUCTION,
        f"{len(found)} programs, {idle} of them on meshes of several axes, {ragged} ragged.\n",
        f"| op {head}|---|{rule}",
        *(f"| {kind} | {total([r for r in found if r.single.kind == kind])} |" for kind in kinds_of_ops),
        f"| all | {total(found)} |\n",
        "## Where we send more\n",
        "| program | XLA | ours | why |\n|---|---:|---:|---|",
        *(
            f"| {r.single.name} | {r.theirs.wire_bytes:,.0f} | {r.ours:,.0f} | {EXCEPTIONS.get(r.single.name, '')} |"
            for r in found
            if r.higher
        ),
        "\n## All programs\n",
        "| program | mesh | | XLA | ours | XLA's collectives | our collectives |\n|---|---|---|---:|---:|---|---|",
        *map(line, found),
    ]
    return "\n".join(parts) + "\n"


INTRODUCTION = """# Single ops beside XLA

This page is written by `python -m tests.xla.single.table`; `tests/xla/single/test_single.py` holds it to what our
partitioner does and to what XLA (jaxlib's CPU client, GSPMD partitioner) was recorded to do.

Each program is one op, or a few that belong together, with the shardings of arguments and results fixed, so that
propagation plays no part; those marked `free` leave the results to each. The numbers are bytes that one device puts on
the wire, as in [xla.md](xla.md). The programs stand in `tests/xla/single`, one line each;
`python -m tests.xla.single.record` asks XLA about those that are new, with `--all` about all, and
`python -m tests.xla.single.table --values` compares all values with those of XLA on one device.
"""


def _compare_values(singles: Sequence[Single]) -> int:
    """Run each program by both; returns 1 if some differ."""
    wrong = [text for single in singles if single.name not in OTHER_VALUES for text in differences(single)]
    print("\n".join(wrong))
    print(f"{len(singles)} programs, {len(wrong)} results that differ")
    return 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.xla.single.table", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--values", action="store_true", help="compare results with XLA's instead")
    args = parser.parse_args(arguments)
    if args.values:
        return _compare_values([s for s in SINGLES if not args.names or any(n in s.name for n in args.names)])
    found = rows(args.names)
    if args.names:
        print("\n".join(map(line, found)))
        return 0
    PAGE.write_text(page(found), encoding="utf-8")
    print(total(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
