"""Programs that the fuzzer found, made small: each passes through every stage now (`python -m tests.fuzz --replay`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import replay
from tests.fuzz.judge import judge

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.gspmd"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_that_once_failed(path: Path) -> None:
    outcome = judge(replay.read(path))
    assert outcome.kind in ("ok", "unstable"), f"{outcome.kind} at {outcome.stage}: {outcome.message}"


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 5
