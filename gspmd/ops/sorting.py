"""Order along a dimension (StableHLO: sort; CHLO: top_k)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, Dense, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, Machine, OpDef, Shards, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import sorting as kernels
from gspmd.kernels.finite import is_float, limits
from gspmd.ops.comparator import Keys, comparator_keys
from gspmd.ops.elementwise import ADD, COMPARE
from gspmd.ops.indexing import GATHER, SCATTER
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import CONSTANT, IOTA
from gspmd.ops.reduce import scalar_region
from gspmd.ops.rules import differentiable, require, require_count, require_kind

_I32 = DTYPES["i32"]


@dataclass(frozen=True, slots=True)
class SortAttrs(Attrs):
    """The dimension, and whether elements that compare equal keep their order (they do here in any case)."""

    dimension: int = 0
    is_stable: bool = False


@dataclass(frozen=True, slots=True)
class TopKAttrs(Attrs):
    """How many of the largest."""

    k: int


# -- sort ------------------------------------------------------------------------------------------------------------


def _sort_infer(types: Types, attrs: SortAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: operands. C2: of one shape. C3: the dimension. C4: the comparator's params. C5: its result."""
    require(bool(types) and len(regions) == 1, "sort.C1", f"{len(types)} operands and {len(regions)} regions")
    shape = types[0].shape
    for i, t in enumerate(types):
        require(t.shape == shape, "sort.C2", f"operand 0 has shape {list(shape)}, operand {i} {list(t.shape)}")
    require(0 <= attrs.dimension < len(shape), "sort.C3", f"dimension {attrs.dimension} of a rank of {len(shape)}")
    wanted = tuple(t.with_shape(()) for t in types for _ in range(2))
    params = tuple(v.type.bare for v in regions[0].params)
    require(params == wanted, "sort.C4", f"the comparator takes {list(params)}, wanted is {list(wanted)}")
    results = tuple(v.type.bare for v in regions[0].results)
    require(results == (TensorType("bool", ()),), "sort.C5", f"the comparator returns {list(results)}, not a bool")
    return tuple(t.bare for t in types)


def _sort_rule(types: Types, results: Types, attrs: SortAttrs) -> Rule:
    shape = types[0].shape
    factors = tuple(Factor(n, "whole" if d == attrs.dimension else "pass") for d, n in enumerate(shape))
    return Rule(factors, (identity_map(len(shape)),) * len(types), (identity_map(len(shape)),) * len(types))


