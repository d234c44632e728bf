"""One op, or a few, with the shardings of what goes in and comes out: a row of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gspmd
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program
from gspmd.ir.parser import parse_example
from gspmd.ir.sharding import parse_sharding
from gspmd.ops import OPS
from gspmd.ops.annotate import SHARDING_CONSTRAINT
from tests.xla.case import Array, Case

X2, X3, X4 = (gspmd.Mesh({"x": n}) for n in (2, 3, 4))
XY = gspmd.Mesh({"x": 2, "y": 2})
X2Y3 = gspmd.Mesh({"x": 2, "y": 3})
X2Y4 = gspmd.Mesh({"x": 2, "y": 4})


@dataclass(frozen=True)
class Single(Case):
    """A program of one line of the text format, the operands' shardings within, or of a function if `line` is empty.

    `outputs` are the shardings of the results, `x, _`; there are none where each partitioner lays them out itself.
    `definite`: square matrices that go in are to be symmetric and positive definite.
    """

    line: str = ""
    definite: bool = False

    @property
    def kind(self) -> str:
        """The table that it stands in: its name up to the colon."""
        return self.name.partition(":")[0]

    @property
    def ragged(self) -> bool:
        """Whether some dimension of an argument or result does not divide evenly."""
        program = self.module().program
        types = [*program.inputs, *program.outputs]
        return any(n % d.parts for t in types if t.sharding for n, d in zip(t.shape, t.sharding.dims, strict=True))

    def module(self) -> gspmd.Module:
        """The program at stage annotated."""
        return gspmd.Module(self._annotated()) if self.line else super().module()

    def arrays(self, seed: int = 0) -> list[Array]:
        """Arguments: indices within bounds, floats so small that sums over any dimension stay near 1."""
        rng = np.random.default_rng(seed)
        return [self._drawn(rng, type_) for type_ in self.module().program.inputs]

    def _drawn(self, rng: np.random.Generator, type_: gspmd.TensorType) -> Array:
        shape, dtype = type_.shape, np.dtype(type_.dtype)
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            return rng.integers(0, min(self.below, int(np.iinfo(dtype).max)), shape).astype(dtype)
        drawn: Any = rng.standard_normal(shape) * 2.0 / np.sqrt(max(shape, default=1))
        if dtype.kind == "c":
            drawn = drawn + 1j * rng.standard_normal(shape) / np.sqrt(max(shape, default=1))
        if self.definite and len(shape) > 1 and shape[-1] == shape[-2]:
            drawn = drawn @ np.swapaxes(drawn, -1, -2) + 2.0 * np.eye(shape[-1])
        return np.asarray(drawn).astype(dtype)

    def _held(self, type_: gspmd.TensorType) -> gspmd.TensorType:
        return type_ if type_.sharding else type_.with_sharding(gspmd.Sharding.replicate(self.mesh, type_.rank))

    def _annotated(self) -> Program:
        """The line's program: arguments replicated unless they say otherwise, results as the row says."""
        read = parse_example(self.line, OPS, self.mesh)
        builder = Builder()
        now = {v: builder.param(self._held(v.type), v.name) for v in read.body.params}
        (node,) = read.body.nodes
        held = tuple(now[v] for v in node.operands)
        builder.nodes.append(Node(node.op, held, node.results, node.attrs, node.regions, node.loc))
        results = list(node.results)
        if self.outputs:
            wanted = [parse_sharding(f"[{text}]", self.mesh) for text in self.outputs]
            results = [SHARDING_CONSTRAINT(builder, v, sharding=s) for v, s in zip(results, wanted, strict=True)]
        return Program.of("main", builder.region(results), self.mesh, "annotated")


def op(name: str, mesh: gspmd.Mesh, line: str, *outputs: str, below: int = 1 << 30, definite: bool = False) -> Single:
    """A row of one op: the line, and how each result is to be held (none: as each likes)."""
    return Single(name, mesh, _nothing, (), outputs, not outputs, below, line, definite)


def chain(
    name: str, mesh: gspmd.Mesh, function: Callable[..., Any], inputs: str, *outputs: str, below: int = 1 << 30
) -> Single:
    """A row of a few ops: a function of ours, its arguments' types separated by semicolons."""
    return Single(name, mesh, function, tuple(t.strip() for t in inputs.split(";")), outputs, not outputs, below)


def _nothing() -> None:
    """What a row of one line has for a function."""
