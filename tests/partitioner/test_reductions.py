"""Reducing over many mesh axes at once: as few bytes as can be, and no search over all their subsets and orders."""

from __future__ import annotations

import pytest

import gspmd
from gspmd.ir.dim_sharding import DimSharding
from gspmd.partitioner.planner import plan

SHAPE, ITEMSIZE = (1024, 1024), 4


@pytest.mark.parametrize("count", [3, 6, 12])
@pytest.mark.parametrize("kept", ["whole", "rows", "both", "crossed"])
def test_bytes(count: int, kept: str) -> None:
    mesh = gspmd.Mesh({f"a{i}": 2 for i in range(count)})
    axes, half = mesh.whole, count // 2
    rows, columns = {
        "whole": ((), ()),
        "rows": (axes[::-1], ()) if count < 11 else (axes[:10], ()),
        "both": (axes[:half], axes[half:]),
        "crossed": (axes[half:], axes[:half]),
    }[kept]
    target = gspmd.Sharding(mesh, (DimSharding(tuple(rows)), DimSharding(tuple(columns))))
    source = gspmd.Sharding.replicate(mesh, 2).with_unreduced(axes, "add")
    found = plan(SHAPE, ITEMSIZE, source, target)  # over all subsets of twelve axes it would not end
    held, n, left = ITEMSIZE * SHAPE[0] * SHAPE[1], 2 ** len((*rows, *columns)), 2 ** (count - len((*rows, *columns)))
    assert found.wire_bytes == (n - 1) / n * held + 2 * (left - 1) / left * held / n
