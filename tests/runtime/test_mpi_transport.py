"""The MPI transport gives the lockstep transport's bits, and a rank that fails ends the job with one message."""

from __future__ import annotations

import pytest

from tests.runtime.ranks import through_launch, through_mpiexec

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_collective_equals_lockstep_bitwise(ranks: int) -> None:
    outcome = through_launch("compare", ranks)
    assert outcome.code == 0, outcome.err
    counts = [int(line.split()[2]) for line in outcome.out.splitlines() if line.endswith(" equal")]
    assert len(counts) == ranks and min(counts) > 1000


def test_ranks_are_compared_and_told_apart() -> None:
    outcome = through_launch("job", 3)
    assert outcome.code == 0, outcome.err
    assert sorted(outcome.out.splitlines()) == [f"rank {r}: job ok" for r in range(3)]


@pytest.mark.parametrize(
    ("mode", "message", "times"),
    [
        ("early", "rank 1 of 3: uncaught exception", 1),
        ("exception", "ValueError: a bug", 1),
        ("error", "rank 1 of 3: rank one is wrong\n", 1),
        ("all", "rank 0 of 3: everybody is wrong\n  fix: be right\n", 1),
        ("thread", "rank 1 of 3, thread worker: uncaught exception", 1),
        ("exit", "in all_reduce for rank 1, which has left the program\n  at model.py:12\n", 1),
        ("kill", "", 1),
    ],
)
def test_a_rank_that_fails_ends_the_job_with_one_message(mode: str, message: str, times: int) -> None:
    outcome = through_launch(mode, 3)
    assert outcome.code == 1
    assert outcome.seconds < 10
    assert outcome.err.count(message) == times or not message, outcome.err
    assert outcome.err.count("Traceback") == (mode in ("early", "exception", "thread")), outcome.err
    assert outcome.err.count("of 3") == (mode != "kill"), outcome.err


@pytest.mark.parametrize("mode", ["exception", "exit"])
def test_so_it_is_under_plain_mpiexec(mode: str) -> None:
    outcome = through_mpiexec(mode, 3)
    assert outcome.code != 0
    assert outcome.seconds < 10
    assert outcome.err.count("of 3") == 1, outcome.err


def test_a_rank_may_leave_when_it_has_done_its_part() -> None:
    outcome = through_launch("leave", 4)
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""


def test_a_hang_is_reported_with_rank_collective_and_line() -> None:
    outcome = through_launch("hang", 3, GSPMD_TIMEOUT="1.5")
    assert outcome.code == 1
    assert outcome.seconds < 10
    assert "of 3: all_reduce has not ended within 1.5 s\n  at model.py:12\n  fix: " in outcome.err
    assert outcome.err.count("has not ended") == 1


def test_more_ranks_than_cores_make_progress() -> None:
    outcome = through_launch("many", 8)
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("reduced") == 8
    assert outcome.seconds < 20
