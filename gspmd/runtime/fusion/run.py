"""Calls of compiled kernels: results are allocated, addresses tabulated, rows dealt out to threads.

The rows are cut into blocks by their number alone where results are collected over rows, so that neither the number of
threads nor of shards in a process changes a bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from gspmd.ir.graph import Node
from gspmd.ir.opdef import Array, Machine, Shards
from gspmd.kernels import monoids
from gspmd.ops.fused import FusedAttrs
from gspmd.runtime.environment import threads_per_rank
from gspmd.runtime.fusion.cache import load
from gspmd.runtime.fusion.codegen import source_of
from gspmd.runtime.fusion.plan import Output, plan_of

# Elements below which a second thread costs more than it brings.
_LEAST_FOR_THREADS = 1 << 16
# Elements of a block whose partial results are collected, and the most blocks.
_BLOCK = 1 << 16
_MOST_BLOCKS = 16
_VECTORS = 256


def fused_runner(node: Node) -> Callable[[Machine, Node, Sequence[Shards]], Sequence[Shards]] | None:
    """How to run a fused node, None for other nodes. The kernel is compiled when it runs for the first time."""
    if not isinstance(node.attrs, FusedAttrs):
        return None
    call = FusedCall(node, node.attrs)

    def run(machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
        rows = [call(xs) for xs in zip(*arguments, strict=True)]
        return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in node.results]

    return run


class FusedCall:
    """A fused node that is ready to be called on the arrays of one device."""

    def __init__(self, node: Node, attrs: FusedAttrs) -> None:
        plan = self.plan = plan_of(node.regions[0], attrs)
        self.text = source_of(plan)
        self.rows = prod(plan.loops[: plan.outer])
        self.length = prod(plan.loops[plan.outer :])
        self.kernel: Any = None
        self.blocks = self._blocks()
        self.scratch = 8 * self.length * len(plan.kept)
        self.table = self._table_template()

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The results for some arrays."""
        if self.kernel is None:
            self.kernel = load(self.text)
        arrays = [np.ascontiguousarray(x) if not x.flags.c_contiguous else x for x in arrays]
        outs = [self._allocated(o) for o in self.plan.outputs]
        table = self.table.copy()
        for k, x in enumerate((*arrays, *outs)):
            table[self._at(k)] = x.__array_interface__["data"][0]
        self._run(table.__array_interface__["data"][0])
        return [self._combined(o, x) for o, x in zip(self.plan.outputs, outs, strict=True)]

    def _run(self, table: int) -> None:
        kernel, blocks = self.kernel, self.blocks
        workers = min(threads_per_rank(), len(blocks))
        scratch = np.empty((workers, self.scratch + 64), np.uint8)

        def work(worker: int) -> None:
            buffer = scratch[worker].__array_interface__["data"][0]
            buffer += -buffer % 64
            count = len(blocks)
            for block in range(worker * count // workers, (worker + 1) * count // workers):
                lo, hi = blocks[block]
                kernel(lo, hi, block, buffer, table)

        others = [_pool().submit(work, w) for w in range(1, workers)]
        work(0)
        for other in others:
            other.result()

    def _blocks(self) -> list[tuple[int, int]]:
        """Runs of rows (of elements where there are no outer loops)."""
        plan = self.plan
        elements = self.rows * self.length
        units = self.rows if plan.outer else self.length
        if plan.has_partials:
            count = max(1, min(_MOST_BLOCKS, elements // _BLOCK, units))
        else:
            count = max(1, min(threads_per_rank() if elements >= _LEAST_FOR_THREADS else 1, units))
        # Elements are dealt out in whole vectors, so that each is computed by the same instructions in any deal.
        grain = 1 if plan.outer else _VECTORS
        cuts = [*(i * units // count // grain * grain for i in range(count)), units]
        return list(pairwise(cuts))

    def _table_template(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The table without addresses: row length, outer sizes, bytes per step of each array along each outer loop."""
        plan = self.plan
        loops = max(1, plan.outer)
        entries: list[int] = [self.length, *(plan.loops[: plan.outer] or (1,))]
        for given in plan.inputs:
            entries += [0, *self._steps(given.outer, given.along_row, given.value.type.dtype.itemsize)]
        for out in plan.outputs:
            size = out.value.type.dtype.itemsize
            if out.kind in ("column", "total"):
                steps = [(self.length if out.kind == "column" else 1) * size] + [0] * (loops - 1)
            else:
                steps = self._steps(tuple(range(plan.outer)), out.kind == "each", size)
            entries += [0, *steps]
        return np.array(entries, np.int64)

    def _steps(self, outer: tuple[int, ...], along_row: bool, size: int) -> list[int]:
        plan = self.plan
        if not plan.outer:
            return [size if along_row else 0]
        steps, stride = [0] * plan.outer, size * (self.length if along_row else 1)
        for d in reversed(outer):
            steps[d] = stride
            stride *= plan.loops[d]
        return steps

    def _at(self, array: int) -> int:
        loops = max(1, self.plan.outer)
        return 1 + loops + array * (1 + loops)

    def _allocated(self, out: Output) -> Array:
        type_ = out.value.type
        if out.kind == "column":
            start: Any = monoids.identity(out.monoid or "", type_.dtype)[()]
            return np.full((len(self.blocks), self.length), start, type_.dtype)
        if out.kind == "total":
            return np.empty(len(self.blocks), type_.dtype)
        return np.empty(type_.shape, type_.dtype)

    @staticmethod
    def _combined(out: Output, array: Array) -> Array:
        if out.kind not in ("column", "total"):
            return array
        return monoids.fold(out.monoid or "", list(array)).reshape(out.value.type.shape)


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, threads_per_rank() - 1), "gspmd-kernels")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
