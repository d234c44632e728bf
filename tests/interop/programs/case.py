"""A program written in JAX, the ways in which it is laid out on devices, and what each may send.

A program is built twice: for one device, where `place` does nothing, and for a layout, where it is JAX's own
`with_sharding_constraint`. The layout's shardings of arguments are those of `jax.ShapeDtypeStruct`s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import gspmd
from gspmd.ir.graph import Program as GspmdProgram
from gspmd.ir.graph import Region, Value
from tests.interop.programs.devices import on_devices

P = PartitionSpec
Place = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Layout:
    """Shardings of a program, and the most bytes that a device may put on the wire in one run.

    `arguments` and `results` hold `PartitionSpec`s, one for each argument or result or, as deep as needed, for parts
    of them; None leaves open how a part is sharded. `inside` gives the shardings at the places that a program names.
    """

    name: str
    mesh: Mapping[str, int]
    arguments: tuple[Any, ...]
    cap: float
    inside: Mapping[str, PartitionSpec] = field(default_factory=dict[str, PartitionSpec])
    results: Any = None

    @property
    def devices(self) -> int:
        """How many devices it is for."""
        return int(np.prod(list(self.mesh.values())))

    @cached_property
    def jax_mesh(self) -> AbstractMesh:
        """The mesh, of no devices."""
        return AbstractMesh(tuple(self.mesh.values()), tuple(self.mesh), (AxisType.Auto,) * len(self.mesh))

    def everywhere(self, place: Callable[[Any, PartitionSpec | None], Any], arguments: tuple[Any, ...]) -> Any:
        """The arguments, each placed under its spec."""
        return jax.tree.map(place, arguments, _everywhere(self.arguments, arguments))

    def constrain(self, x: Any, spec: PartitionSpec | None) -> Any:
        """The array, held as a spec says."""
        if spec is None:
            return x
        within = jax.sharding.get_abstract_mesh()  # per-device code has a mesh of its own, some axes of it manual
        return jax.lax.with_sharding_constraint(x, NamedSharding(self.jax_mesh if within.empty else within, spec))


@dataclass(frozen=True)
class Program:
    """A function, made by `build` from what places its intermediate values, with arguments and layouts.

    `terms` is the length of the longest sum behind a result.
    """

    name: str
    build: Callable[[Place], Callable[..., Any]]
    arguments: tuple[Any, ...]
    layouts: tuple[Layout, ...]
    terms: int = 1 << 12

    @cached_property
    def expected(self) -> Any:
        """What JAX computes on one device."""
        return jax.jit(self.build(lambda x, _: x))(*self.arguments)

    def function(self, layout: Layout) -> Callable[..., Any]:
        """The function as it is laid out: intermediate values and results."""
        inner = self.build(lambda x, name: layout.constrain(x, layout.inside.get(name)))

        def laid_out(*arguments: Any) -> Any:
            results = inner(*arguments)
            return jax.tree.map(layout.constrain, results, _everywhere(layout.results, results))

        laid_out.__name__ = self.name
        return laid_out

    def types(self, layout: Layout) -> tuple[Any, ...]:
        """The types of the arguments with their shardings."""

        def typed(x: Any, spec: PartitionSpec | None) -> Any:
            x = np.asarray(x)
            sharding = None if spec is None else NamedSharding(layout.jax_mesh, spec)
            return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

        return layout.everywhere(typed, self.arguments)

    def module(self, layout: Layout) -> gspmd.Module:
        """The program imported under a layout."""
        return gspmd.from_jax(self.function(layout), *self.types(layout))


@dataclass(frozen=True)
class ManualProgram(Program):
    """A program with per-device code, whose mesh is that of its layout; JAX runs it on as many devices.

    What it computes does not depend on the layout, so that JAX has to run it under the first one only.
    """

    @cached_property
    def expected(self) -> Any:
        """What JAX computes on devices of a process of its own."""
        return on_devices(f"{self.name}/{self.layouts[0].name}", self.layouts[0].devices)

    def function(self, layout: Layout) -> Callable[..., Any]:
        """The function as it is laid out, on the layout's mesh."""
        inner = super().function(layout)

        def on_mesh(*arguments: Any) -> Any:
            with jax.sharding.use_abstract_mesh(layout.jax_mesh):
                return inner(*arguments)

        on_mesh.__name__ = self.name
        return on_mesh


def _everywhere(specs: Any, tree: Any) -> Any:
    """Specs spread over all leaves of a nesting."""
    return jax.tree.broadcast(specs, tree, is_leaf=lambda s: s is None or isinstance(s, PartitionSpec))


def nbytes(tree: Any) -> int:
    """Bytes of all arrays of a nesting."""
    return sum(np.asarray(x).nbytes for x in jax.tree.leaves(tree))


def once(size: float, parts: int) -> float:
    """Bytes that a device sends to gather, scatter or transpose an array of a size: all but its own part."""
    return size * (parts - 1) / parts


def twice(size: float, parts: int) -> float:
    """Bytes that a device sends to add up arrays of a size."""
    return 2 * once(size, parts)


def wire_bytes(compiled: gspmd.Compiled) -> float:
    """Bytes that a device puts on the wire in one run."""
    return sum(use.wire_bytes * use.count for use in compiled.collectives())


def gathered_bytes(program: GspmdProgram) -> float:
    """What a device would send if every value that is split were gathered whole for the ops that read it, once each.

    The program is one at stage `propagated`; a value in a loop counts as often as the loop runs.
    """
    return _gathered(program.body, 1)


def _gathered(region: Region, times: int) -> float:
    read = dict.fromkeys(v for node in region.nodes for v in node.operands)
    total = times * sum(map(_gather, read))
    for node in region.nodes:
        trips = None if node.op.trips is None else node.op.trips(node.attrs)
        total += sum(_gathered(inner, times * (trips or 1)) for inner in node.regions)
    return total


def _gather(value: Value) -> float:
    parts = int(np.prod([d.parts for d in value.type.placed.dims]))
    return value.type.nbytes * (parts - 1) / parts
