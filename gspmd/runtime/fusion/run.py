"""Calls of compiled kernels: results are allocated, addresses tabulated, rows dealt out to threads.

The rows are cut into blocks by their number alone where results are collected over rows, so that neither the number of
threads nor of shards in a process changes a bit.

Where no kernel can be made, for whatever reason, the region runs node by node, which is what it means, and a warning in
the log says so once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from math import prod
from typing import Any

import numpy as np

from gspmd.ir.graph import Node, Region
from gspmd.ir.opdef import Array, Machine, Shards
from gspmd.kernels import monoids
from gspmd.ops.folding import fold_of, order_steps, update_steps
from gspmd.ops.fused import FusedAttrs
from gspmd.runtime.fusion.cache import load
from gspmd.runtime.fusion.codegen import source_of
from gspmd.runtime.fusion.fold import FoldCall
from gspmd.runtime.fusion.order import OrderCall
from gspmd.runtime.fusion.plan import Output, plan_of
from gspmd.runtime.fusion.threads import deal, parts, workers
from gspmd.runtime.fusion.updates import UpdatesCall

# Elements that are a whole number of vectors of any machine.
_VECTORS = 256
_logger = logging.getLogger(__name__)
_FAILURES = count()


class FusedRunner:
    """Runs a fused node; its kernel is compiled when it runs for the first time."""

    __slots__ = ("compiled", "meaning", "tried")

    def __init__(self, node: Node) -> None:
        assert node.op.execute is not None
        self.meaning = node.op.execute
        self.compiled: Callable[[Sequence[Array]], list[Array]] | None = None
        self.tried = False

    def __call__(self, machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
        """The results on all shards held here: by the kernel, or op by op where there is none."""
        if not self.tried:
            self.tried, self.compiled = True, _compiled(node)
        if self.compiled is None:
            return self.meaning(machine, node, arguments)
        # A kernel of constants and indices alone has no operands: it runs once a shard as well.
        given = zip(*arguments, strict=True) if arguments else [()] * len(machine.transport.indices)
        rows = [self.compiled(xs) for xs in given]
        return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in node.results]


def fused_runner(node: Node) -> FusedRunner | None:
    """How to run a fused node, None for other nodes."""
    return FusedRunner(node) if isinstance(node.attrs, FusedAttrs) else None


def _compiled(node: Node) -> Callable[[Sequence[Array]], list[Array]] | None:
    """A fused node with its kernel; None, and a note in the log, if none can be made."""
    assert isinstance(node.attrs, FusedAttrs)
    try:
        inner = _only_node(node.regions[0])
        if inner is not None:
            if (fold := fold_of(inner)) is not None:
                return FoldCall(inner, fold)
            if (steps := update_steps(inner)) is not None:
                return UpdatesCall(inner, steps)
            if (steps := order_steps(inner)) is not None:
                return OrderCall(inner, steps)
        return FusedCall(node, node.attrs)
    except Exception:
        place = f" of {node.loc.text()}" if node.loc else ""
        text = "no kernel for a fused region%s, which runs op by op instead: slower, with the same meaning"
        # What is broken once is likely broken for every kernel: one warning a process is enough.
        _logger.log(logging.DEBUG if next(_FAILURES) else logging.WARNING, text, place, exc_info=True)
        return None


def _only_node(region: Region) -> Node | None:
    """The node that a region consists of; None if it does more than run one."""
    node = region.nodes[0] if len(region.nodes) == 1 else None
    same = node is not None and region.results == node.results and region.params == node.operands
    return node if same else None


class FusedCall:
    """A fused node and its kernel, ready to be called on the arrays of one device."""

    def __init__(self, node: Node, attrs: FusedAttrs) -> None:
        plan = self.plan = plan_of(node.regions[0], attrs)
        self.text = source_of(plan)
        self.rows = prod(plan.loops[: plan.outer])
        self.length = prod(plan.loops[plan.outer :])
        self.kernel = load(self.text)
        self.blocks = self._blocks()
        self.scratch = 8 * self.length * len(plan.kept)
        self.table = self._table_template()

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """The results for some arrays."""
        arrays = [np.ascontiguousarray(x) if not x.flags.c_contiguous else x for x in arrays]
        outs = [self._allocated(o) for o in self.plan.outputs]
        table = self.table.copy()
        for k, x in enumerate((*arrays, *outs)):
            table[self._at(k)] = x.__array_interface__["data"][0]
        deal(self.kernel, self.blocks, self.scratch, table.__array_interface__["data"][0])
        return [self._combined(o, x) for o, x in zip(self.plan.outputs, outs, strict=True)]

    def _blocks(self) -> list[tuple[int, int]]:
        """Runs of rows (of elements where there are no outer loops)."""
        plan = self.plan
        elements = self.rows * self.length
        units = self.rows if plan.outer else self.length
        most = parts(elements) if plan.has_partials else workers(elements)
        count = max(1, min(most, units))
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
