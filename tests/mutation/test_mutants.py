"""The laws notice a wrong rule: of every op one mutant dies here, all of them in `python -m tests.mutation --all`."""

from __future__ import annotations

import pytest

from gspmd.ops import OPS
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.laws import fault
from tests.mutation.mutants import mutant_of
from tests.mutation.sample import RULED, mutant_names, one_of


@pytest.mark.parametrize("op", RULED)
def test_a_wrong_rule_is_noticed(op: str) -> None:
    name = one_of(op)
    assert fault(mutant_of(OPS[op], name)) is not None, f"{op}: {name}"


def test_listed_equivalents_are_mutants() -> None:
    assert [key for key in EQUIVALENT if key[0] not in RULED or key[1] not in mutant_names(key[0])] == []


def test_a_right_rule_is_not_accused() -> None:
    """The laws must live with rules as they are: a few ops of different kinds, each with a copied record."""
    for op in ("add", "dot_general", "slice", "all_to_all"):
        assert fault(mutant_of(OPS[op], "nothing")) is None
