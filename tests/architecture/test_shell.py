"""What the README promises is what continuous integration runs."""

from __future__ import annotations

import os
import re

import pytest

from tests.architecture.source import ROOT


def promised() -> list[str]:
    """The README's shell commands, but for those that make the virtual environment."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    commands = [command.strip() for block in blocks for command in re.split(r"&&|\n", block)]
    return [c for c in commands if c and "venv" not in c]


@pytest.mark.parametrize("command", promised())
def test_integration_runs_the_command(command: str) -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert command in [line.removeprefix("run ") for line in lines]


def test_the_script_can_be_run() -> None:
    assert promised()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
