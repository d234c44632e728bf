"""Files and functions stay small, and data stays frozen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.checks import dataclass_findings, function_lengths, percentile, size_findings
from tests.architecture.source import modules

FILE_LINES = 450  # the aim is 400
FUNCTION_LINES = 80
FUNCTION_LINES_P95 = 40

# Dataclasses that are not frozen and slotted, with the reason.
THAWED: dict[str, str] = {
    "runtime.mpi._Scratch": "a buffer that is used again, not data",
}


def test_files_and_functions_are_small() -> None:
    assert [str(f) for f in size_findings(modules(), FILE_LINES, FUNCTION_LINES)] == []


def test_nearly_all_functions_fit_a_screen() -> None:
    assert percentile([lines for lines, _ in function_lengths(modules())], 0.95) <= FUNCTION_LINES_P95


def test_data_is_frozen() -> None:
    assert [str(f) for f in dataclass_findings(modules(), THAWED)] == []


def written(tmp_path: Path, text: str) -> Path:
    package = tmp_path / "gspmd"
    package.mkdir()
    (package / "a.py").write_text(text)
    return package


def test_an_empty_tree_has_no_findings(tmp_path: Path) -> None:
    assert modules(tmp_path / "gspmd") == []
    assert list(size_findings([], FILE_LINES, FUNCTION_LINES)) == []
    assert percentile([], 0.95) == 0


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("x = 1\n" * 10, 0),
        ("x = 1\n" * 11, 1),
        ("def f():\n" + "    x = 1\n" * 4, 0),
        ("def f():\n" + "    x = 1\n" * 5, 1),
        ("def f():\n    '''One.\n\n    Two.\n    '''\n" + "    x = 1\n" * 4, 0),
        ("class A:\n    async def f(self):\n" + "        x = 1\n" * 5, 1),
    ],
)
def test_the_size_check_tells_right_from_wrong(tmp_path: Path, text: str, findings: int) -> None:
    assert len(list(size_findings(modules(written(tmp_path, text)), file_lines=10, function_lines=5))) == findings


@pytest.mark.parametrize(
    ("decorator", "allowed"),
    [
        ("@dataclass(frozen=True, slots=True)", True),
        ("@dataclasses.dataclass(frozen=True, slots=True, eq=False)", True),
        ("@final", True),
        ("@dataclass", False),
        ("@dataclass(frozen=True)", False),
        ("@dataclass(frozen=False, slots=True)", False),
        ("@dataclasses.dataclass(slots=True)", False),
    ],
)
def test_the_dataclass_check_tells_right_from_wrong(tmp_path: Path, decorator: str, allowed: bool) -> None:
    tree = modules(written(tmp_path, f"{decorator}\nclass A:\n    x: int\n"))
    assert (not list(dataclass_findings(tree, ()))) == allowed
    assert list(dataclass_findings(tree, {"a.A"})) == []


def test_percentile() -> None:
    assert percentile(range(1, 101), 0.95) == 95
    assert percentile([7], 0.95) == 7
