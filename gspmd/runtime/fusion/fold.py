"""Calls of compiled folds by a region (`ops.folding`).

Of results with very many elements parts are folded first, as many as the elements ask for, so that neither the number
of threads nor of shards in a process changes a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gspmd.ir.graph import Node
from gspmd.ir.opdef import Array
from gspmd.kernels.window import spaced
from gspmd.ops.folding import Fold
from gspmd.runtime.fusion.cache import load
from gspmd.runtime.fusion.fold_source import FIXED, RUN, fold_source
from gspmd.runtime.fusion.threads import deal, parts, runs, workers

# Results beside one another that are held in the nearest cache while their elements pass.
_CHUNK = 1 << 11


class FoldCall:
    """A node that folds and its kernel, ready to be called on the arrays of one device."""

    def __init__(self, node: Node, fold: Fold) -> None:
        self.fold = fold
        self.types = [v.type for v in node.results]
        self.kernel = load(fold_source(fold, node.regions[0]))
        self.results = prod(n for n, _ in fold.results)
        self.parts = self._parts()
        self.chunks = max(1, fold.inner[0] // _CHUNK) if fold.side_by_side else 1
        self.blocks = self._blocks()
        loops = [number for loop in (*fold.results, *fold.places) for number in loop]
        self.head = [*fold.inner, self.parts, self.chunks, *loops]
        assert len(self.head) == FIXED + len(loops)

    def _parts(self) -> int:
        fold = self.fold
        if fold.side_by_side:
            return 1
        (first, *_), each = [n for n, _ in (*fold.places, fold.inner)], fold.elements // self.results
        return max(1, min(parts(each), first))

    def _blocks(self) -> list[tuple[int, int]]:
        """Runs of units, one for each thread that is worth it."""
        units = self.results * self.parts * self.chunks
        return runs(units, min(workers(self.fold.elements), units))

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The results for some arrays and their inits."""
        n = len(arrays) // 2
        inits = [np.ascontiguousarray(x) for x in arrays[n:]]
        xs = [
            np.ascontiguousarray(spaced(x, self.fold.window, init)) for x, init in zip(arrays[:n], inits, strict=True)
        ]
        outs: list[Array] = [np.empty(t.shape, t.dtype) for t in self.types]
        shape = (self.results, self.parts)
        held: list[Array] = outs if self.parts == 1 else [np.empty(shape, t.dtype) for t in self.types]
        addresses = [x.__array_interface__["data"][0] for x in (*xs, *inits, *held, *outs)]
        table: Any = np.array([*self.head, *addresses], np.int64)
        at = table.__array_interface__["data"][0]
        deal(self.kernel, self.blocks, 2 * 8 * RUN * n, at)
        if self.parts > 1:
            self.kernel(0, self.results, -1, 0, at)
        return outs
