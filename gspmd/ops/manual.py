"""manual_computation: a region of per-device code in automatic code (Shardy's op; shard_map; paper section 3.4).

Over the manual axes each device runs the region on its own part of the operands, as `in_shardings` cut them, and the
user's collectives do the rest; the results are put together as `out_shardings` say. A result that is not split over a
manual axis is the one of that axis' first device. Axes that are not manual stay with the compiler, inside as outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes, as_set, difference, intersection, parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.manual import Crossing
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array, Gradient, Machine, OpDef, Shards, Types
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.annotate import SHARDING_CONSTRAINT
from gspmd.ops.collective import ALL_REDUCE
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.rules import differentiable, require

_OP = "manual_computation"


@dataclass(frozen=True, slots=True)
class ManualAttrs(Attrs):
    """How operands are cut and results put together, and the axes of the mesh that the region's code is in charge of.

    In a dimension manual axes come before free ones. The manual axes of the shardings are those of the code around.
    """

    in_shardings: tuple[Sharding, ...]
    out_shardings: tuple[Sharding, ...]
    axes: Axes


def manual_dims(sharding: Sharding, axes: Axes) -> tuple[Axes, ...]:
    """For each dimension the manual axes that split it."""
    return tuple(intersection(d.axes, axes) for d in sharding.dims)


def inner_type(outer: TensorType, sharding: Sharding, axes: Axes, what: str = "operand") -> TensorType:
    """One device's part of a value along manual axes; TypeRuleError if it does not divide."""
    require(
        sharding.rank == outer.rank,
        f"{_OP}.C2",
        f"the sharding {sharding.text()} has {sharding.rank} dims, the {what} {outer.bare.text()} {outer.rank}",
    )
    shape = list(outer.shape)
    for d, held in enumerate(manual_dims(sharding, axes)):
        first = sharding.dims[d].axes[: len(held)]
        require(first == held, f"{_OP}.C3", f"{sharding.text()} has free axes before manual ones in dim {d}")
        n = parts(held)
        require(
            shape[d] % n == 0,
            f"{_OP}.C4",
            f"dim {d} of the {what} {outer.bare.text()} has {shape[d]} elements, which do not divide among the {n} "
            f"devices along {sharding.axes_text(held)}",
            "pad it, or split another dimension: per-device code sees equal parts",
        )
        shape[d] //= n
    return TensorType(outer.dtype, tuple(shape))


def outer_type(inner: TensorType, sharding: Sharding, axes: Axes) -> TensorType:
    """The whole of which a value inside is one part, annotated as the result of the op."""
    shape = [n * parts(held) for n, held in zip(inner.shape, manual_dims(sharding, axes), strict=True)]
    return TensorType(inner.dtype, tuple(shape), annotation(sharding, axes))


def annotation(sharding: Sharding, axes: Axes) -> Sharding:
    """What is said of a value outside: split as given, and over the other manual axes not at all."""
    rest = difference(axes, sharding.used)
    replicated = as_set((*sharding.replicated, *difference(rest, sharding.replicated)), sharding.mesh.axis_names)
    return Sharding(sharding.mesh, sharding.dims, replicated=replicated, manual=sharding.manual)


def manual_computation(
    builder: Builder, operands: Sequence[Value], attrs: ManualAttrs, region: Region
) -> tuple[Value, ...]:
    """Append a manual computation, its operands annotated so that propagation knows how they will be wanted."""
    held = [
        SHARDING_CONSTRAINT(builder, x, sharding=annotation(s, attrs.axes))
        for x, s in zip(operands, attrs.in_shardings, strict=True)
    ]
    return MANUAL_COMPUTATION.emit(builder, held, attrs, (region,))


# -- the type rule ---------------------------------------------------------------------------------------------------


