"""Bisection finds a deliberately broken pass, the op, and the user's line; and nothing where nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.cli.main import main
from gspmd.driver import steps as driver_steps
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program
from gspmd.ir.printer import print_program
from gspmd.ops.elementwise import COSINE, SINE
from gspmd.optimizer import optimize
from tests.inspect.programs import ALL, Function, compiled

MESH = gspmd.Mesh({"x": 2, "y": 2})
TYPES = (gspmd.TensorType("f32", (6, 5)), gspmd.TensorType("f32", (5, 4)))


def model(a: Any, b: Any) -> Any:
    """A program with one sine."""
    v = gspmd.shard(a, MESH, "x", None) @ gspmd.shard(b, MESH, None, "y")
    w = gnp.sin(v)  # the line
    return gnp.tanh(w + 1), v


def _cosines(program: Program) -> Program:
    """Computes a cosine for every sine."""
    nodes = tuple(replace(n, op=COSINE) if n.op is SINE else n for n in program.body.nodes)
    return replace(program, body=replace(program.body, nodes=nodes))


def _after(name: str, stage: str) -> Callable[..., Any]:
    """The steps, the one of that name followed by the wrong one."""
    right = driver_steps.steps

    def steps(without: Any = ()) -> tuple[driver_steps.Step, ...]:
        return tuple(
            replace(s, run=lambda p, s=s: _cosines(s.run(p))) if (s.name, s.stage) == (name, stage) else s
            for s in right(without)
        )

    return steps


def _arrays() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(t.shape).astype(np.float32) for t in TYPES]


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_the_steps_one_by_one_are_the_stages(function: Function) -> None:
    c = compiled(function)
    program = c.stage("annotated").program
    after: dict[str, Program] = {}
    for step in driver_steps.steps():
        program = step.run(program)
        after[step.stage] = program
    for stage, found in after.items():
        assert print_program(found) == c.stage(stage).text(), stage


def test_nothing_is_found_in_a_right_program() -> None:
    c = gspmd.compile(model, *TYPES)
    for stage in c.stages.programs:
        assert gspmd.compile(gspmd.Module(c.stage(stage).program)).bisect(*_arrays()) is None, stage


@pytest.mark.parametrize(
    ("name", "stage"), [("partition", "explicit"), ("localize", "local"), ("merge", "optimized"), ("fuse", "scheduled")]
)
def test_a_broken_pass_is_found_with_the_op_and_the_line(
    name: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = gspmd.compile(model, *TYPES)
    monkeypatch.setattr(driver_steps, "steps", _after(name, stage))
    culprit = compiled.bisect(*_arrays())
    assert culprit is not None
    assert (culprit.stage, culprit.name) == (stage, name)
    assert "= sine(" in culprit.op
    assert culprit.loc is not None
    line = Path(__file__).read_text().splitlines()[culprit.loc.line - 1]
    assert line.endswith("# the line")
    assert "differs" in culprit.text() and "test_bisect.py" in culprit.text()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.gspmd"
    path.write_text(gspmd.trace(model, *TYPES).text())
    assert main(["bisect", str(path), "--random", "3"]) == 0
    assert "no pass changes" in capsys.readouterr().out
    passes = tuple((n, _cosines if n == "rings" else run) for n, run in optimize.PASSES)
    monkeypatch.setattr(optimize, "PASSES", passes)
    np.savez(tmp_path / "in.npz", *_arrays())
    assert main(["bisect", str(path), "--inputs", str(tmp_path / "in.npz")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("stage optimized, pass rings: ") and "sine(" in out
    assert main(["bisect", str(path), "--without", "rings"]) == 0
    assert main(["bisect", str(path), "--without", "nothing"]) == 2


def test_passes_can_be_left_out() -> None:
    arrays = _arrays()
    expected = gspmd.compile(model, *TYPES).simulate(*arrays)
    for name in driver_steps.OPTIONAL:
        found = gspmd.compile(model, *TYPES, without=[name]).simulate(*arrays)
        for a, e in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, e)
    with pytest.raises(UsageError, match="no pass 'expand' to leave out"):
        gspmd.compile(model, *TYPES, without=["expand"])
