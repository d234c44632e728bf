"""The programs that XLA judges."""

from __future__ import annotations

from tests.xla.case import Case
from tests.xla.judge_programs import dots, indexing, layout, loops, models, reductions, training, windows

CASES: tuple[Case, ...] = (
    *dots.CASES,
    *reductions.CASES,
    *layout.CASES,
    *windows.CASES,
    *indexing.CASES,
    *models.CASES,
    *training.CASES,
    *loops.CASES,
)
