"""Dimensions smaller than the number of devices along them."""

from __future__ import annotations

import gspmd
import gspmd.numpy as gnp
from tests.regressions.support import survives


def test_a_merged_dimension_with_more_shards_than_its_major_factor() -> None:
    """2 x 3 becomes 6: three shards of the 2 do not make three even shards of the 6."""
    mesh = gspmd.Mesh({"x": 3})
    survives(lambda a: gnp.reshape(gspmd.shard(a, mesh, None, "x", "?"), (5, 6)), (5, 2, 3))


def test_two_axes_trade_small_dimensions() -> None:
    """3 over 2 and 3 over 3 change places: every way holds more for a moment than either end, because of padding."""
    mesh = gspmd.Mesh({"x": 2, "y": 3})
    survives(lambda a: gspmd.shard(gspmd.shard(a, mesh, "x", None, "y"), mesh, "y", None, "x"), (3, 5, 3))
