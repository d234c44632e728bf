"""Draw any number of cases and compare ours with XLA's values.

python -m tests.xla.sweep --cases 20000 --seed 7 [--ops add,reduce] [--programs]

Prints the seed, how many cases of which op and dtype were compared, how fast, and every mismatch with its program.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.xla.sweep.cases import Case, Generator
from tests.xla.sweep.draws import draw_cases, rounds_for
from tests.xla.sweep.families import GENERATORS
from tests.xla.sweep.judge import Mismatch, judge
from tests.xla.sweep.programs import program_cases

# Cases that XLA compiles at once.
BATCH = 80


def batches(cases: Iterator[Case], size: int = BATCH) -> Iterator[list[Case]]:
    """The cases, so many at a time."""
    held: list[Case] = []
    for case in cases:
        held.append(case)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


def table(counts: Counter[tuple[str, str]]) -> str:
    """How often each op was compared, by dtype."""
    ops = sorted({op for op, _ in counts})
    lines: list[str] = []
    for op in ops:
        row = sorted((dtype, n) for (name, dtype), n in counts.items() if name == op)
        lines.append(f"{op:28} {sum(n for _, n in row):7}  " + " ".join(f"{dtype}:{n}" for dtype, n in row))
    return "\n".join(lines)


def sweep(generators: Sequence[Generator], count: int, seed: int, programs: bool) -> list[Mismatch]:
    """Compare at least so many cases; returns the mismatches."""
    counts: Counter[tuple[str, str]] = Counter()
    found: list[Mismatch] = []
    started, said = time.monotonic(), 0.0
    drawn = draw_cases(generators, rounds_for(generators, count), seed)
    cases = (case for chunk in drawn for case in chunk)
    for batch in batches(cases):
        wrong = judge(batch)
        found += wrong
        counts.update((c.op, c.dtype) for c in batch)
        for mismatch in wrong:
            print(mismatch.text(), flush=True)
        if time.monotonic() - said > 30:
            said = time.monotonic()
            print(f"{counts.total()} cases, {len(found)} mismatches", flush=True)
    if programs:
        for case in program_cases(seed):
            wrong = judge([case])
            found += wrong
            counts[("program " + case.op, case.dtype)] += 1
            for mismatch in wrong:
                print(mismatch.text(), flush=True)
    seconds = time.monotonic() - started
    print(table(counts))
    print(f"seed {seed}: {counts.total()} cases in {seconds:.0f} s, {counts.total() / seconds:.0f} a second")
    print(f"{len(found)} mismatches")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.xla.sweep", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=20000, help="at least so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", default="", help="only these, separated by commas")
    parser.add_argument("--programs", action="store_true", help="also the programs that JAX lowers")
    args = parser.parse_args(arguments)
    wanted = set(args.ops.split(",")) if args.ops else None
    generators = [g for g in GENERATORS if wanted is None or g.op in wanted]
    return 1 if sweep(generators, args.cases, args.seed, args.programs) else 0


if __name__ == "__main__":
    raise SystemExit(main())
