"""Compiled kernels: source files in the cache directory, compiled by Numba once and loaded from then on.

A file's name is the hash of what it says, of the functions it uses and of Numba's version, so that equal kernels are
one file for all programs and processes; it is written under another name first and renamed, so that no rank reads half.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from pickle import PickleError
from typing import Any

from gspmd.runtime.environment import cache_dir

Kernel = Callable[[int, int, int, int, int], None]


@lru_cache(maxsize=4096)
def load(text: str) -> Kernel:
    """The compiled kernel of a source text."""
    path = _written(text)
    try:
        return _loaded(path)
    except (ImportError, EOFError, OSError, LookupError, AttributeError, PickleError):
        # What Numba kept is damaged or was made by another version of something: compile again.
        for kept in path.parent.glob(f"__pycache__/{path.stem}.*.nb?"):
            kept.unlink(missing_ok=True)
        return _loaded(path)


def _loaded(path: Path) -> Kernel:
    spec = importlib.util.spec_from_file_location(f"gspmd_kernel_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # what Numba loads from its cache looks itself up there
    spec.loader.exec_module(module)
    return module.kernel.ctypes


def _written(text: str) -> Path:
    folder = cache_dir() / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256((_version() + text).encode()).hexdigest()[:24]}.py"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(text)
        draft.replace(path)
    return path


@lru_cache(maxsize=1)
def _version() -> str:
    """What compiled code depends on beside its own text."""
    numba: Any = importlib.import_module("numba")
    scalars = Path(__file__).with_name("scalars.py").read_text()
    return f"{numba.__version__} {numba.config.CPU_NAME} {scalars}"
