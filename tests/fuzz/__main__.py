"""Run the fuzzer for some time, or replay a file.

    python -m tests.fuzz --seconds 60 --seed 7 [--cases 1000] [--devices 24] [--mpi] [--out DIR] [--coverage]
    python -m tests.fuzz --replay FILE ...

Prints every finding with the file that it was made small into, what was refused and why, cases a second, and which
kinds of splits each op went through.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gspmd.driver.steps import OPTIONAL
from tests.fuzz import coverage, ranks, replay
from tests.fuzz.generate import Case, random_case
from tests.fuzz.judge import Outcome, judge
from tests.fuzz.shrink import shrink


class Campaign:
    """Cases from one seed, and what came of them."""

    def __init__(self, seed: int, devices: int = 24, out: Path | None = None, mpi: bool = False) -> None:
        self.seed, self.devices, self.out = seed, devices, out
        self.kinds: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.cells: coverage.Cells = Counter()
        self.findings: list[str] = []
        self.ranks = ranks.Batches() if mpi else None

    def run(self, number: int) -> Outcome:
        """Draw and judge one case."""
        case = random_case(self.seed, number, OPTIONAL, self.devices)
        outcome = judge(case)
        self.kinds[outcome.kind] += 1
        self.cells.update(coverage.cells_of(outcome))
        if outcome.kind == "refused":
            self.refusals[outcome.message.partition("\n")[0][:160]] += 1
        if outcome.bad:
            self._report(case, outcome, number)
        elif self.ranks is not None:
            self.findings += self.ranks.add(case)
        return outcome

    def finish(self) -> None:
        """Run what waits for ranks."""
        if self.ranks is not None:
            self.findings += self.ranks.run()

    def _report(self, case: Case, outcome: Outcome, number: int) -> None:
        title = f"{outcome.kind} at {outcome.stage}: {outcome.message}"
        note = f"found by seed {self.seed}, case {number}: {outcome.kind} at {outcome.stage}\n{outcome.message[:400]}"
        if self.out is not None:
            path = self.out / f"seed{self.seed}_case{number}.gspmd"
            small = shrink(case, outcome, judge)
            replay.write(small, path, note)
            title += f"\n  {path}"
        self.findings.append(title)
        print(f"seed {self.seed} case {number}: {title}", flush=True)


def fuzz(arguments: argparse.Namespace) -> int:
    """Draw cases until time or number is used up; returns 1 if there is a finding."""
    campaign = Campaign(arguments.seed, arguments.devices, arguments.out, arguments.mpi)
    begin = time.monotonic()
    number = arguments.start
    while time.monotonic() - begin < arguments.seconds and number < arguments.start + arguments.cases:
        campaign.run(number)
        number += 1
    campaign.finish()
    seconds = time.monotonic() - begin
    if arguments.coverage:
        print(coverage.table(campaign.cells))
    for text, n in campaign.refusals.most_common():
        print(f"refused {n} times: {text}")
    done = number - arguments.start
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(campaign.kinds.items()))
    ran = "" if campaign.ranks is None else f"; {campaign.ranks.done} on ranks as well"
    print(f"seed {arguments.seed}: {done} cases in {seconds:.0f} s, {done / seconds:.1f} a second: {kinds}{ran}")
    return 1 if campaign.findings else 0


def main(given: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 60, help="at most so many")
    parser.add_argument("--start", type=int, default=0, help="the number of the first case")
    parser.add_argument("--devices", type=int, default=24, help="of the largest meshes")
    parser.add_argument("--mpi", action="store_true", help="also on ranks, where the mesh has two to four devices")
    parser.add_argument("--coverage", action="store_true", help="print the table of ops and splits")
    parser.add_argument("--out", type=Path, help="the directory for findings, made small")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="judge these instead")
    arguments = parser.parse_args(given)
    if arguments.replay is None:
        return fuzz(arguments)
    outcomes = {path: judge(replay.read(path)) for path in arguments.replay}
    for path, outcome in outcomes.items():
        print(f"{path}: {outcome.kind} {outcome.stage} {outcome.message}")
    return 1 if any(o.bad for o in outcomes.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
