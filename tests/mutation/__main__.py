"""Alter every op's rule and see that each mutant dies.

    python -m tests.mutation [--op NAME] [--all]

By default a sample of each op's mutants is tried, with --all every one, with --op all of one op's. A mutant dies when
the laws (`laws.fault`) find it; one that lives must be listed in `equivalent.py` with the reason. Exit 1 if one lives
that is not listed, or if a listed one dies.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from gspmd.ops import OPS
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.laws import fault
from tests.mutation.mutants import mutant_of
from tests.mutation.sample import RULED, mutant_names, one_of


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--op", choices=RULED, help="all mutants of this op")
    parser.add_argument("--all", action="store_true", help="all mutants of all ops")
    args = parser.parse_args(arguments)
    deaths: Counter[str] = Counter()
    wrong = 0
    for op in (args.op,) if args.op else RULED:
        names = mutant_names(op) if args.all or args.op else (one_of(op),)
        for name in names:
            verdict = fault(mutant_of(OPS[op], name)) or "alive"
            listed = (op, name) in EQUIVALENT
            deaths["equivalent" if verdict == "alive" and listed else verdict] += 1
            if (verdict == "alive") != listed:
                wrong += 1
                print(f"{op}: {name}: {'listed as equivalent, but dies' if listed else 'lives'}", flush=True)
    print(", ".join(f"{verdict} {count}" for verdict, count in deaths.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
