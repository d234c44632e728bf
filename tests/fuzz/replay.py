"""A case as a small file: the program's text below the command that replays it, written in one piece."""

from __future__ import annotations

import re
from pathlib import Path

from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.ops import OPS
from tests.fuzz.generate import Case

_HEAD = re.compile(r"// arguments (\d+)(?:, without ([\w, ]+?))?(, kernels)?\n")
_LOCATION = re.compile(r"  // .*$", re.MULTILINE)


def written(case: Case, note: str) -> str:
    """The file's text; `note` says where the case comes from."""
    without = f", without {', '.join(case.without)}" if case.without else ""
    head = f"// arguments {case.seed}{without}{', kernels' if case.kernels else ''}"
    lines = "\n".join(f"// {line}".rstrip() for line in note.splitlines())
    return f"{lines}\n{head}\n{_LOCATION.sub('', print_program(case.program))}"


def write(case: Case, path: Path, note: str) -> None:
    """Write a case with the command that replays it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written(case, f"python -m tests.fuzz --replay {path}\n{note}"), encoding="utf-8")


def read(path: Path) -> Case:
    """The case of a file."""
    text = path.read_text()
    head = _HEAD.search(text)
    assert head is not None, f"{path} does not say which arguments it takes"
    without = tuple(name.strip() for name in (head[2] or "").split(",") if name.strip())
    return Case(parse_program(text, OPS, str(path)), int(head[1]), without, bool(head[3]))
