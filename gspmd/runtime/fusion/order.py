"""Compiled sorts by an arbitrary comparator (`OpDef.order`): lines are merged, by indices, from runs twice as long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gspmd.ir.graph import Node, Region
from gspmd.ir.opdef import Array
from gspmd.ops.folding import Steps
from gspmd.ops.rules import scalar_type
from gspmd.runtime.environment import threads_per_rank
from gspmd.runtime.fusion.cache import load
from gspmd.runtime.fusion.region_source import RegionWriter
from gspmd.runtime.fusion.threads import deal, runs

# Runs of so many elements are sorted by insertion.
_RUN = 8


def order_source(steps: Steps, region: Region) -> str:
    """The source text of a kernel that finds the stable order of the lines in [lo, hi), by a table.

    It holds the length of a line, the address of the orders, and those of N arrays. A kernel needs 8 bytes of scratch
    memory for each element of a line.
    """
    writer = RegionWriter(steps, region)
    dtypes = [v.type.dtype for v in region.params[::2]]
    writer.step()
    writer.kernel()
    writer.put(f"t = vector(table, {2 + len(dtypes)}, np.int64)")
    writer.put("n = t[0]")
    writer.block("for line in range(lo, hi):")
    writer.put("a, b = vector(t[1] + line * n * 8, n, np.int64), vector(scratch, n, np.int64)")
    for i, dtype in enumerate(dtypes):
        writer.put(f"x{i} = vector(t[{2 + i}] + line * n * {dtype.itemsize}, n, {scalar_type(dtype)})")

    def before(left: str, right: str) -> str:
        return f"combine({', '.join(f'x{i}[{left}], x{i}[{right}]' for i in range(len(dtypes)))})[0]"

    body = _SORT.format(run=_RUN, place_before=before("k", "a[i - 1]"), right_before=before("a[r]", "a[l]"))
    for line in body.split("\n"):
        writer.put(line)
    return writer.text()


_SORT = """\
for start in range(0, n, {run}):
    for k in range(start, min(start + {run}, n)):
        i = k
        while i > start and {place_before}:
            a[i] = a[i - 1]
            i -= 1
        a[i] = k
width, flips = {run}, 0
while width < n:
    for start in range(0, n, 2 * width):
        l, r = start, min(start + width, n)
        middle, end = r, min(start + 2 * width, n)
        for i in range(start, end):
            if l < middle and (r >= end or not {right_before}):
                b[i] = a[l]
                l += 1
            else:
                b[i] = a[r]
                r += 1
    a, b = b, a
    width *= 2
    flips += 1
if flips % 2:
    b[:] = a"""


class OrderCall:
    """A node that orders elements and its kernel, ready to be called on the arrays of one device."""

    def __init__(self, node: Node, steps: Steps) -> None:
        dimension = None if node.op.order is None else node.op.order(node)
        assert dimension is not None
        self.dimension = dimension
        self.kernel = load(order_source(steps, node.regions[0]))

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The results for some arrays."""
        lines = [np.ascontiguousarray(np.moveaxis(x, self.dimension, -1)) for x in arrays]
        order = np.empty(lines[0].shape, np.int64)
        length = arrays[0].shape[self.dimension]
        addresses = [x.__array_interface__["data"][0] for x in (order, *lines)]
        table: Any = np.array([length, *addresses], np.int64)
        count = order.size // max(length, 1)
        blocks = runs(count, max(1, min(threads_per_rank(), count)))
        deal(self.kernel, blocks, 8 * length, table.__array_interface__["data"][0])
        return [np.moveaxis(np.take_along_axis(x, order, axis=-1), -1, self.dimension) for x in lines]
