"""Single ops: values as on one device, and no more bytes on the wire than XLA but where a reason is given."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import numpy as np
import pytest

from gspmd.driver.pipeline import run_stages
from gspmd.kernels.closeness import compare
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import lockstep
from tests.xla.case import differences, summed_terms
from tests.xla.single.exceptions import EXCEPTIONS, OTHER_VALUES
from tests.xla.single.program import Single
from tests.xla.single.record import answers, ask, digest, recorded
from tests.xla.single.rows import SINGLES
from tests.xla.single.table import PAGE, Row, line, page, rows
from tests.xla.version import jaxlib_version

# In so many days every row is run by the test command once; of XLA a handful is asked a day.
DAYS = 5
HANDFUL = 6
LEAST = 500
# The share of XLA's bytes that we stay below, over all rows whose results are fixed.
SHARE = 0.6


@lru_cache(maxsize=1)
def compiled() -> list[Row]:
    """Every row, compiled once."""
    return rows()


def todays(count: int) -> list[Single]:
    """A few rows, others every day."""
    start = date.today().toordinal() * count
    return [SINGLES[(start + i) % len(SINGLES)] for i in range(count)]


def test_names_differ_and_there_are_many() -> None:
    assert len({s.name for s in SINGLES}) == len(SINGLES) >= LEAST


def test_xla_was_asked_about_the_rows_as_they_are() -> None:
    known = answers()
    stale = [s.name for s in SINGLES if s.name not in known or known[s.name].program != digest(s)]
    assert not stale, "python -m tests.xla.single.record asks XLA"
    assert not [n for n, r in known.items() if r.error]


def test_we_send_no_more_than_xla() -> None:
    higher = {r.single.name: line(r) for r in compiled() if r.higher}
    assert not higher.keys() - EXCEPTIONS.keys(), [higher[n] for n in higher.keys() - EXCEPTIONS.keys()]
    assert not EXCEPTIONS.keys() - higher.keys(), "we send no more in these: their exceptions can go"
    fixed = [r for r in compiled() if not r.single.loose]
    assert sum(r.ours for r in fixed) < SHARE * sum(r.theirs.wire_bytes for r in fixed)


def test_the_page_is_true() -> None:
    same = PAGE.read_text(encoding="utf-8") == page(compiled())
    assert same, "python -m tests.xla.single.table writes the page"


def test_values() -> None:
    """A part of the rows, others every day: on all devices in lockstep, padding full of NaN, and on one."""
    wrong = [text for s in SINGLES[date.today().toordinal() % DAYS :: DAYS] for text in _differs(s)]
    assert wrong == []


def _differs(single: Single) -> list[str]:
    module, arrays = single.module(), single.arrays()
    with np.errstate(invalid="ignore"):  # integers have no NaN to pad with
        ours = Executor(run_stages(module.program).last, lockstep(single.mesh)).run_whole(arrays, np.nan)
    whole = module.run(*arrays)
    wanted = whole if isinstance(whole, tuple) else (whole,)
    terms = summed_terms(module.program.body)
    found = [compare(a, b, terms=terms) for a, b in zip(ours, map(np.asarray, wanted), strict=True)]
    return [f"{single.name}, result {i}: {c.message}" for i, c in enumerate(found) if not c]


def test_values_are_xlas() -> None:
    """A handful; `python -m tests.xla.single.table --values` runs all."""
    pytest.importorskip("jaxlib")
    singles = [s for s in todays(HANDFUL) if s.name not in OTHER_VALUES]
    assert [text for single in singles for text in differences(single)] == []


def test_xla_still_says_what_is_recorded() -> None:
    known = recorded().get(jaxlib_version())
    if known is None:
        pytest.skip(f"the record has no answers of jaxlib {jaxlib_version() or '(none installed)'}")
    singles = todays(HANDFUL)
    assert ask(singles) == {s.name: known[s.name] for s in singles}
