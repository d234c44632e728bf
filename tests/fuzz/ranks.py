"""Cases on MPI ranks: as many at once as a job is worth, each compared bit by bit with the simulator.

`python -m tests.fuzz.ranks FILE ...` is what the ranks run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

import gspmd
from gspmd.driver.module import Module
from gspmd.frontend.tree import flatten
from gspmd.ir.errors import GspmdError
from gspmd.runtime.launch import launch_command, rank_environment
from tests.fuzz import replay
from tests.fuzz.generate import Case
from tests.fuzz.inputs import arguments

_ROOT = Path(__file__).resolve().parent.parent.parent
_BATCH, _MOST_RANKS = 25, 4


class Batches:
    """Cases that wait for a job of their size."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Case]] = defaultdict(list)
        self.done = 0

    def add(self, case: Case) -> list[str]:
        """Run the case soon, if its mesh is small enough; returns findings."""
        size = 1 if case.program.mesh is None else case.program.mesh.size
        if not 2 <= size <= _MOST_RANKS:
            return []
        self.waiting[size].append(case)
        return self._job(size) if len(self.waiting[size]) >= _BATCH else []

    def run(self) -> list[str]:
        """Run all that wait."""
        return [found for size in sorted(self.waiting) for found in self._job(size)]

    def _job(self, ranks: int) -> list[str]:
        held, self.waiting[ranks] = self.waiting[ranks], []
        if not held:
            return []
        with tempfile.TemporaryDirectory() as place:
            paths = [Path(place) / f"{i}.gspmd" for i in range(len(held))]
            for case, path in zip(held, paths, strict=True):
                replay.write(case, path, "waits for ranks")
            command = [*launch_command(ranks), sys.executable, "-m", "tests.fuzz.ranks", *map(str, paths)]
            done = subprocess.run(
                command, env=rank_environment(1), cwd=_ROOT, capture_output=True, text=True, timeout=600, check=False
            )
            self.done += len(held)
            if done.returncode == 0:
                return []
            last = done.stdout.strip().rpartition("\n")[2]
            text = Path(last).read_text() if Path(last).is_file() else ""
        message = f"on {ranks} ranks: {done.stderr[-800:]}\n{text}"
        print(message, flush=True)
        return [message]


def main(paths: list[str]) -> None:
    """Each case over MPI and in the simulator."""
    for path in paths:
        if gspmd.world().rank == 0:
            print(path, flush=True)
        case = replay.read(Path(path))
        try:
            compiled = gspmd.compile(Module(case.program), without=case.without)
        except GspmdError:
            continue
        arrays = arguments(case.program, case.seed)
        with np.errstate(all="ignore"):
            actual = [np.asarray(x) for x in flatten(compiled(*arrays))[0]]
            expected = [np.asarray(x) for x in flatten(compiled.simulate(*arrays))[0]]
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype and a.shape == e.shape and a.tobytes() == e.tobytes(), path


if __name__ == "__main__":
    main(sys.argv[1:])
