"""Compiled updates by a region: rows of tables take in rows of values, one after the other (`OpDef.updates`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gspmd.ir.graph import Node, Region
from gspmd.ir.opdef import Array
from gspmd.ops.folding import Steps
from gspmd.runtime.fusion.cache import load
from gspmd.runtime.fusion.region_source import RegionWriter


def updates_source(steps: Steps, region: Region) -> str:
    """The source text of a kernel that updates the rows in [lo, hi), by a table.

    It holds the width of a row, and the addresses of the row numbers, of N tables and of N arrays of values.
    """
    writer = RegionWriter(steps, region)
    n = writer.count
    writer.step()
    writer.kernel()
    writer.put(f"t = vector(table, {2 + 2 * n}, np.int64)")
    writer.put("width, rows = t[0], vector(t[1], hi, np.int64)")
    for i in range(n):
        writer.put(f"x{i}, y{i} = t[{2 + i}], t[{2 + n + i}]")
    writer.block("for k in range(lo, hi):")
    for i in range(n):
        size, dtype = writer.sizes[i], writer.dtypes[i]
        writer.put(f"a{i} = vector(x{i} + rows[k] * width * {size}, width, {dtype})")
        writer.put(f"b{i} = vector(y{i} + k * width * {size}, width, {dtype})")
    held = f"({writer.each(lambda i: f'a{i}[j]')},)"
    new = writer.combined(lambda i: f"a{i}[j]", lambda i: f"b{i}[j]")
    writer.block("for j in range(width):", [f"{held} = {new}"])
    return writer.text()


class UpdatesCall:
    """A node that updates rows and its kernel, ready to be called on the arrays of one device."""

    def __init__(self, node: Node, steps: Steps) -> None:
        self.node = node
        self.kernel = load(updates_source(steps, node.regions[0]))

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The results for some arrays."""
        assert self.node.op.updates is not None
        held = self.node.op.updates(self.node.attrs, arrays)
        rows, values = np.ascontiguousarray(held.rows), [np.ascontiguousarray(x) for x in held.values]
        addresses = [x.__array_interface__["data"][0] for x in (rows, *held.tables, *values)]
        table: Any = np.array([held.tables[0].shape[1], *addresses], np.int64)
        self.kernel(0, len(rows), 0, 0, table.__array_interface__["data"][0])
        return held.results()
