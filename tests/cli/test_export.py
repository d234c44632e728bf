"""gspmd export: a program at a stage as StableHLO, and what is told where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gspmd.cli.main import main

PROGRAM = """mesh @mesh = [x=2]
func @f(%a: f32[4@x, 3], %b: f32[3, 5]) -> (f32[4, 5]@_) stage=annotated {
  %0 = dot_general(%a, %b) lhs_contract=[1] rhs_contract=[0] : f32[4, 5]
  %1 = sharding_constraint(%0) sharding=[_, _] : f32[4, 5]@_
  return %1
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.gspmd"
    path.write_text(PROGRAM)
    return path


def test_the_optimized_stage_is_written(file: Path) -> None:
    out = file.with_suffix(".mlir")
    assert main(["export", str(file), "-o", str(out)]) == 0
    text = out.read_text()
    assert '"stablehlo.all_gather"' in text and "mhlo.num_partitions = 2" in text


def test_a_stage_on_whole_arrays_goes_to_the_terminal(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(file), "-o", "-", "--until", "annotated"]) == 0
    text = capsys.readouterr().out
    assert 'mhlo.sharding = "{devices=[2,1]<=[2]}"' in text and "all_gather" not in text


def test_what_cannot_be_exported_is_told_with_its_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(PROGRAM.replace("dot_general(%a, %b) lhs_contract=[1] rhs_contract=[0]", "nonsense(%a)"))
    assert main(["export", str(file), "-o", "-"]) == 2
    lines = [
        f"  %{name} = manual_computation(%1) in_shardings=[[x, _]] out_shardings=[[x, _]] axes=[x] "
        f"(%{name}0: f32[2, 5]) {{ return %{name}0 }} : f32[4@x, 5]"
        for name in ("c", "d")
    ]
    file.write_text(PROGRAM.replace("  return", "\n".join([*lines, "  return"])))
    capsys.readouterr()
    assert main(["export", str(file), "-o", "-", "--until", "annotated"]) == 2
    told = capsys.readouterr().err
    assert "f.gspmd:5" in told and "f.gspmd:6" in told and "manual_computation" in told and "Traceback" not in told


def test_a_stage_between_is_refused_before_anything_is_written(file: Path) -> None:
    out = file.with_suffix(".mlir")
    assert main(["export", str(file), "-o", str(out), "--until", "explicit"]) == 2
    assert not out.exists()
