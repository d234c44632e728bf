"""What would stifle the machine, or cannot be run at all, is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gspmd.cli.main import main

LOCAL = "func @f(%x: f32[3]) -> (f32[3]) stage=local {\n  return %x\n}\n"
HUGE = "mesh @m = [x=99999999]\nfunc @f(%x: f32[3@x]) -> (f32[3@x]) stage=annotated {\n  return %x\n}\n"


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        (LOCAL, ["--random", "1"], 2, "without a sharding"),
        (LOCAL, ["--random", "1", "--ranks", "99999"], 2, "99999 ranks on this machine"),
        (HUGE, ["--random", "1"], 1, "are simulated in one process"),
    ],
)
def test_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, options: list[str], code: int, said: str
) -> None:
    path = tmp_path / "p.gspmd"
    path.write_text(text, encoding="utf-8")
    assert main(["run", str(path), *options]) == code
    error = capfd.readouterr().err
    assert said in error and "Traceback" not in error