def _sort_execute(machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
    attrs, region = node.attrs, node.regions[0]
    assert isinstance(attrs, SortAttrs)
    if not arguments[0] or arguments[0][0].size == 0:
        return arguments
    keys = comparator_keys(region)
    if keys is None:
        orders = [_by_comparison(machine, region, xs, attrs.dimension) for xs in zip(*arguments, strict=True)]
    else:
        done = _directly(keys, arguments, attrs.dimension)
        if done is not None:
            return done
        orders = _by_keys(machine, keys, arguments, attrs.dimension)
    return [
        [np.take_along_axis(x, order, axis=attrs.dimension) for x, order in zip(xs, orders, strict=True)]
        for xs in arguments
    ]


def _sort_order(node: Node) -> int | None:
    """The dimension, if NumPy cannot sort by keys."""
    assert isinstance(node.attrs, SortAttrs)
    return node.attrs.dimension if comparator_keys(node.regions[0]) is None else None


def _directly(keys: Keys, arguments: Sequence[Shards], dim: int) -> Sequence[Shards] | None:
    """Sorting one operand by itself needs no order, if equal elements are alike in every bit."""
    if len(arguments) > 1 or keys.direct is None:
        return None
    (key,) = keys.order
    if not all(x.dtype.kind in "biuf" and (key.total or kernels.plain(x)) for x in arguments[0]):
        return None
    codes = [np.sort(kernels.order_codes(x, True, key.descending), axis=dim) for x in arguments[0]]
    return [[kernels.from_codes(c, x, key.descending) for c, x in zip(codes, arguments[0], strict=True)]]


def _by_keys(machine: Machine, keys: Keys, arguments: Sequence[Shards], dim: int) -> list[Array]:
    shape = arguments[0][0].shape
    columns = machine.run(keys.region, [xs for xs in arguments for _ in range(2)])
    codes = [
        [kernels.order_codes(np.broadcast_to(x, shape), key.total, key.descending) for x in xs]
        for xs, key in zip(columns, keys.order, strict=True)
    ]
    return [kernels.argsort(each, dim) for each in zip(*codes, strict=True)]


def _by_comparison(machine: Machine, region: Region, arrays: Sequence[Array], dim: int) -> Array:
    """Any comparator, on whole arrays at a time."""

    def before(left: list[Array], right: list[Array]) -> Array:
        given = [[x] for pair in zip(left, right, strict=True) for x in pair]
        return np.broadcast_to(machine.run(region, given)[0][0], left[0].shape)

    rows = [np.moveaxis(x, dim, 0) for x in arrays]
    return np.moveaxis(kernels.network_order(rows, before, rows[0].shape), 0, dim)


def _sort_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    attrs = ctx.node.attrs
    assert isinstance(attrs, SortAttrs)
    return SORT.emit(ctx.builder, operands, attrs, (scalar_region(ctx.node.regions[0]),))


def _sort_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """Each cotangent goes back to where its element came from: sort the places along, then gather by their inverse."""
    if all(ct is None for ct in cotangents):
        return [None] * len(cotangents)
    attrs, b = node.attrs, gradient.builder
    assert isinstance(attrs, SortAttrs)
    places = IOTA(b, shape=ResultShape(node.operands[0].type.shape), dtype=_I32, dimension=attrs.dimension)
    region = node.regions[0]
    extra = (Value(TensorType("i32", ())), Value(TensorType("i32", ())))
    longer = scalar_region(Region((*region.params, *extra), region.nodes, region.results))
    order = SORT.emit(b, (*node.operands, places), attrs, (longer,))[-1]
    inverse = SORT.emit(b, (order, places), SortAttrs(attrs.dimension), (ascending((_I32, _I32)),))[1]
    return [None if ct is None else take_along(b, ct, inverse, attrs.dimension) for ct in cotangents]


def ascending(dtypes: Sequence[Any], descending: bool = False, total: bool = False) -> Region:
    """The comparator by which operands of these dtypes are sorted by the first, smallest first."""
    b = Builder()
    params = [b.param(TensorType(dtype, ())) for dtype in dtypes for _ in range(2)]
    kind = "TOTALORDER" if total and is_float(params[0].type.dtype) else ""
    direction = "GT" if descending else "LT"
    return b.region([COMPARE(b, params[0], params[1], direction=direction, compare_type=kind)])


def take_along(builder: Builder, x: Value, indices: Value, dim: int) -> Value:
    """Along a dimension the elements at indices of their own for each place of the others (take_along_axis)."""
    rank = x.type.rank
    others = tuple(d for d in range(rank) if d != dim)
    return GATHER(
        builder,
        x,
        indices,
        offset_dims=(),
        collapsed_slice_dims=(dim,),
        operand_batching_dims=others,
        indices_batching_dims=others,
        start_index_map=(dim,),
        index_vector_dim=rank,
        slice_sizes=(1,) * rank,
    )


_KEY_VALUE = "(%a: f32[], %b: f32[], %i: i32[], %j: i32[])"
SORT = OpDef(
    "sort",
    SortAttrs,
    _sort_infer,
    rule=_sort_rule,
    execute=_sort_execute,
    localize=_sort_localize,
    order=_sort_order,
    vjp=_sort_vjp,
    examples=(
        "sort(f32[5, 6]) dimension=1 (%a: f32[], %b: f32[]) { %lt = compare(%a, %b) direction=LT : bool[] return %lt }",
        "sort(i32[7, 4]) dimension=0 is_stable=true "
        "(%a: i32[], %b: i32[]) { %gt = compare(%a, %b) direction=GT : bool[] return %gt }",
        "sort(bf16[4, 7]) dimension=1 "
        "(%a: bf16[], %b: bf16[]) { %lt = compare(%b, %a) direction=GT compare_type=TOTALORDER : bool[] return %lt }",
        f"sort(f32[4, 3, 5], i32[4, 3, 5]) dimension=2 is_stable=true {_KEY_VALUE} "
        "{ %lt = compare(%a, %b) direction=LT : bool[] return %lt }",
        f"sort(f32[6, 5], i32[6, 5]) dimension=0 {_KEY_VALUE} {{ "
        "%lt = compare(%i, %j) direction=LT : bool[] "
        "%eq = compare(%i, %j) direction=EQ : bool[] "
        "%gt = compare(%a, %b) direction=GT : bool[] "
        "%both = and(%eq, %gt) : bool[] "
        "%any = or(%lt, %both) : bool[] return %any }",
        "sort(f32[7, 5]) dimension=0 (%a: f32[], %b: f32[]) { "
        "%s = add(%a, %b) : f32[] %d = subtract(%a, %b) : f32[] %p = multiply(%s, %d) : f32[] "
        "%zero = constant() value=dense<0.0 : f32[]> : f32[] "
        "%lt = compare(%p, %zero) direction=LT : bool[] return %lt }",
    ),
    doc="Sorts along a dimension by a comparator of (left0, right0, left1, ...); equal elements keep their order.",
)


# -- top_k -----------------------------------------------------------------------------------------------------------


def _top_k_infer(types: Types, attrs: TopKAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: real numbers. C2: k of the last dimension's elements."""
    require_count("top_k", types, 1)
    require_kind("top_k", "C1", types[0], "biuf")
    x = types[0].bare
    require(x.rank > 0 and 0 <= attrs.k <= x.shape[-1], "top_k.C2", f"the {attrs.k} largest in the rows of {x.text()}")
    shape = (*x.shape[:-1], attrs.k)
    return x.with_shape(shape), TensorType(_I32, shape)


def _top_k_rule(types: Types, results: Types, attrs: TopKAttrs) -> Rule:
    *batch, n = types[0].shape
    factors = (*map(Factor, batch), Factor(n, "select"), Factor(attrs.k, "whole"))
    lead = identity_map(len(batch))
    result = (*lead, (len(batch) + 1,))
    return Rule(factors, ((*lead, (len(batch),)),), (result, result))


def _top_k_kernel(attrs: TopKAttrs, x: Array) -> tuple[Array, Array]:
    return kernels.top_k(x, attrs.k)


def _top_k_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """Each device picks among its own, all pick among the picks; those stand in order, so ties go to the first."""
    attrs, b = ctx.node.attrs, ctx.builder
    assert isinstance(attrs, TopKAttrs)
    dim = operands[0].type.rank - 1
    axes = ctx.axes_of(dim)
    if not axes:
        return TOP_K.emit(b, operands, attrs)
    lowest = CONSTANT(b, value=Dense(_lowest(operands[0].type)))
    masked = ctx.mask(operands[0], dim, dim, lowest)
    local = TOP_K.emit(b, (masked,), TopKAttrs(min(attrs.k, ctx.chunk(dim))))
    offset = BROADCAST_IN_DIM(b, ctx.offset(dim), shape=ResultShape(local[1].type.shape), dims=())
    picks = [ctx.all_gather(v, dim, axes) for v in (local[0], ADD(b, local[1], offset))]
    values, places = TOP_K.emit(b, (picks[0],), attrs)
    return values, take_along(b, picks[1], places, dim)


def _lowest(type_: TensorType) -> Array:
    """What no element is below: of floats the NaN with all bits set."""
    if is_float(type_.dtype):
        return np.full((), -1, f"i{type_.dtype.itemsize}").view(type_.dtype)
    return np.array(limits(type_.dtype)[0], type_.dtype)


def _top_k_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The cotangents go back to the places that were picked."""
    ct, (x,) = cotangents[0], node.operands
    if ct is None or not differentiable(x.type):
        return [None]
    batch = tuple(range(x.type.rank - 1))
    zeros = gradient.zeros(x.type.bare)
    back = SCATTER(
        gradient.builder,
        zeros,
        node.results[1],
        ct,
        update_window_dims=(),
        inserted_window_dims=(x.type.rank - 1,),
        input_batching_dims=batch,
        scatter_indices_batching_dims=batch,
        scatter_dims_to_operand_dims=(x.type.rank - 1,),
        index_vector_dim=x.type.rank,
        monoid="add",
    )
    return [back]


TOP_K = OpDef(
    "top_k",
    TopKAttrs,
    _top_k_infer,
    rule=_top_k_rule,
    kernel=_top_k_kernel,
    localize=_top_k_localize,
    vjp=_top_k_vjp,
    examples=(
        "top_k(f32[5, 9]) k=4",
        "top_k(i8[4, 3, 7]) k=7",
        "top_k(bf16[11]) k=2",
        "top_k(f64[4, 6]) k=1",
        "top_k(u32[6]) k=5",
    ),
    doc="The k largest elements of each row, largest first, and their places; of equal ones the first. NaN is largest.",
)

FAMILY: tuple[OpDef[Any], ...] = (SORT, TOP_K)
