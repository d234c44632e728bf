"""The command line starts fast: what is slow to load waits until it is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gspmd.runtime.launch import rank_environment
from tests.cli.command import GSPMD, ROOT, gspmd

SLOW = {"jax", "jaxlib", "mpi4py", "networkx", "numba", "numpy", "scipy", "threadpoolctl"}


def loaded(*arguments: str) -> set[str]:
    """The top packages that a command line loads in its own process."""
    command = [GSPMD[0], "-X", "importtime", *GSPMD[1:], *arguments]
    done = subprocess.run(command, cwd=ROOT, env=rank_environment(1), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    return {m.split(".")[0] for m in re.findall(r"\| +(\S+)$", done.stderr, re.MULTILINE)}


def test_help_and_info_do_not_load_the_compiler() -> None:
    for arguments in (["--help"], ["info"]):
        found = loaded(*arguments)
        assert "gspmd" in found and not found & SLOW


def test_a_program_that_runs_alone_loads_no_mpi(tmp_path: Path) -> None:
    text = "func @f(%x: f32[4]) -> (f32[4]) stage=annotated {\n  return %x\n}\n"
    (tmp_path / "f.gspmd").write_text(text)
    assert not loaded("run", str(tmp_path / "f.gspmd"), "--random", "1") & {"jax", "jaxlib", "mpi4py", "numba"}


def test_info_tells_what_there_is(tmp_path: Path) -> None:
    outcome = gspmd(tmp_path, "info")
    labels = [line.split()[0] for line in outcome.out.splitlines()]
    assert outcome.code == 0 and labels == ["python", "mpi", "launcher", "ranks", "cores", "threads", "cache"]
    assert sys.executable in outcome.out


def test_without_a_command_it_says_what_there_is(tmp_path: Path) -> None:
    outcome = gspmd(tmp_path)
    assert outcome.code == 2 and "collectives" in outcome.out
