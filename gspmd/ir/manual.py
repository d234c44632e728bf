"""Where automatic code meets per-device code: a value outside a manual region and the value that it is inside.

Over the manual axes the user's own code is in charge: an inner value is one device's part of the outer one along them.
The free axes go through. In factor form an outer dimension is `manual part, inner dimension`, major to minor, so that
propagation, agreement and partitioning need nothing of their own (Shardy's `manual_computation`; paper section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import cast, get_type_hints

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes, parts
from gspmd.ir.graph import Value
from gspmd.ir.rule import Factor, Rule, TensorMap
from gspmd.ir.sharding import DimSharding, Sharding


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value outside, the value inside, and for each dimension the manual axes that split it, major to the free."""

    outer: Value
    inner: Value
    axes: tuple[Axes, ...]

    @property
    def rule(self) -> Rule:
        """The rule of the edge, from the inner value to the outer."""
        return crossing_rule(self.inner.type.shape, self.axes)

    def homes(self, inner: Sharding, outer: Sharding) -> tuple[Sharding, Sharding]:
        """How both are held at the edge, as near to `inner` as shards that nest allow; nothing is unreduced."""
        return _homes(self.inner.type.shape, self.axes, inner.reduced(), outer.reduced())


def named_axes(attrs: Attrs) -> Axes:
    """The mesh axes that an op's attributes name: those along which it works."""
    held: list[object] = [getattr(attrs, name) for name in _axes_fields(attrs.__class__)]
    return tuple(a for axes in held if isinstance(axes, tuple) for a in cast("Axes", axes))


@cache
def _axes_fields(kind: type[Attrs]) -> tuple[str, ...]:
    return tuple(name for name, hint in get_type_hints(kind).items() if hint == Axes)


@lru_cache(maxsize=1 << 12)
def crossing_rule(inner: tuple[int, ...], axes: tuple[Axes, ...]) -> Rule:
    """Factor d is the inner dimension d; where manual axes split it the outer dimension has another, major one."""
    factors = [Factor(n) for n in inner]
    outer: list[tuple[int, ...]] = []
    for d, manual in enumerate(axes):
        if manual:
            outer.append((len(factors), d))
            factors.append(Factor(parts(manual)))
        else:
            outer.append((d,))
    inside: TensorMap = tuple((d,) for d in range(len(inner)))
    return Rule(tuple(factors), (inside,), (tuple(outer),))


@lru_cache(maxsize=1 << 12)
def _homes(
    shape: tuple[int, ...], axes: tuple[Axes, ...], inner: Sharding, outer: Sharding
) -> tuple[Sharding, Sharding]:
    free = [d.axes for d in inner.dims]
    for d, manual in enumerate(axes):
        if manual and shape[d] % parts(free[d]):
            free[d] = ()  # ragged shards of parts are no shards of the whole
    inside = tuple(DimSharding(a) for a in free)
    outside = tuple(DimSharding((*m, *a)) for m, a in zip(axes, free, strict=True))
    return (
        Sharding(inner.mesh, inside, manual=inner.manual),
        Sharding(inner.mesh, outside, manual=outer.manual),
    )
