"""Running an example as users do, and reading what it prints."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from gspmd.runtime.environment import LAUNCHER_PREFIXES, THREAD_VARIABLES

ROOT = Path(__file__).resolve().parent.parent.parent


def run_example(name: str, *options: str, ranks: int = 1, mesh: str = "", timeout: float = 240) -> str:
    """What an example prints: on one rank as a plain script, on several through `gspmd run`.

    A name with a folder is that of any other script of the repository.
    """
    script = str(ROOT / name if "/" in name else ROOT / "examples" / name)
    if ranks == 1:
        command = [sys.executable, script, *options]
    else:
        own = ["--", *options] if options else []
        command = [sys.executable, "-m", "gspmd.cli", "run", script, "--ranks", str(ranks), "--mesh", mesh, *own]
    env = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_PREFIXES)}
    # Tests share the cores: one thread each, of ranks too.
    env |= dict.fromkeys((*THREAD_VARIABLES, "GSPMD_THREADS"), "1") | ({"GSPMD_MESH": mesh} if mesh else {})
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{name} on {ranks} ranks, mesh {mesh}:\n{done.stdout}{done.stderr}"
    return done.stdout


def load_example(name: str) -> ModuleType:
    """An example as a module, on the mesh that the environment names."""
    spec = spec_from_file_location(name.removesuffix(".py"), ROOT / "examples" / name)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers_after(word: str, text: str) -> NDArray[np.float64]:
    """All numbers that follow a word in what an example printed."""
    return np.array([float(found) for found in re.findall(rf"{word} +([0-9.]+)", text)])


def char_losses(
    folder: Path, *options: str, ranks: int = 1, mesh: str = "", timeout: float = 240
) -> tuple[NDArray[np.float32], str]:
    """The loss of every step of examples/chars.py, and what it printed."""
    file = folder / f"losses-{ranks}.json"
    printed = run_example("chars.py", "--losses", str(file), *options, ranks=ranks, mesh=mesh, timeout=timeout)
    return np.array(json.loads(file.read_text()), np.float32), printed
