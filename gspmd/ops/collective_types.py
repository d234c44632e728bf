"""What collectives take and give: their attributes and type rules, on global, manual and local types.

On a *global* type, which carries a sharding, a collective changes the sharding and the shape stays. On a *local* type,
which has none, the shape changes; likewise on a *manual* one, whose sharding leaves the collective's axes to the user.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes, canonical, contains, cut, difference, parts
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Region
from gspmd.ir.opdef import Types
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import MONOIDS
from gspmd.ops.rules import require, require_kind

Pairs = tuple[tuple[int, int], ...]
_BY_HAND = "in per-device code an annotation names the manual axes at its end, as in [_, b]!(a)"


@dataclass(frozen=True, slots=True)
class ReshardAttrs(Attrs):
    """The sharding to bring a value to."""

    sharding: Sharding


@dataclass(frozen=True, slots=True)
class DimAxesAttrs(Attrs):
    """A tensor dimension and the mesh axes that join or leave its minor end."""

    dim: int
    axes: Axes


@dataclass(frozen=True, slots=True)
class AllToAllAttrs(Attrs):
    """Axes that leave the minor end of `from_dim` and join the minor end of `to_dim`."""

    from_dim: int
    to_dim: int
    axes: Axes


@dataclass(frozen=True, slots=True)
class AllReduceAttrs(Attrs):
    """The axes to reduce over and the monoid ("add", "max", ...)."""

    axes: Axes
    monoid: str


@dataclass(frozen=True, slots=True)
class ReduceScatterAttrs(Attrs):
    """Reduce over the axes and leave each device its part of `dim`."""

    dim: int
    axes: Axes
    monoid: str


@dataclass(frozen=True, slots=True)
class PermuteAttrs(Attrs):
    """A device permutation: two listings, major to minor, of the same digits.

    Whoever has index t along `target` receives from whoever has index t along `source`. On a global type `sharding` is
    the sharding that results; it has the same parts in each dimension. With `pairs` whoever has index d along the axes
    (`source` and `target` are one) receives from index s for each pair (s, d), and zeros if there is none.
    """

    source: Axes
    target: Axes
    sharding: Sharding | None = None
    pairs: Pairs | None = None


@dataclass(frozen=True, slots=True)
class AxesAttrs(Attrs):
    """Mesh axes, major to minor."""

    axes: Axes


def is_global(type_: TensorType, axes: Axes) -> bool:
    """Whether over these axes a type speaks of the whole tensor, and not of one device's own array."""
    held = type_.sharding
    return held is not None and not all(contains(held.manual, a) for a in axes if a.size > 1)


def _only(types: Types, rule: str, *dims: int) -> TensorType:
    require(len(types) == 1, f"{rule}.C1", f"takes one operand, got {len(types)}")
    (x,) = types
    require(all(0 <= d < x.rank for d in dims), f"{rule}.C4", f"{x.bare.text()} has no dim {max(dims, default=0)}")
    return x


