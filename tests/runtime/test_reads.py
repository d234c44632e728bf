"""Reading an array is a step of all ranks: one that only some take ends the job, and never mixes data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gspmd.runtime.launch import launch_command, rank_environment
from tests.runtime.ranks import Outcome, run

PROGRAM = str(Path(__file__).with_name("read_program.py"))


def started(mode: str) -> Outcome:
    return run([*launch_command(2), sys.executable, PROGRAM, mode], rank_environment(2))


@pytest.mark.mpi
def test_ranks_that_read_together_go_on() -> None:
    outcome = started("together")
    assert outcome.code == 0, outcome.err
    assert outcome.out.split() == ["total", "0.0"]


@pytest.mark.mpi
@pytest.mark.parametrize(("mode", "line"), [("silent", "read_program.py:22"), ("collective", "read_program.py:16")])
def test_a_read_on_one_rank_alone_is_told(mode: str, line: str) -> None:
    outcome = started(mode)
    assert outcome.code != 0
    assert "total" not in outcome.out
    assert outcome.err.count("on every rank or on none") == 1, outcome.err
    assert line in outcome.err
    assert outcome.seconds < 30
