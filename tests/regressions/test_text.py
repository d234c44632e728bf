"""The text of a stage after propagation reads back."""

from __future__ import annotations

import gspmd
from tests.regressions.support import survives


def test_an_open_annotation_that_propagation_refined() -> None:
    """Behind the colon stands what propagation made of the annotation, not the annotation."""
    mesh = gspmd.Mesh({"x": 2, "y": 2})
    survives(lambda a, b: gspmd.shard(a, mesh, "x", "?") + gspmd.shard(b, mesh, "?", "y"), (6, 5), (6, 5))