def gathered(sharding: Sharding, shape: tuple[int, ...], dim: int, axes: Axes, rule: str = "all_gather") -> Sharding:
    """The sharding after axes leave the minor end of a dimension; chunks join, so a ragged one may be left unusual."""
    held = sharding.dims[dim].axes
    halves = cut(held, parts(held) // parts(axes))
    if halves is None or canonical(halves[1]) != canonical(axes):
        raise TypeRuleError(
            f"the axes {sharding.axes_text(axes)} are not the minor end of dim {dim}, which is split over "
            f"{sharding.axes_text(held) or 'nothing'}",
            rule=f"{rule}.C2",
            fix=_BY_HAND,
        )
    return _with_dim(sharding, shape, dim, halves[0], sharding.chunk(dim, shape[dim]) * parts(axes))


def sliced(sharding: Sharding, shape: tuple[int, ...], dim: int, axes: Axes, rule: str = "all_slice") -> Sharding:
    """The sharding after axes join the minor end of a dimension, whose chunks must divide unless it is whole."""
    held, count = sharding.dims[dim].axes, parts(axes)
    chunk = sharding.chunk(dim, shape[dim])
    require(
        not held or chunk % count == 0,
        f"{rule}.C3",
        f"dim {dim} has shards of {chunk} elements, which do not divide among {count} devices",
    )
    return _with_dim(sharding, shape, dim, held + axes, -(-chunk // count))


def _with_dim(sharding: Sharding, shape: tuple[int, ...], dim: int, axes: Axes, chunk: int) -> Sharding:
    dims = list(sharding.dims)
    dims[dim] = DimSharding(axes, dims[dim].open, chunk if axes else None)
    # Axes that the annotation kept free are free no longer once something is split over them.
    free = difference(sharding.replicated, axes)
    return replace(sharding, dims=tuple(dims), replicated=free).normal(shape)


def _resize(type_: TensorType, dim: int, up: int = 1, down: int = 1, rule: str = "") -> TensorType:
    shape = list(type_.shape)
    require(
        shape[dim] % down == 0, f"{rule}.C3", f"the local size {shape[dim]} of dim {dim} must divide by {down} devices"
    )
    shape[dim] = shape[dim] * up // down
    return type_.with_shape(shape)


def reshard_infer(types: Types, attrs: ReshardAttrs, regions: tuple[Region, ...]) -> Types:
    """The operand's type under the sharding of the attributes."""
    return (_only(types, "reshard").with_sharding(attrs.sharding),)


def all_gather_infer(types: Types, attrs: DimAxesAttrs, regions: tuple[Region, ...]) -> Types:
    """Parts of a dimension join."""
    x = _only(types, "all_gather", attrs.dim)
    if not is_global(x, attrs.axes):
        return (_resize(x.bare, attrs.dim, up=parts(attrs.axes)),)
    return (x.with_sharding(gathered(x.placed, x.shape, attrs.dim, attrs.axes)),)


def all_slice_infer(types: Types, attrs: DimAxesAttrs, regions: tuple[Region, ...]) -> Types:
    """A dimension is cut, without communication."""
    x = _only(types, "all_slice", attrs.dim)
    if not is_global(x, attrs.axes):
        return (_resize(x.bare, attrs.dim, down=parts(attrs.axes), rule="all_slice"),)
    return (x.with_sharding(sliced(x.placed, x.shape, attrs.dim, attrs.axes)),)


def all_to_all_infer(types: Types, attrs: AllToAllAttrs, regions: tuple[Region, ...]) -> Types:
    """One dimension's parts join while another is cut."""
    x = _only(types, "all_to_all", attrs.from_dim, attrs.to_dim)
    n = parts(attrs.axes)
    if not is_global(x, attrs.axes):
        return (_resize(_resize(x.bare, attrs.to_dim, down=n, rule="all_to_all"), attrs.from_dim, up=n),)
    left = gathered(x.placed, x.shape, attrs.from_dim, attrs.axes, "all_to_all")
    return (x.with_sharding(sliced(left, x.shape, attrs.to_dim, attrs.axes, "all_to_all")),)


def _check_monoid(type_: TensorType, monoid: str, rule: str) -> None:
    require(monoid in MONOIDS, f"{rule}.C5", f"unknown monoid {monoid!r}", f"use one of {', '.join(MONOIDS)}")
    require_kind(rule, "C6", type_, "biu" if monoid in ("and", "or", "xor") else "biufc")


def _still_unreduced(sharding: Sharding, axes: Axes, monoid: str, rule: str) -> Sharding:
    left = difference(sharding.unreduced, axes)
    require(
        sharding.monoid == monoid and parts(left) * parts(axes) == parts(sharding.unreduced),
        f"{rule}.C2",
        f"reduces by {monoid} over {sharding.axes_text(axes)} a value that is {sharding.text()}",
        _BY_HAND,
    )
    return sharding.with_unreduced(left, monoid)


def all_reduce_infer(types: Types, attrs: AllReduceAttrs, regions: tuple[Region, ...]) -> Types:
    """The shape stays."""
    x = _only(types, "all_reduce")
    _check_monoid(x, attrs.monoid, "all_reduce")
    if not is_global(x, attrs.axes):
        return (x.bare,)
    return (x.with_sharding(_still_unreduced(x.placed, attrs.axes, attrs.monoid, "all_reduce")),)


def reduce_scatter_infer(types: Types, attrs: ReduceScatterAttrs, regions: tuple[Region, ...]) -> Types:
    """A dimension is cut."""
    x = _only(types, "reduce_scatter", attrs.dim)
    _check_monoid(x, attrs.monoid, "reduce_scatter")
    if not is_global(x, attrs.axes):
        return (_resize(x.bare, attrs.dim, down=parts(attrs.axes), rule="reduce_scatter"),)
    left = _still_unreduced(x.placed, attrs.axes, attrs.monoid, "reduce_scatter")
    return (x.with_sharding(sliced(left, x.shape, attrs.dim, attrs.axes, "reduce_scatter")),)


def permute_infer(types: Types, attrs: PermuteAttrs, regions: tuple[Region, ...]) -> Types:
    """The shape stays."""
    x = _only(types, "collective_permute")
    require(
        parts(attrs.source) == parts(attrs.target),
        "collective_permute.C2",
        f"source and target must list the same devices, got {parts(attrs.source)} and {parts(attrs.target)}",
    )
    if attrs.pairs is not None:
        _check_pairs(attrs.pairs, parts(attrs.source))
    if not is_global(x, attrs.source):
        return (x.bare,)
    return (x.with_sharding(attrs.sharding or x.placed),)


def _check_pairs(pairs: Pairs, size: int) -> None:
    for what, held in (("sends", [s for s, _ in pairs]), ("receives", [d for _, d in pairs])):
        odd = next((i for i in held if not 0 <= i < size), None)
        require(odd is None, "collective_permute.C3", f"pairs name device {odd} of {size}")
        twice = next((i for i in held if held.count(i) > 1), None)
        require(twice is None, "collective_permute.C3", f"device {twice} {what} twice")


def axis_index_infer(types: Types, attrs: AxesAttrs, regions: tuple[Region, ...]) -> Types:
    """An i32 scalar, of no operand."""
    require(not types, "axis_index.C1", f"takes no operand, got {len(types)}")
    return (TensorType("i32", ()),)
