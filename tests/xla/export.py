"""Write the judge's programs as StableHLO and record what XLA makes of those that changed.

python -m tests.xla.export [NAME ...]      all programs, or those whose names start so; `--ask` asks even if unchanged
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.xla.case import Case
from tests.xla.judge_programs import CASES
from tests.xla.record import Entry, Record
from tests.xla.version import jaxlib_version


def export(cases: Sequence[Case], record: Record, ask_all: bool) -> list[Case]:
    """Write the texts; returns the cases that XLA has to be asked about."""
    wanted: list[Case] = []
    for case in cases:
        text = case.exported()
        (record.folder / "programs" / case.file).write_text(text, encoding="utf-8")
        entry = record.find(text, case.mesh.size)
        if ask_all or entry is None or entry.jaxlib != jaxlib_version():
            wanted.append(case)
    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if XLA refused a program."""
    parser = argparse.ArgumentParser(prog="python -m tests.xla.export", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ask", action="store_true", help="ask XLA about unchanged programs too")
    args = parser.parse_args(arguments)
    record = Record()
    cases = [c for c in CASES if not args.names or c.name.startswith(tuple(args.names))]

    def ask(case: Case) -> Entry:
        entry = record.ask(case.file, case.mesh.size, 300.0)
        print(f"{case.name:40} {entry.answer.wire_bytes:14.0f} B  {entry.answer.error}", flush=True)
        return entry

    with ThreadPoolExecutor(2) as pool:
        entries = list(pool.map(ask, export(cases, record, args.ask)))
    record.write(entries)
    return 1 if any(e.answer.error for e in entries) else 0


if __name__ == "__main__":
    raise SystemExit(main())
