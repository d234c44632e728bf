"""The least that runs a program: one device, one node after the other, by kernels alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Shards
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker

Array = NDArray[Any]


class OneDevice:
    """A machine that holds the only shard."""

    @property
    def transport(self) -> LockstepTransport:
        return LockstepTransport(Mesh({}))

    def across(self, mesh: Mesh) -> Walker:
        """What runs per-device code: all devices of the mesh, in lockstep."""
        return Walker(self.transport).across(mesh)

    def run(self, region: Region, arguments: Sequence[Shards]) -> list[Shards]:
        """Run a region on lists of shards."""
        held: dict[Value, Shards] = dict(zip(region.params, arguments, strict=True))
        for node in region.nodes:
            given = [held[v] for v in node.operands]
            held.update(zip(node.results, self._apply(node, given), strict=True))
        return [held[v] for v in region.results]

    def _apply(self, node: Any, given: Sequence[Shards]) -> Sequence[Shards]:
        if node.op.execute is not None and (node.regions or node.op.kernel is None):
            return node.op.execute(self, node, given)
        # An op without operands runs once, the others once a shard.
        outs = [node.op.kernel(node.attrs, *xs) for xs in (zip(*given, strict=True) if given else [()])]
        rows = [out if isinstance(out, tuple) else (out,) for out in outs]
        return [list(column) for column in zip(*rows, strict=True)]


def evaluate(program: Program, *arrays: Any) -> list[Array]:
    """The results of a program for its arguments."""
    return [xs[0] for xs in OneDevice().run(program.body, [[np.asarray(a)] for a in arrays])]
