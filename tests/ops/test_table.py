"""docs/ops.md says what the records say."""

from __future__ import annotations

import re

from gspmd.interop import import_program
from gspmd.ops import OPS
from tests.ops import table


def test_the_page_is_up_to_date() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), f"docs/ops.md is out of date: {table.COMMAND}"


def test_every_op_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", table.page(), re.MULTILINE)
    assert sorted(rows) == sorted(OPS)


def test_everything_that_is_imported_is_told() -> None:
    told = {name for names in table.sources().values() for name in names}
    assert set(import_program._handlers()) - told <= table.DISSOLVED
    assert set(table.MAIN) <= told
    assert "@lapack_*getrf" in table.sources()["lu"]
    assert {"stablehlo.dot", "stablehlo.dot_general"} <= set(table.sources()["dot_general"])
    assert "sdy.reshard" in table.sources()["sharding_constraint"]
