"""Updates at an index."""

from __future__ import annotations

import numpy as np
import pytest

import gspmd
from tests.regressions.support import survives


@pytest.mark.parametrize("index", [np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1], np.s_[::-1, 1:]])
def test_an_update_of_a_reversed_range(index: tuple[slice, ...]) -> None:
    """A range that turns all of a dimension around picks every element of it."""
    mesh = gspmd.Mesh({"x": 2})
    survives(lambda a: gspmd.shard(a, mesh, "x", None).at[index].add(a[index] * 2), (3, 4))
