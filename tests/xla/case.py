"""One program for the judge: a function of ours, the shardings of what goes in and comes out, and how XLA gets it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gspmd
from gspmd.driver.pipeline import run_stages
from gspmd.frontend.tree import flatten
from gspmd.interop.export_stablehlo import export_stablehlo
from gspmd.ir.dim_sharding import DimSharding
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Program, Region
from gspmd.ir.opdef import node_rule
from gspmd.ir.sharding import parse_sharding
from gspmd.kernels.closeness import compare
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import lockstep
from tests.xla.one_device import run_text

Array = NDArray[Any]


def typed(text: str, mesh: gspmd.Mesh) -> gspmd.TensorType:
    """A sharded type from `f32[256@data, 1024]`."""
    name, inside = re.fullmatch(r"(\w+)\[(.*)\]", text).groups()  # type: ignore[union-attr]
    dims = [d.strip().partition("@") for d in inside.split(",")] if inside else []
    sharding = parse_sharding(f"[{', '.join(axes or '_' for _, _, axes in dims)}]", mesh)
    return gspmd.TensorType(name, tuple(int(n) for n, _, _ in dims), sharding)


@dataclass(frozen=True)
class Case:
    """A program of the judge.

    `inputs` are types with shardings; `outputs` the sharding of each result, `data, _`, or empty: then propagation
    says, for XLA as well as for us. `loose` marks what XLA is to lay out for itself: results without any sharding.
    `below` bounds the values of integer inputs.
    """

    name: str
    mesh: gspmd.Mesh
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    loose: bool = False
    below: int = 1 << 30

    @property
    def file(self) -> str:
        """The name of its StableHLO text."""
        return f"{self.name}.mlir"

    @property
    def ragged(self) -> bool:
        """Whether some dimension of an input does not divide evenly."""
        types = [typed(t, self.mesh) for t in self.inputs]
        return any(n % s.parts for t in types if t.sharding for n, s in zip(t.shape, t.sharding.dims, strict=True))

    def module(self) -> gspmd.Module:
        """The program at stage annotated."""

        def annotated(*arguments: Any) -> Any:
            found, tree = flatten(self.function(*arguments))
            if not self.outputs:
                return tree.unflatten(found)
            wanted = [[e.strip().replace("_", "") or None for e in o.split(",")] if o else [] for o in self.outputs]
            entries = [[e if e is None else tuple(e.split("+")) for e in o] for o in wanted]
            return tree.unflatten([gspmd.shard(x, self.mesh, *e) for x, e in zip(found, entries, strict=True)])

        annotated.__name__ = self.name
        return gspmd.trace(annotated, *(typed(t, self.mesh) for t in self.inputs), mesh=self.mesh)

    def exported(self) -> str:
        """The text for XLA, the shardings of arguments and results fixed as our propagation has them."""
        program = run_stages(self.module().program, "propagated").last
        if self.loose:
            bare = tuple(t.bare for t in program.outputs)
            program = replace(program, outputs=bare)
        return export_stablehlo(closed(program))

    def arrays(self, seed: int = 0) -> list[Array]:
        """Arguments: indices within bounds, floats so small that sums over any dimension stay near 1."""
        rng = np.random.default_rng(seed)
        made: list[Array] = []
        for text in self.inputs:
            type_ = typed(text, self.mesh)
            if dtype_kind(type_.dtype) in ("int", "uint"):
                drawn = rng.integers(0, self.below, type_.shape)
            else:
                drawn = rng.standard_normal(type_.shape) * 2.0 / np.sqrt(max(type_.shape, default=1))
            made.append(np.asarray(drawn).astype(type_.dtype))
        return made


def summed_terms(region: Region, times: int = 1) -> int:
    """A bound on the terms of the longest sum behind any result: all ops of a region, one after the other."""
    total = 1
    for node in region.nodes:
        rule = node_rule(node)
        if rule is not None:
            total += times * (prod(f.size for f in rule.factors if f.kind == "reduce") - 1)
        trips: int | None = getattr(node.attrs, "trip_count", None)
        total += sum(summed_terms(inner, times * (trips or 1)) for inner in node.regions)
    return total


def differences(case: Case) -> list[str]:
    """How our partitioned program, run on all devices in lockstep, differs from XLA on one device, if it does.

    Padding cells of the arguments hold NaN.
    """
    module = case.module()
    program = run_stages(module.program).last
    arrays = case.arrays()
    ours = Executor(program, lockstep(case.mesh)).run_whole(arrays, np.nan)
    theirs = run_text(case.exported(), arrays)
    terms = summed_terms(module.program.body)
    found = [compare(a, b, terms=terms) for a, b in zip(ours, theirs, strict=True)]
    return [f"{case.name}, result {i}: {c.message}" for i, c in enumerate(found) if not c]


def closed(program: Program) -> Program:
    """The program with every dimension of its signature closed and without explicit chunks."""

    def close(type_: gspmd.TensorType) -> gspmd.TensorType:
        if type_.sharding is None:
            return type_
        dims = tuple(DimSharding(d.axes) for d in type_.sharding.dims)
        return type_.with_sharding(gspmd.Sharding(type_.sharding.mesh, dims))

    return replace(program, inputs=tuple(map(close, program.inputs)), outputs=tuple(map(close, program.outputs)))
