"""Ask XLA about many programs at once: one process compiles one after the other, and another goes on if it dies."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.xla.hlo import Collective, collectives, sliced_all_reduces
from tests.xla.oracle import Answer

CHILD = Path(__file__).with_name("child.py")
MOST_DEVICES = 8


def ask_all(programs: Mapping[str, tuple[str, int]], seconds: float = 900.0) -> dict[str, Answer]:
    """XLA's answers to programs, by name: each a text and a number of devices."""
    names = {f"{i:04}": name for i, name in enumerate(programs)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for short, name in names.items():
            text, devices = programs[name]
            (folder / f"{short}.mlir").write_text(f"// devices: {devices}\n{text}", encoding="utf-8")
        _compile(folder, seconds)
        return {name: _answer(folder, short, programs[name][1]) for short, name in names.items()}


def _compile(folder: Path, seconds: float) -> None:
    """Let child processes compile the folder; whom one dies of is marked, and the next begins behind it."""
    flags = f"--xla_force_host_platform_device_count={MOST_DEVICES}"
    env = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", XLA_FLAGS=flags)
    while True:
        command = [sys.executable, str(CHILD), str(folder)]
        child = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
        if child.returncode == 0:
            return
        begun = max((p for p in folder.iterdir() if p.is_dir()), default=None)
        if begun is None:
            raise RuntimeError(f"XLA's process does not start: {child.stderr[-400:]}")
        begun.with_suffix(".error").write_text(
            child.stderr.strip()[-400:] or f"XLA's process ended with code {child.returncode}", encoding="utf-8"
        )


def _answer(folder: Path, name: str, devices: int) -> Answer:
    error = folder / f"{name}.error"
    said = error.read_text(encoding="utf-8") if error.exists() else ""
    dumps = sorted((folder / name).glob("*.txt"))
    partitioned = _dumped(dumps, "after_spmd-partitioning")
    final = _dumped(dumps, "after_optimizations.txt") or partitioned
    # Some programs XLA partitions, but its compiler for CPUs refuses to go on (an all-reduce by `and`).
    found: list[Collective] = []
    if partitioned:
        found = collectives(final, devices, sliced_all_reduces(partitioned, devices))
    return Answer(devices, "" if partitioned else said or "no answer", {}, tuple(found), "", partitioned, final)


def _dumped(dumps: list[Path], part: str) -> str:
    """The last dump whose name holds a text; empty if there is none."""
    found = [p for p in dumps if part in p.name]
    return found[-1].read_text(encoding="utf-8") if found else ""
