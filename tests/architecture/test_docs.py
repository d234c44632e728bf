"""What the documentation names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def missing_paths(table: str) -> Iterator[str]:
    """Paths of the paper map that do not exist; one without a folder lies in that of the path before it."""
    for row in table.splitlines():
        cells = row.split("|")
        for cell, root in ((cells[3], "gspmd"), (cells[4], "tests")) if len(cells) == 6 else ():
            folder = Path()
            for name in re.findall(r"`([\w/]+\.py|[\w/]+/)`", cell):
                if not any((base / name).exists() for base in (ROOT / root, ROOT / root / folder, ROOT)):
                    yield name
                if "/" in name:
                    folder = Path(name) if name.endswith("/") else Path(name).parent


def test_the_paper_map_names_files_that_exist() -> None:
    text = (DOCS / "paper_map.md").read_text(encoding="utf-8")
    assert len(re.findall(r"\.py`", text)) > 40
    assert list(missing_paths(text)) == []
    assert list(missing_paths("| 1 | what | `ir/graph.py`, `no.py`, `ir/` | `ir/test_graph.py` |")) == [
        "no.py",
        "ir/test_graph.py",
    ]


def test_decisions_are_listed_in_order() -> None:
    files = sorted(p.name for p in (DOCS / "decisions").glob("[0-9]*.md"))
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (DOCS / "decisions" / "README.md").read_text(encoding="utf-8"))
    assert listed == files
    assert [int(name[:4]) for name in files] == list(range(1, len(files) + 1))


def test_the_examples_of_the_usage_page_run() -> None:
    page = DOCS / "usage.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 14
    names: dict[str, Any] = {"__name__": "usage"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert np.array_equal(names["state"], names["x"])


def test_links_lead_somewhere() -> None:
    for page in (*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
