"""What the process runs in: cores, ranks, threads, cache directory, and the MPI that is there.

Nothing here imports mpi4py or starts MPI: a launcher tells its ranks who they are in environment variables, so that a
program that runs alone never pays for MPI, and the command line starts fast.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# What launchers set in their ranks; a launcher started from within a rank must not see it.
LAUNCHER_PREFIXES = ("PMI_", "PMIX_", "PRTE_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "MPI_LOCAL", "HYDI_", "HYDRA_")
INSTALL_MPI = "pip install gspmd[mpi]"


@dataclass(frozen=True, slots=True)
class World:
    """The ranks of the job that this process belongs to; a process on its own is rank 0 of 1.

    `local_size` counts the ranks on this node, `local_rank` is this one's number among them.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    under_launcher: bool


# (variable of the rank, of the size, of the rank on the node, of the number of ranks on the node)
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
# srun sets its numbers for programs without MPI too (and a batch script has them for its one process): they count only
# beside the variables of a process manager interface.
_SLURM_PMI = ("PMI_FD", "PMI_RANK", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_JOBID")


def world(environ: Mapping[str, str] | None = None) -> World:
    """Who this process is, from the variables that mpiexec or srun set; rank 0 of 1 where there are none."""
    env = os.environ if environ is None else environ
    for rank, size, local_rank, local_size in _LAUNCHERS:
        if rank in env and size in env:
            on_node = _int(env, local_size, _slurm_local_size(env, int(env[size])))
            return World(
                int(env[rank]),
                int(env[size]),
                _int(env, local_rank, _int(env, "SLURM_LOCALID", int(env[rank]) % on_node)),
                on_node,
                True,
            )
    if "SLURM_PROCID" in env and "SLURM_NTASKS" in env and any(name in env for name in _SLURM_PMI):
        size = _int(env, "SLURM_STEP_NUM_TASKS", int(env["SLURM_NTASKS"]))
        rank = int(env["SLURM_PROCID"])
        on_node = _slurm_local_size(env, size)
        return World(rank, size, _int(env, "SLURM_LOCALID", rank % on_node), on_node, True)
    return World(0, 1, 0, 1, False)


def _int(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "")
    return int(text) if text.isdigit() else default


def _slurm_local_size(env: Mapping[str, str], size: int) -> int:
    """Ranks on this node from Slurm's "4(x2),3", by the node's number; all ranks where Slurm says nothing."""
    counts: list[int] = []
    for part in env.get("SLURM_STEP_TASKS_PER_NODE", env.get("SLURM_TASKS_PER_NODE", "")).split(","):
        count, _, times = part.partition("(x")
        if count.isdigit():
            counts += [int(count)] * int(times.rstrip(")") or 1)
    node = _int(env, "SLURM_NODEID", 0)
    return min(size, counts[node]) if node < len(counts) else size


@lru_cache(maxsize=1)
def cores() -> int:
    """Cores that this process may use: its affinity mask, cut by the quota of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota = _cgroup_quota()
    return allowed if quota is None else max(1, min(allowed, int(quota + 0.5)))


def _cgroup_quota() -> float | None:
    """Cores' worth of time that the control group grants (version 2, then 1), or None without a limit."""
    root = Path("/sys/fs/cgroup")
    try:
        own = Path("/proc/self/cgroup").read_text().rsplit("::", 1)[-1].strip().lstrip("/")
    except OSError:
        return None
    for folder in (root / own, root):
        try:
            limit, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if limit != "max":
            return int(limit) / int(period)
    try:
        limit = int((root / "cpu/cpu.cfs_quota_us").read_text())
        return limit / int((root / "cpu/cpu.cfs_period_us").read_text()) if limit > 0 else None
    except (OSError, ValueError):
        return None


def oversubscribed(ranks_on_node: int) -> bool:
    """Whether ranks must share cores, so that one that waits has to make room for one that works."""
    return ranks_on_node > cores()


def threads_per_rank(ranks_on_node: int | None = None) -> int:
    """Threads that one rank should use: GSPMD_THREADS, else what Slurm gave the task, else its part of the cores."""
    for name in ("GSPMD_THREADS", "SLURM_CPUS_PER_TASK"):
        if wish := _int(os.environ, name, 0):
            return wish
    return max(1, cores() // (ranks_on_node or world().local_size))


def limit_threads() -> int:
    """Hold BLAS, OpenMP and Numba to this rank's part of the cores; returns the number of threads.

    Ranks that a plain mpiexec or srun started need it, for there every library takes all cores for itself. What the
    user has set by a variable is left alone, and so is a process that is no rank.
    """
    count = threads_per_rank()
    if world().size == 1 or any(name in os.environ for name in THREAD_VARIABLES):
        return count
    os.environ["NUMBA_NUM_THREADS"] = str(count)  # for a Numba that is loaded later
    pools: Any = importlib.import_module("threadpoolctl")
    pools.threadpool_limits(count)
    numba: Any = sys.modules.get("numba")
    if numba is not None:
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    return count


def mpi_settings(ranks_on_node: int) -> dict[str, str]:
    """Environment variables that MPI libraries read when they start: quiet aborts; waits that yield on shared cores."""
    settings = {"MPIR_CVAR_SUPPRESS_ABORT_MESSAGE": "1"}
    if oversubscribed(ranks_on_node):
        settings |= {"MPIR_CVAR_POLLS_BEFORE_YIELD": "10", "OMPI_MCA_mpi_yield_when_idle": "1"}
    return settings


def cache_dir() -> Path:
    """The directory of compiled kernels: GSPMD_CACHE, else XDG_CACHE_HOME/gspmd, else ~/.cache/gspmd.

    Where that cannot be written, a private directory under the temporary one. It exists on return.
    """
    explicit = os.environ.get("GSPMD_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    wanted = Path(explicit).expanduser() if explicit else base / "gspmd"
    return wanted if _writable(wanted) else _temporary_cache()


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@lru_cache(maxsize=1)
def _temporary_cache() -> Path:
    """A directory that nobody else can write: code is loaded from it."""
    shared = Path(tempfile.gettempdir()) / f"gspmd-{os.getuid()}"
    try:
        shared.mkdir(mode=0o700, exist_ok=True)
        status = shared.lstat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and shared.is_dir() and not shared.is_symlink():
            return shared
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="gspmd-"))


def find_mpiexec() -> str | None:
    """The launcher: next to the interpreter (the virtual environment's own MPI), else on PATH, else None."""
    beside = os.path.dirname(sys.executable)
    for name in ("mpiexec", "mpirun"):
        if found := shutil.which(name, path=beside) or shutil.which(name):
            return found
    return None


@dataclass(frozen=True, slots=True)
class MpiLibrary:
    """The MPI library that mpi4py loads, or why it loads none."""

    name: str
    problem: str = ""


_PROBE = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version().splitlines()[0].strip(chr(0)), "| mpi4py", mpi4py.__version__)
"""


def mpi_library() -> MpiLibrary:
    """Ask a child process which library mpi4py loads: a broken one may take down the process that loads it."""
    if importlib.util.find_spec("mpi4py") is None:
        return MpiLibrary("", "mpi4py is not installed")
    env = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_PREFIXES)}
    try:
        done = subprocess.run([sys.executable, "-c", _PROBE], env=env, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return MpiLibrary("", "loading the MPI library did not end within 60 s")
    if done.returncode == 0 and done.stdout.strip():
        return MpiLibrary(" ".join(done.stdout.split()))
    reason = done.stderr.strip().splitlines()
    return MpiLibrary("", reason[-1] if reason else f"the process that loaded it ended with {done.returncode}")


def describe() -> dict[str, str]:
    """What `gspmd info` prints: a label and a text each, in order."""
    library, launcher, here = mpi_library(), find_mpiexec(), world()
    return {
        "python": f"{sys.version.split()[0]} at {sys.executable}",
        "mpi": library.name or f"none: {library.problem} ({INSTALL_MPI})",
        "launcher": launcher or f"none: no mpiexec next to Python or on PATH ({INSTALL_MPI})",
        "ranks": f"rank {here.rank} of {here.size}" if here.under_launcher else "1 (not under a launcher)",
        "cores": str(cores()),
        "threads": f"{threads_per_rank()} per rank",
        "cache": str(cache_dir()),
    }
