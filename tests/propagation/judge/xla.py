"""Ask XLA's GSPMD, many programs at once, for the shardings that its propagation gives to every value."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gspmd.ir.errors import GspmdError
from gspmd.ir.hlo_sharding import split_tuple
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from tests.propagation.judge.labels import labelled
from tests.xla.hlo import instruction_shardings

CHILD = Path(__file__).with_name("xla_child.py")
_LABEL = re.compile(r"(?:.*/)?(%\d+)")
_MOST_DEVICES = 16


def ask(texts: Mapping[str, str], devices: Mapping[str, int], seconds: float = 300.0) -> dict[str, dict[str, str]]:
    """XLA's text for each named value of each program (exported with `hlo` shardings); none where XLA refuses."""
    with tempfile.TemporaryDirectory() as place:
        folder, dump = Path(place, "programs"), Path(place, "dump")
        folder.mkdir()
        for name, text in texts.items():
            named = re.sub(r"^module @\S+", f"module @{name}", text, count=1)
            (folder / name).write_text(labelled(named), encoding="utf-8")
        waiting = list(texts)
        while waiting:
            reached = _compile(folder, dump, [f"{n}={devices[n]}" for n in waiting], seconds)
            waiting = waiting[reached:]
        return {name: _propagated(dump, name) for name in texts}


def _compile(folder: Path, dump: Path, entries: Sequence[str], seconds: float) -> int:
    """Compile in one process; returns how many programs it came to, the one that it died of included."""
    flags = (
        f"--xla_force_host_platform_device_count={_MOST_DEVICES}",
        f"--xla_dump_to={dump}",
        "--xla_dump_hlo_as_text",
        "--xla_dump_hlo_pass_re=sharding-propagation",
    )
    env = dict(os.environ, JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", XLA_FLAGS=" ".join(flags))
    child = subprocess.run(
        [sys.executable, str(CHILD), str(folder), *entries],
        env=env, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    reached = sum(not line.startswith("!") for line in child.stdout.splitlines())
    if not reached:
        raise RuntimeError(f"XLA could not be asked: {child.stderr[-400:]}")
    return len(entries) if child.returncode == 0 else reached


def _propagated(dump: Path, name: str) -> dict[str, str]:
    found = sorted(dump.glob(f"*.{name}.*after_sharding-propagation*.txt"))
    return instruction_shardings(found[-1].read_text(encoding="utf-8")) if found else {}


def shardings(
    found: Mapping[str, str], mesh: Mesh, ranks: Mapping[str, Sequence[int]]
) -> dict[str, tuple[Sharding | None, ...]]:
    """XLA's texts as shardings on a mesh; `ranks` are those of each value's parts. None: not sayable."""
    out: dict[str, tuple[Sharding | None, ...]] = {}
    for name, text in found.items():
        label = _LABEL.fullmatch(name)
        if label is None or label[1] not in ranks:
            continue
        parts = ranks[label[1]]
        texts = split_tuple(text) if text.startswith("{{") else (text,) * len(parts)
        if len(texts) == len(parts):
            out[label[1]] = tuple(_one(t, mesh, rank) for t, rank in zip(texts, parts, strict=True))
    return out


def _one(text: str, mesh: Mesh, rank: int) -> Sharding | None:
    try:
        return Sharding.from_hlo(text, mesh, rank)
    except GspmdError:
        return None
