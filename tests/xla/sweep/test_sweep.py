"""Thousands of generated cases against XLA, and that no op is left out of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gspmd.ops import OPS
from tests.xla.sweep import contraction, control, elementwise, indexing, layout, matrices, ordering, reductions, special
from tests.xla.sweep.__main__ import batches
from tests.xla.sweep.cases import Generator
from tests.xla.sweep.draws import draw_cases
from tests.xla.sweep.exceptions import REFERENCES
from tests.xla.sweep.families import GENERATORS, NOT_GENERATED
from tests.xla.sweep.judge import judge
from tests.xla.sweep.program_list import PROGRAMS
from tests.xla.sweep.programs import lowered_case

SEED = 20240601
# Rounds of drawing, and how many cases come of them at least.
FAMILIES: dict[str, tuple[int, int, Sequence[Generator]]] = {
    "elementwise": (1, 1000, elementwise.GENERATORS),
    "special": (1, 400, special.GENERATORS),
    "layout": (2, 900, layout.GENERATORS),
    "contraction": (2, 400, contraction.GENERATORS),
    "reductions": (2, 600, reductions.GENERATORS),
    "indexing": (1, 250, indexing.GENERATORS),
    "ordering": (2, 400, ordering.GENERATORS),
    "matrices_control": (1, 150, (*matrices.GENERATORS, *control.GENERATORS)),
}
# The programs that the test command runs, for their first dtype; the long command runs all.
_QUICK = ("at_", "lax.integer_pow", "take", "random.bits", "scan", "cond", "fft.fft", "conv_g")


@pytest.mark.parametrize("family", FAMILIES)
def test_values(family: str) -> None:
    rounds, least, generators = FAMILIES[family]
    count, wrong = 0, list[str]()
    for batch in batches(c for chunk in draw_cases(generators, rounds, SEED) for c in chunk):
        count += len(batch)
        wrong += [m.text() for m in judge(batch)]
    assert not wrong, f"{len(wrong)} of {count} cases differ; the first:\n\n{wrong[0]}"
    assert count >= least


def test_programs() -> None:
    cases = [lowered_case(p, p.dtypes[0], SEED) for p in PROGRAMS if p.name.startswith(_QUICK)]
    wrong = [m.text() for batch in batches(iter(cases), 40) for m in judge(batch)]
    assert len(cases) > 20
    assert not wrong, f"{len(wrong)} of {len(cases)} programs differ; the first:\n\n{wrong[0]}"


def test_every_op_is_drawn() -> None:
    drawn = {g.op for g in GENERATORS}
    assert sorted(set(OPS) - drawn - NOT_GENERATED.keys()) == []
    assert sorted(NOT_GENERATED.keys() - OPS.keys()) == []
    assert sorted(NOT_GENERATED.keys() & drawn) == []


def test_every_exception_is_in_use() -> None:
    drawn = {(g.op, dtype) for g in GENERATORS for dtype in g.dtypes}
    assert sorted(REFERENCES.keys() - drawn) == []


def test_cases_are_the_same_for_the_same_seed() -> None:
    first, second = ([c.text for chunk in draw_cases(layout.GENERATORS[:2], 1, 5) for c in chunk] for _ in range(2))
    other = [c.text for chunk in draw_cases(layout.GENERATORS[:2], 1, 6) for c in chunk]
    assert first == second
    assert first != other
