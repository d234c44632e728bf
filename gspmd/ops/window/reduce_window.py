"""Reductions over a moving window (StableHLO: reduce_window): by a monoid, or by a region on several operands.

Padding and the holes of dilation hold the monoid's identity, or the init operands. The taps of a window are never
split; where the windows reach beyond a device's part its neighbours' elements are fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from gspmd.ir.attrs import Attrs, Window
from gspmd.ir.graph import Node, Region
from gspmd.ir.opdef import Array, Machine, Shards, Types
from gspmd.ir.rule import DimMap, Factor, Rule
from gspmd.kernels import monoids
from gspmd.kernels import window as kernels
from gspmd.ops.reduce import CUSTOM, check_region
from gspmd.ops.rules import require, require_count, require_kind
from gspmd.ops.window.sides import KINDS, access, counts, fill_number, is_plain

_OP = "reduce_window"


@dataclass(frozen=True, slots=True)
class ReduceWindowAttrs(Attrs):
    """The window, a side for each dimension, and the monoid; `custom` means the region, with 2N scalar params."""

    window: Window
    monoid: str = "add"


def reduce_window_infer(types: Types, attrs: ReduceWindowAttrs, regions: tuple[Region, ...]) -> Types:
    """One result for each array, as many elements as windows fit."""
    custom = attrs.monoid == CUSTOM
    require(custom == bool(regions), f"{_OP}.C1", f"monoid {attrs.monoid} with {len(regions)} regions")
    if custom:
        require(len(types) % 2 == 0 and bool(types), f"{_OP}.C2", f"{len(types)} operands are not N arrays and N inits")
        operands = types[: len(types) // 2]
        check_region(_OP, operands, types[len(operands) :], regions[0])
    else:
        require(attrs.monoid in monoids.MONOIDS, f"{_OP}.C3", f"unknown monoid {attrs.monoid!r}")
        require_count(_OP, types, 1)
        require_kind(_OP, "C4", types[0], KINDS[attrs.monoid])
        operands = types
    shape = operands[0].shape
    for i, t in enumerate(operands):
        require(t.shape == shape, f"{_OP}.C5", f"operand 0 has shape {list(shape)}, operand {i} {list(t.shape)}")
    require(not any(s.reversed for s in attrs.window), f"{_OP}.C6", "the window of a reduction cannot be reversed")
    places = counts(_OP, attrs.window, shape, len(shape))
    return tuple(t.with_shape(places) for t in operands)


def reduce_window_rule(types: Types, results: Types, attrs: ReduceWindowAttrs) -> Rule:
    """A factor for each result dimension, and one, never split, for the taps of a window there."""
    x, custom = types[0], attrs.monoid == CUSTOM
    n = len(types) // 2 if custom else 1
    factors = [Factor(m) for m in results[0].shape]
    taps: dict[int, int] = {}
    for d, side in enumerate(attrs.window):
        if not is_plain(side):
            taps[d] = len(factors)
            factors.append(Factor(side.size, "whole"))
    maps: list[tuple[DimMap, ...]] = []
    for i in range(n):
        fill = None if custom else fill_number(attrs.monoid, x.dtype)
        init = n + i if custom else None
        maps.append(
            tuple(
                access(m, d, side, d, taps.get(d, 0), fill, init)
                for d, (m, side) in enumerate(zip(x.shape, attrs.window, strict=True))
            )
        )
    result = tuple((d,) for d in range(x.rank))
    linear = ((0,),) if attrs.monoid == "add" and x.dtype.kind != "b" else ()
    flops = prod(results[0].shape) * prod(s.size for s in attrs.window)
    return Rule(tuple(factors), (*maps, *((),) * (n if custom else 0)), (result,) * n, linear, flops)


def reduce_window_fold(types: Types, attrs: ReduceWindowAttrs) -> Window | None:
    """The window itself."""
    return attrs.window if attrs.monoid == CUSTOM else None


def reduce_window_kernel(attrs: ReduceWindowAttrs, x: Array) -> Array:
    """By a monoid."""
    return kernels.reduce_window(attrs.monoid, x, attrs.window)


def reduce_window_execute(machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
    """Tap by tap, in row-major order, the region on all positions at once; the inits come first of all."""
    attrs = node.attrs
    assert isinstance(attrs, ReduceWindowAttrs)
    if attrs.monoid != CUSTOM:
        return [[kernels.reduce_window(attrs.monoid, x, attrs.window) for x in arguments[0]]]
    n, shape = len(arguments) // 2, node.results[0].type.shape
    arrays, inits = arguments[:n], arguments[n:]
    spaced = [
        [kernels.spaced(x, attrs.window, init) for x, init in zip(xs, starts, strict=True)]
        for xs, starts in zip(arrays, inits, strict=True)
    ]
    held = [[np.broadcast_to(init, shape) for init in starts] for starts in inits]
    for index in np.ndindex(*(s.size for s in attrs.window)):
        taps = [[kernels.tap(x, attrs.window, index) for x in xs] for xs in spaced]
        found = machine.run(node.regions[0], [*held, *taps])
        held = [[np.broadcast_to(x, shape) for x in xs] for xs in found]
    return [[np.ascontiguousarray(x) for x in xs] for xs in held]
