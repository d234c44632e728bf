"""Programs from JAX on ranks of MPI: the bits of the simulator, and JAX's own values."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gspmd.runtime.launch import launch_command, rank_environment
from tests.interop.programs_on_ranks import CHOSEN
from tests.runtime.ranks import ROOT


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", CHOSEN)
def test_programs_from_jax_run_on_ranks(ranks: int) -> None:
    command = [*launch_command(ranks), sys.executable, "-m", "tests.interop.programs_on_ranks"]
    done = subprocess.run(
        command, env=rank_environment(ranks), cwd=ROOT, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(f"results equal, {len(CHOSEN[ranks])} programs")