def _infer(types: Types, attrs: ManualAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one region, one sharding a value. C2-C4: parts of operands and results. C5: the region takes those parts."""
    require(len(regions) == 1, f"{_OP}.C1", f"takes one region, got {len(regions)}")
    (region,) = regions
    for what, shardings, count in (
        ("in", attrs.in_shardings, len(types)),
        ("out", attrs.out_shardings, len(region.results)),
    ):
        require(len(shardings) == count, f"{_OP}.C1", f"has {len(shardings)} {what}_shardings for {count} {what}puts")
    wanted = tuple(inner_type(t, s, attrs.axes) for t, s in zip(types, attrs.in_shardings, strict=True))
    given = tuple(p.type.bare for p in region.params)
    require(
        given == wanted,
        f"{_OP}.C5",
        f"the region takes ({', '.join(t.text() for t in given)}), the operands' parts are "
        f"({', '.join(t.text() for t in wanted)})",
    )
    for value, sharding in zip(region.results, attrs.out_shardings, strict=True):
        require(
            sharding.rank == value.type.rank,
            f"{_OP}.C2",
            f"the sharding {sharding.text()} has {sharding.rank} dims, the result {value.type.bare.text()}",
        )
    results = zip(region.results, attrs.out_shardings, strict=True)
    return tuple(outer_type(v.type, s, attrs.axes) for v, s in results)


def _crossings(node: Node) -> tuple[Crossing, ...]:
    attrs, (region,) = node.attrs, node.regions
    assert isinstance(attrs, ManualAttrs)
    into = zip(node.operands, region.params, attrs.in_shardings, strict=True)
    back = zip(node.results, region.results, attrs.out_shardings, strict=True)
    return tuple(Crossing(outer, inner, manual_dims(s, attrs.axes)) for outer, inner, s in (*into, *back))


# -- running it: the reference is all devices of the manual axes in lockstep ------------------------------------------


def _execute(machine: Machine, node: Node, args: Sequence[Shards]) -> Sequence[Shards]:
    attrs, (region,) = node.attrs, node.regions
    assert isinstance(attrs, ManualAttrs)
    around = machine.transport.mesh
    sizes = {a.name: a.size for a in attrs.axes}
    own = Mesh(sizes)
    inside = machine.across(Mesh({**dict(around.axes), **sizes}))
    pieces = [_deal(x, own, manual_dims(s, attrs.axes)) for x, s in zip(args, attrs.in_shardings, strict=True)]
    results = inside.run(region, pieces)
    return [
        [_join(x[i : i + own.size], own, manual_dims(s, attrs.axes)) for i in range(0, len(x), own.size)]
        for x, s in zip(results, attrs.out_shardings, strict=True)
    ]


def _deal(xs: Shards, mesh: Mesh, dims: tuple[Axes, ...]) -> Shards:
    """Each array's parts, one for each device of the mesh."""
    return [np.asarray(x[_part(x.shape, mesh, dims, i)]) for x in xs for i in range(mesh.size)]


def _join(xs: Shards, mesh: Mesh, dims: tuple[Axes, ...]) -> Array:
    """The whole from the parts; of devices that have the same part, the first one's."""
    shape = tuple(n * parts(a) for n, a in zip(xs[0].shape, dims, strict=True))
    whole = np.empty(shape, xs[0].dtype)
    for i in reversed(range(mesh.size)):
        whole[_part(shape, mesh, dims, i)] = xs[i]
    return whole


def _part(shape: tuple[int, ...], mesh: Mesh, dims: tuple[Axes, ...], device: int) -> tuple[slice, ...]:
    out: list[slice] = []
    for n, axes in zip(shape, dims, strict=True):
        size, at = n // parts(axes), mesh.tile_index(device, axes)
        out.append(slice(at * size, (at + 1) * size))
    return tuple(out)


# -- gradient --------------------------------------------------------------------------------------------------------


def _vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """A manual computation of the region's pullback.

    Devices that were given the same part add up their cotangents. A result that many devices have alike hands each of
    them an equal share of its cotangent, as if it were their mean.
    """
    attrs, (region,) = node.attrs, node.regions
    assert isinstance(attrs, ManualAttrs)
    wanted = [differentiable(x.type) for x in node.operands]
    if all(ct is None for ct in cotangents) or not any(wanted):
        return [None] * len(node.operands)
    given = [
        gradient.zeros(y.type.bare) if ct is None else _share(gradient.builder, ct, s, attrs.axes)
        for y, ct, s in zip(node.results, cotangents, attrs.out_shardings, strict=True)
    ]
    back = gradient.region_vjp(region, wanted)
    kept = tuple(s for s, want in zip(attrs.in_shardings, wanted, strict=True) if want)
    pullback = ManualAttrs((*attrs.in_shardings, *attrs.out_shardings), kept, attrs.axes)
    summed = _with_sums(back, kept, attrs.axes)
    pulled = iter(manual_computation(gradient.builder, (*node.operands, *given), pullback, summed))
    return [next(pulled) if w else None for w in wanted]


def _share(builder: Builder, ct: Value, sharding: Sharding, axes: Axes) -> Value:
    count = parts(difference(axes, sharding.used))
    if count == 1 or not differentiable(ct.type):
        return ct
    value = Expression(builder, ct)
    return (value / value.number(count)).value


def _with_sums(region: Region, shardings: Sequence[Sharding], axes: Axes) -> Region:
    """The region with its results summed over the axes that do not split them."""
    builder = Builder()
    builder.params.extend(region.params)
    builder.nodes.extend(region.nodes)
    results = [
        ALL_REDUCE(builder, v, axes=rest, monoid="add") if (rest := difference(axes, s.used)) else v
        for v, s in zip(region.results, shardings, strict=True)
    ]
    return builder.region(results)


MANUAL_COMPUTATION: OpDef[ManualAttrs] = OpDef(
    _OP,
    ManualAttrs,
    _infer,
    execute=_execute,
    manual=lambda attrs: attrs.axes,
    crossings=_crossings,
    vjp=_vjp,
    examples=(
        "mesh @mesh = [data=2, model=3] "
        "manual_computation(f32[8, 6], f32[6, 5]) in_shardings=[[data, model], [model, _]] "
        "out_shardings=[[data, _], [model, _]] axes=[data, model] "
        "(%x: f32[4, 2], %w: f32[2, 5]) { "
        "%p = dot_general(%x, %w) lhs_contract=[1] rhs_contract=[0] : f32[4, 5] "
        "%y = all_reduce(%p) axes=[model] monoid=add : f32[4, 5] "
        "%n = negate(%w) : f32[2, 5] "
        "return %y, %n }",
    ),
    doc="Per-device code: each device runs the region on its parts of the operands.",
)

FAMILY: tuple[OpDef[Any], ...] = (MANUAL_COMPUTATION,)
