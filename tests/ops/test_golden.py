"""The golden file of all rules, and their comparison with Shardy's, are those of today."""

from __future__ import annotations

from datetime import date

import pytest

from tests.ops.golden import FILE, rules_text
from tests.ops.shardy_rules import (
    PAGE,
    REASONS,
    answers,
    ask,
    differences,
    examples,
    our_structure,
    page,
    recorded,
    rule_of_example,
)
from tests.xla.version import jaxlib_version

HANDFUL = 6


def test_the_golden_file_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == rules_text(), "python -m tests.ops.golden writes the rules of today"


def test_every_difference_from_shardy_has_a_reason() -> None:
    found, same = differences(answers())
    assert [d.example for d in found if not set(d.classes) <= REASONS.keys()] == []
    assert same > 200
    assert {c for d in found for c in d.classes} == REASONS.keys(), "a reason that explains nothing"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(answers()), "python -m tests.ops.shardy_rules writes the page"


def test_shardy_still_says_what_is_recorded() -> None:
    """A few examples, others every day."""
    pytest.importorskip("jaxlib")
    if jaxlib_version() not in recorded():
        pytest.skip(f"the record has no answers of jaxlib {jaxlib_version()}")
    asked = [example for _, example in examples()]
    start = date.today().toordinal() * HANDFUL
    for i in range(HANDFUL):
        example = asked[(start + i) % len(asked)]
        assert ask(example) == recorded()[jaxlib_version()][example], example


def test_a_swapped_rule_is_noticed() -> None:
    """The comparison sees which dimensions are tied."""
    plain = our_structure(rule_of_example("transpose(f32[4, 6]) permutation=[1, 0]"))
    other = our_structure(rule_of_example("transpose(f32[4, 6]) permutation=[0, 1]"))
    assert plain.pairs != other.pairs
