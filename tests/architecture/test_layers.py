"""Imports go strictly downward, and what is slow to import waits until it is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.checks import LAYERS, layer_findings
from tests.architecture.source import ROOT, Finding, modules

SLOW = ("jax", "jaxlib", "mpi4py", "numba")


def show(findings: Iterable[Finding]) -> list[str]:
    return [str(f) for f in findings]


def test_imports_go_downward() -> None:
    assert show(layer_findings(modules())) == []


def test_an_empty_tree_has_no_findings(tmp_path: Path) -> None:
    assert show(layer_findings(modules(tmp_path / "gspmd"))) == []


def write(root: Path, name: str, text: str) -> None:
    path = root / "gspmd" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("file", "text", "allowed"),
    [
        ("ops/dot.py", "from gspmd.ir import graph", True),
        ("ops/dot.py", "import gspmd.kernels.dot", True),
        ("runtime/walk.py", "from ..ops import OPS", True),
        ("runtime/walk.py", "from .step import step", True),
        ("array.py", "from gspmd.runtime.walk import run", True),
        ("array.py", "from gspmd import optimizer", False),
        ("numpy.py", "from gspmd.frontend.trace import trace", True),
        ("numpy.py", "from gspmd.runtime import walk", False),
        ("__init__.py", "from .driver import compile", True),
        ("cli/main.py", "from gspmd.driver import compile", True),
        ("kernels/dot.py", "from gspmd.ir import graph", False),
        ("ir/graph.py", "from gspmd import ops", False),
        ("ir/graph.py", "from .. import ops", False),
        ("ir/graph.py", "import gspmd.ops.dot as d", False),
        ("ir/graph.py", "def f():\n    from ..ops import OPS", False),
        ("ir/graph.py", "import importlib\nimportlib.import_module('gspmd.ops')", False),
        ("ir/graph.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gspmd.ops import OPS", False),
        ("optimizer/merge.py", "from gspmd.partitioner.plan import plan", False),
        ("runtime/walk.py", "from gspmd import Mesh", False),
        ("inspect/cost.py", "import gspmd", False),
        ("driver.py", "from gspmd.cli import main", False),
        ("newcomer/a.py", "", False),
    ],
)
def test_the_check_tells_right_from_wrong(tmp_path: Path, file: str, text: str, allowed: bool) -> None:
    write(tmp_path, file, text)
    assert (not show(layer_findings(modules(tmp_path / "gspmd")))) == allowed


def test_the_middle_parts_are_strangers(tmp_path: Path) -> None:
    middle = [part for part, layer in LAYERS.items() if layer == 2]
    for part in middle:
        write(tmp_path, f"{part}/a.py", "\n".join(f"import gspmd.{other}.a" for other in middle if other != part))
    assert len(show(layer_findings(modules(tmp_path / "gspmd")))) == len(middle) * (len(middle) - 1)


@pytest.mark.parametrize("face", ["gspmd", "gspmd.cli", "gspmd.numpy"])
def test_imports_stay_light(face: str) -> None:
    code = f"import {face}, sys; print(*(m for m in {SLOW!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
