"""Running the command line as a user does, and the files that its tests run on."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gspmd.runtime.launch import rank_environment

GSPMD = (sys.executable, "-m", "gspmd.cli")
ROOT = Path(__file__).resolve().parent.parent.parent

MODEL = """\
import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType

mesh = gspmd.Mesh({"data": 2})
place = gspmd.default_mesh(data=-1)


@gspmd.program(TensorType("f32", (7, 8)), TensorType("f32", (8, 4)))
def good(x, w):
    return gnp.tanh(gspmd.shard(x, mesh, "data", None) @ w)


@gspmd.program(TensorType("bf16", (6, 8)), TensorType("bf16", (8, 4)))
def half(x, w):
    return {"y": gspmd.shard(x, mesh, "data", None) @ w, "rows": [gnp.sum(x, axis=0), x]}


@gspmd.program(TensorType("f32", (12,)))
def anywhere(x):
    return gspmd.shard(x, place, "data") * 2.0


def alone():
    return gspmd.shard(gnp.arange(6), mesh, "data") * 2


def untyped(x, w):
    return x @ gspmd.shard(w, mesh, "data", None)


@gspmd.program(TensorType("f32", (6, 8)))
def unknown_axis(x):
    return gspmd.shard(x, mesh, "rows", None)


@gspmd.program(TensorType("f32", (6, 8)))
def axis_twice(x):
    return gspmd.shard(x, mesh, "data", "data")


@gspmd.program(TensorType("f32", (6, 8)))
def wrong_rank(x):
    return gspmd.shard(x, mesh, "data")


@gspmd.program(TensorType("f32", (6, 8)), TensorType("f32", (6, 8)))
def mismatch(x, y):
    return x @ y


@gspmd.program(TensorType("f32", (6, 8)))
def wrong_dtype(x):
    return x & 1


@gspmd.program(TensorType("f32", (6, 8)))
def raises(x):
    return x + {}["weight"]
"""

SCRIPT = """\
import sys

import numpy as np

import gspmd

rank, ranks = gspmd.world().rank, gspmd.world().size
mode = sys.argv[1] if len(sys.argv) > 1 else ""
mesh = gspmd.default_mesh(a=-1)


@gspmd.jit
def total(x):
    return gspmd.shard(x, mesh, "a").sum()


def fail():
    if rank == ranks - 1:
        raise ValueError("boom")


if mode == "early":
    fail()
if mode == "different":
    gspmd.compile(lambda x: gspmd.shard(x, mesh, "a") * (1.0 + rank), gspmd.TensorType("f32", (4,)))
if mode == "fixed":
    gspmd.compile(lambda x: gspmd.shard(x, gspmd.Mesh({"b": 3}), "b"), gspmd.TensorType("f32", (4,)))(np.ones(4))
if mode != "nothing":
    total(np.arange(5.0))
if mode == "late":
    fail()
if mode == "shape":
    gspmd.compile(lambda x: x, gspmd.TensorType("f32", (4,)))(np.ones(3, np.float32))
if mode == "argument":
    total("five")
if mode != "nothing" and rank == 0:
    print("options", *sys.argv[1:])
if mode != "nothing":
    print("total", float(total(np.arange(5.0))))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str
    seconds: float


def call(command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Outcome:
    """Run a command in a folder, outside of any job."""
    begin = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=_environment(env or {}), capture_output=True, text=True, timeout=60, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return rank_environment(1) | {"PYTHONPATH": path} | dict(extra)


def gspmd(folder: Path, *arguments: str, **env: str) -> Outcome:
    """Run `gspmd` with arguments in a process that starts from nothing."""
    return call([*GSPMD, *arguments], folder, env)


def forked(folder: Path, *arguments: str) -> Outcome:
    """Run `gspmd` with arguments in a process of its own that is forked from one that has loaded it."""
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps({"arguments": arguments, "folder": str(folder)}) + "\n")
    server.stdin.flush()
    return Outcome(*json.loads(server.stdout.readline()))


@lru_cache(maxsize=1)
def _server() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.cli.server"]
    server = subprocess.Popen(
        command, cwd=ROOT, env=_environment({}), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.terminate)
    return server


def files(folder: Path) -> Path:
    """The model and the script, written to a folder."""
    (folder / "model.py").write_text(MODEL)
    (folder / "train.py").write_text(SCRIPT)
    return folder


def line_of(text: str, source: str = MODEL) -> int:
    """The number of the line that holds a text."""
    return next(i for i, line in enumerate(source.splitlines(), 1) if text in line)
