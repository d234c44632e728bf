"""Our propagation beside Shardy's and XLA's recorded answers, and the page that shows the differences."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache

import pytest

from tests.propagation.judge.compare import Question
from tests.propagation.judge.page import PAGE, row
from tests.propagation.judge.reasons import REASONS
from tests.propagation.judge.record import Answer, ask, digest, load
from tests.propagation.judge.verdict import Comparison, asked, comparisons, programs, verdict
from tests.xla.version import jaxlib_version, standing

HANDFUL = 3
COMMAND = "python -m tests.propagation.judge asks again and writes the page"


@cache
def answers() -> dict[str, Answer]:
    """The answers of the jaxlib installed here, or of the newest."""
    return standing(load()) or {}


@cache
def compared() -> dict[str, tuple[Question, list[Comparison]]]:
    """All programs beside the recorded answers, by values."""
    found: dict[str, tuple[Question, list[Comparison]]] = {}
    for name, case in programs():
        q = asked(case)
        found[name] = q, comparisons(name, q, answers()[name])
    return found


def page_rows() -> dict[tuple[str, str], list[str]]:
    """The cells of the page's rows, by program and judge."""
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    return {(r[0], r[1]): r for r in rows if len(r) == 8 and "/" in r[0]}


def test_the_judges_were_asked_about_the_programs_as_they_are() -> None:
    assert len(answers()) == len(compared()) >= 300
    stale = [name for name, (q, _) in compared().items() if answers()[name].digest != digest(q)]
    assert not stale, COMMAND


def test_most_values_are_sharded_alike() -> None:
    all_of = [c for _, each in compared().values() for c in each]
    for judge, least in (("shardy", 0.96), ("xla", 0.92)):
        of = [c for c in all_of if c.judge == judge]
        values, other = sum(c.compared for c in of), sum(len(c.differing) for c in of)
        assert values > 2500
        assert values - other >= least * values


def test_the_page_shows_every_program_that_differs() -> None:
    rows = page_rows()
    differing = {(c.program, c.judge): c for _, each in compared().values() for c in each if c.differing}
    assert rows.keys() == differing.keys(), COMMAND
    wrong = [k for k, c in differing.items() if rows[k][2:4] != [str(c.compared), str(len(c.differing))]]
    assert not wrong, COMMAND


def test_what_costs_more_has_a_reason() -> None:
    more = {key for key, cells in page_rows().items() if cells[-1].startswith("more")}
    assert more == REASONS.keys()


@pytest.mark.parametrize("place", range(HANDFUL))
def test_prices_are_those_of_the_page(place: int) -> None:
    """A few of the programs that differ, others every day."""
    keys = list(page_rows())
    name, judge = keys[(date.today().toordinal() * HANDFUL + place) % len(keys)]
    q, each = compared()[name]
    found = verdict(next(c for c in each if c.judge == judge), q, answers()[name])
    assert [c.strip() for c in row(found).split("|")[1:-1]] == page_rows()[name, judge], COMMAND


def test_the_judges_still_say_what_is_recorded() -> None:
    pytest.importorskip("jaxlib")
    if jaxlib_version() not in load():
        pytest.skip(f"the record has no answers of jaxlib {jaxlib_version()}")
    names = list(compared())
    start = date.today().toordinal() * HANDFUL
    some = {n: compared()[n][0] for n in (names[(start + i) % len(names)] for i in range(HANDFUL))}
    assert ask(some) == {n: answers()[n] for n in some}


def test_a_propagation_that_forgets_is_noticed() -> None:
    """Without what propagation found, values differ."""
    q, _ = compared()["products/dot_rows"]
    blank = replace(q, ours=dict.fromkeys(q.ours, q.ours["%1"]))
    assert any(c.differing for c in comparisons("products/dot_rows", blank, answers()["products/dot_rows"]))
