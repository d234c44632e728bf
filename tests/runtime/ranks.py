"""Starting the ranks of a test program and reading what they print."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from gspmd.runtime.environment import find_mpiexec
from gspmd.runtime.launch import launch_command, launcher_kind, rank_environment

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ("-m", "tests.runtime.mpi_program")


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str
    seconds: float


def through_launch(mode: str, ranks: int, **env: str) -> Outcome:
    """Run a mode of the test program by `launch`, in a process of its own whose output can be read."""
    call = f"launch({[*PROGRAM, mode]}, {ranks}, timeout=50)"
    text = f"import sys; from gspmd.runtime.launch import launch; sys.exit({call})"
    return run([sys.executable, "-c", text], {**rank_environment(1), **env})


def through_mpiexec(mode: str, ranks: int) -> Outcome:
    """Run a mode of the test program as a user would who knows only mpiexec."""
    mpiexec = find_mpiexec()
    assert mpiexec is not None
    plain = [mpiexec, "-n", str(ranks)] if launcher_kind(mpiexec) == "mpich" else launch_command(ranks)
    return run([*plain, sys.executable, *PROGRAM, mode], rank_environment(1))


def run(command: list[str], env: dict[str, str]) -> Outcome:
    begin = time.monotonic()
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=55)
    return Outcome(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)
