"""Finding and driving a launcher, and knowing where one runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gspmd.ir.errors import ExecutionError
from gspmd.ir.location import Location
from gspmd.runtime import environment, launch
from gspmd.runtime.environment import World, cache_dir, describe, threads_per_rank, world
from gspmd.runtime.watchdog import Watchdog, timeout_from_environment
from tests.runtime.ranks import ROOT

SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "SLURM_NODEID": "1",
}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, World(0, 1, 0, 1, False)),
        (
            {"PMI_RANK": "3", "PMI_SIZE": "6", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
            World(3, 6, 1, 2, True),
        ),
        ({"PMI_RANK": "3", "PMI_SIZE": "6"}, World(3, 6, 3, 6, True)),
        (
            {
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "2",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
                "PMIX_RANK": "1",
            },
            World(1, 2, 0, 1, True),
        ),
        ({**SLURM, "PMIX_RANK": "5"}, World(5, 8, 1, 4, True)),
        (SLURM, World(0, 1, 0, 1, False)),  # a batch script, or srun of a program without MPI
    ],
)
def test_world_is_what_the_launcher_says(variables: dict[str, str], expected: World) -> None:
    assert world(variables) == expected


def test_threads_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "cores", lambda: 8)
    monkeypatch.delenv("GSPMD_THREADS", raising=False)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    assert [threads_per_rank(n) for n in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    for name in environment.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert launch.rank_environment(2)["OPENBLAS_NUM_THREADS"] == "4"
    assert "OMPI_MCA_mpi_yield_when_idle" not in launch.rank_environment(8)
    assert launch.rank_environment(9)["OMPI_MCA_mpi_yield_when_idle"] == "1"
    monkeypatch.setenv("GSPMD_THREADS", "3")
    assert threads_per_rank(8) == 3


def test_the_ranks_do_not_see_an_outer_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert not world(launch.rank_environment(2)).under_launcher


def test_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GSPMD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "gspmd"
    monkeypatch.setenv("GSPMD_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own" and cache_dir().is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("GSPMD_CACHE", str(tmp_path / "file" / "below"))
    fallback = cache_dir()
    assert os.access(fallback, os.W_OK) and fallback.stat().st_mode & 0o022 == 0


def test_no_launcher_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_mpiexec", lambda: None)
    with pytest.raises(ExecutionError, match=r"no mpiexec [\s\S]*pip install gspmd\[mpi\]"):
        launch.launch(["-c", "pass"], 2)


@pytest.mark.mpi
def test_a_library_that_does_not_load_says_what_to_install() -> None:
    text = "from gspmd.runtime.job import start; start()"
    env = {**launch.rank_environment(1), "MPI4PY_LIBMPI": "/nowhere/libmpi.so", "MPI4PY_MPIABI": "nothing"}
    done = subprocess.run([sys.executable, "-c", text], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "mpi4py finds no MPI library" in done.stderr and "pip install gspmd[mpi]" in done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize(("code", "expected"), [(0, 0), (1, 1), (2, 2), (7, 1)])
def test_exit_codes(code: int, expected: int) -> None:
    assert launch.launch(["-c", f"import sys; sys.exit({code})"], 2, timeout=30) == expected


@pytest.mark.mpi
def test_timeout_stops_the_ranks(tmp_path: Path) -> None:
    text = f"import os, time; open(r'{tmp_path}/' + str(os.getpid()), 'w'); time.sleep(60)"
    begin = time.monotonic()
    with pytest.raises(ExecutionError, match="2 ranks did not end within 2 s"):
        launch.launch(["-c", text], 2, timeout=2)
    assert time.monotonic() - begin < 20
    assert_gone(tmp_path)


@pytest.mark.mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_takes_all_ranks_down(tmp_path: Path, number: signal.Signals) -> None:
    ranks = f"import os, time; open(r'{tmp_path}/' + str(os.getpid()), 'w'); time.sleep(60)"
    text = f"from gspmd.runtime.launch import launch; launch(['-c', {ranks!r}], 2)"
    process = subprocess.Popen(
        [sys.executable, "-c", text], cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 20
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(15) != 0
    assert_gone(tmp_path)


def assert_gone(folder: Path) -> None:
    """The processes whose numbers name the files have ended."""
    pids = [int(p.name) for p in folder.iterdir()]
    assert len(pids) == 2
    deadline = time.monotonic() + 5
    while any(alive(p) for p in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(p) for p in pids)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_describe_names_what_is_there() -> None:
    facts = describe()
    assert list(facts) == ["python", "mpi", "launcher", "ranks", "cores", "threads", "cache"]
    assert "mpi4py" in facts["mpi"]


def test_watchdog_tells_a_long_wait_and_only_that() -> None:
    told: list[str] = []
    dog = Watchdog(0.4, told.append, who="rank 1 of 2").start()
    for _ in range(20):
        dog.enter("all_gather")
        time.sleep(0.04)
        dog.leave()
    time.sleep(0.6)
    assert told == []
    dog.enter("all_gather", Location("model.py", 3))
    time.sleep(1.2)
    assert len(told) == 1 and told[0].startswith(
        "rank 1 of 2: all_gather has not ended within 0.4 s\n  at model.py:3\n"
    )
    dog.stop()


def test_watchdog_timeout_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSPMD_TIMEOUT", "12.5")
    assert timeout_from_environment() == 12.5
    monkeypatch.setenv("GSPMD_TIMEOUT", "soon")
    with pytest.raises(ExecutionError, match="not 'soon'"):
        timeout_from_environment()
    monkeypatch.delenv("GSPMD_TIMEOUT")
    assert timeout_from_environment() == 300
