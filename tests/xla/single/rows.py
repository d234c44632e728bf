"""All rows."""

from __future__ import annotations

from tests.xla.single import contraction, control, indexing, layout, moving, ordering, reductions, reshards, windows
from tests.xla.single.program import Single

SINGLES: tuple[Single, ...] = (
    *moving.SINGLES,
    *windows.SINGLES,
    *indexing.SINGLES,
    *ordering.SINGLES,
    *control.SINGLES,
    *contraction.SINGLES,
    *reductions.SINGLES,
    *layout.SINGLES,
    *reshards.SINGLES,
)
