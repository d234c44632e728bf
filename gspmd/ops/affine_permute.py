"""A permute along mesh axes by an affine map of the devices' indices: how halos move (paper section 4.3)."""

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
from gspmd.ops.fetch_plan import round_of
from gspmd.ops.rules import require, require_count


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

FAMILY: tuple[OpDef[Any], ...] = (AFFINE_PERMUTE,)
