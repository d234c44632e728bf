"""The halo as an op: `fetch` says WHAT a device reads of a split dimension (paper section 4.3).

It is on local types. The optimizer expands it (`fetch_expand`); until then equal fetches merge, since all that they
depend on is in their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Machine, OpDef, Shards, Traffic, Trait, Types
from gspmd.ops.fetch_expand import emit_fetch
from gspmd.ops.fetch_plan import Reading, fetch_plan, geometry
from gspmd.ops.rules import require, require_count


@dataclass(frozen=True, slots=True)
class FetchAttrs(Attrs):
    """The dimension, what is read along it, and what cells outside the tensor hold (None: anything)."""

    dim: int
    reading: Reading
    fill: int | float | None = None


def _fetch_infer(types: Types, attrs: FetchAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one operand. C2: dim in range. C3: the dim has the elements of a chunk."""
    require_count("fetch", types, 1)
    (x,) = types
    require(0 <= attrs.dim < x.rank, "fetch.C2", f"dim {attrs.dim} must lie in [0, {x.rank})")
    held, chunk = x.shape[attrs.dim], attrs.reading.chunk
    require(held == chunk, "fetch.C3", f"dim {attrs.dim} has {held} elements, but a chunk {chunk}")
    shape = list(x.shape)
    shape[attrs.dim] = geometry(attrs.reading).width
    return (x.with_shape(shape),)


def _fetch_execute(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    """All gather, each takes its part: the meaning, whatever plan the optimizer chooses."""
    attrs = node.attrs
    assert isinstance(attrs, FetchAttrs)
    r, g, mesh = attrs.reading, geometry(attrs.reading), machine.transport.mesh
    whole = machine.transport.all_gather(args[0], r.axes, attrs.dim)
    out: Shards = []
    for x, device in zip(whole, machine.transport.indices, strict=True):
        i, k = mesh.tile_index(device, r.to_axes), mesh.tile_index(device, r.k_axes)
        low = int(g.low(i, k))
        positions = np.arange(low, low + g.width)
        inside = (positions >= 0) & (positions < r.size)
        taken = np.zeros(node.result.type.shape, x.dtype)
        at = (slice(None),) * attrs.dim
        taken[(*at, ~inside)] = 0 if attrs.fill is None else attrs.fill
        taken[(*at, inside)] = x[(*at, positions[inside])]
        out.append(taken)
    return (out,)


def _fetch_traffic(attrs: FetchAttrs, operand: int, result: int) -> Traffic:
    r = attrs.reading
    return Traffic("collective_permute", r.axes, parts(r.axes), float(fetch_plan(r).wire * operand // max(r.chunk, 1)))


def _fetch_expand(builder: Builder, operands: Sequence[Value], attrs: FetchAttrs) -> Sequence[Value]:
    """As the cheapest plan does it."""
    return (emit_fetch(builder, operands[0], attrs.dim, attrs.reading, attrs.fill, fetch_plan(attrs.reading)),)


FETCH = OpDef(
    "fetch",
    FetchAttrs,
    _fetch_infer,
    execute=_fetch_execute,
    traffic=_fetch_traffic,
    expand=_fetch_expand,
    traits=frozenset((Trait.COLLECTIVE,)),
    doc="The part of a split dimension that each device reads; where a device has no result to compute, anything.",
)


FAMILY: tuple[OpDef[Any], ...] = (FETCH,)
