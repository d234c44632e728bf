"""The halo as an op: `fetch` says WHAT a device reads of a split dimension, `affine_permute` moves it (paper 4.3).

Both are on local types. The optimizer replaces a fetch by affine permutes or an all-gather, and slices; until then
equal fetches merge, since all that they depend on is in their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes, parts
from gspmd.ir.graph import Node, Region
from gspmd.ir.opdef import Machine, OpDef, Shards, Traffic, Trait, Types
from gspmd.ops.fetch_plan import Reading, fetch_plan, geometry, round_of
from gspmd.ops.rules import require, require_count


@dataclass(frozen=True, slots=True)
class FetchAttrs(Attrs):
    """The dimension, what is read along it, and what cells outside the tensor hold (None: anything)."""

    dim: int
    reading: Reading
    fill: int | float | None = None


@dataclass(frozen=True, slots=True)
class AffinePermuteAttrs(Attrs):
    """Device i along the axes receives from floor((mul*i + add) / div), if there is such a device and i < count.

    Of several that want one source the `round`-th, counted from device 0, is served. With `wrap` sources are taken
    modulo the number of devices. Who receives nothing gets zeros.
    """

    axes: Axes
    add: int
    mul: int = 1
    div: int = 1
    round: int = 0
    count: int | None = None
    wrap: bool = False


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
        low = g.slope * (i * g.scale // g.block) + g.kslope * k + g.base
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


FETCH = OpDef(
    "fetch",
    FetchAttrs,
    _fetch_infer,
    execute=_fetch_execute,
    traffic=_fetch_traffic,
    traits=frozenset((Trait.COLLECTIVE,)),
    doc="The part of a split dimension that each device reads; where a device has no result to compute, anything.",
)


@lru_cache(maxsize=4096)
def permute_pairs(attrs: AffinePermuteAttrs) -> tuple[tuple[int, int], ...]:
    """The (source, destination) pairs along the axes."""
    size = parts(attrs.axes)
    i = np.arange(size if attrs.count is None else attrs.count)
    source = (attrs.mul * i + attrs.add) // attrs.div
    rest = attrs.mul * i + attrs.add - source * attrs.div
    served = round_of(attrs.mul, rest, attrs.div, i) == attrs.round
    source = source % size if attrs.wrap else source
    served &= (source >= 0) & (source < size)
    return tuple(zip(source[served].tolist(), i[served].tolist(), strict=True))


def _permute_infer(types: Types, attrs: AffinePermuteAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one operand. C2: div is positive."""
    require_count("affine_permute", types, 1)
    require(attrs.div > 0, "affine_permute.C2", f"div must be positive, got {attrs.div}")
    return types


def _permute_execute(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    attrs = node.attrs
    assert isinstance(attrs, AffinePermuteAttrs)
    return (machine.transport.permute(args[0], attrs.axes, permute_pairs(attrs)),)


def _permute_traffic(attrs: AffinePermuteAttrs, operand: int, result: int) -> Traffic:
    return Traffic("collective_permute", attrs.axes, parts(attrs.axes), float(operand))


AFFINE_PERMUTE = OpDef(
    "affine_permute",
    AffinePermuteAttrs,
    _permute_infer,
    execute=_permute_execute,
    traffic=_permute_traffic,
    traits=frozenset((Trait.COLLECTIVE,)),
    doc="Moves shards along a mesh axis by an affine map of the devices' indices, whatever their number.",
)

FAMILY: tuple[OpDef[Any], ...] = (FETCH, AFFINE_PERMUTE)
