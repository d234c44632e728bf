"""gather and scatter: the records (StableHLO's specification; paper section 4.3).

Dimension numbers, type rules and factor rules are in `addressing`, the local bodies in `addressing_local`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gspmd.ir.attrs import Dense, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.errors import TraceError
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import Array, Gradient, Machine, OpDef, Shards
from gspmd.ir.types import TensorType
from gspmd.kernels import indexing as kernels
from gspmd.kernels.finite import limits
from gspmd.kernels.indexing import Addressing, ScatterRounds, ScatterTables
from gspmd.ops.addressing import (
    GatherAttrs,
    ScatterAttrs,
    gather_addressing,
    gather_infer,
    gather_rule,
    others,
    scatter_addressing,
    scatter_infer,
    scatter_rule,
)
from gspmd.ops.addressing_local import gather_localize, scatter_localize
from gspmd.ops.elementwise import AND, CLAMP, COMPARE, SELECT
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE
from gspmd.ops.literal import CONSTANT, IOTA, full
from gspmd.ops.reduce import CUSTOM, REDUCE


def _gather_kernel(attrs: GatherAttrs, x: Array, indices: Array) -> Array:
    return kernels.gather(x, indices, gather_addressing(attrs, x.ndim), attrs.offset_dims)


def _scatter_kernel(attrs: ScatterAttrs, x: Array, indices: Array, updates: Array) -> Array:
    how = scatter_addressing(attrs, x.ndim, updates.shape)
    return kernels.scatter(x, indices, updates, how, attrs.update_window_dims, attrs.monoid)


def _scatter_updates(attrs: ScatterAttrs, arrays: Sequence[Array]) -> ScatterTables:
    n = len(arrays) // 2
    how = scatter_addressing(attrs, arrays[0].ndim, arrays[n + 1].shape)
    return ScatterTables(arrays[:n], arrays[n], arrays[n + 1 :], how, attrs.update_window_dims)


def _scatter_execute(machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
    """By the kernel, or by the region in rounds: as many as the shard with the most updates of one element needs."""
    attrs = node.attrs
    assert isinstance(attrs, ScatterAttrs)
    shards = list(zip(*arguments, strict=True))
    if attrs.monoid != CUSTOM:
        return [[_scatter_kernel(attrs, x, indices, updates) for x, indices, updates in shards]]
    scatters = [ScatterRounds(_scatter_updates(attrs, held)) for held in shards]
    for number in range(max(map(len, scatters), default=0)):
        taken = [s.take(number) for s in scatters]
        combined = machine.run(node.regions[0], [list(column) for column in zip(*taken, strict=True)])
        for scatter, new in zip(scatters, zip(*combined, strict=True), strict=True):
            scatter.put(number, new)
    return [list(column) for column in zip(*(s.results() for s in scatters), strict=True)]


# -- gradients -------------------------------------------------------------------------------------------------------


def _last_starts(b: Builder, indices: Value, how: Addressing, shape: Sequence[int]) -> Value:
    """Of each component of each start index, the last value at which the window is inside; of the indices' shape.

    A dtype that cannot hold that value cannot exceed it either.
    """
    dtype = indices.type.dtype
    most = int(limits(dtype)[1])
    last = np.array([min(shape[d] - how.window[d], most) for d in how.start_map], dtype)
    at = how.index_vector_dim
    whole = ResultShape(indices.type.shape)
    if at == indices.type.rank:
        return BROADCAST_IN_DIM(b, CONSTANT(b, value=Dense(last[0])), shape=whole, dims=())
    return BROADCAST_IN_DIM(b, CONSTANT(b, value=Dense(last)), shape=whole, dims=(at,))


def _zeros(b: Builder, type_: TensorType) -> Value:
    return full(b, 0, type_.dtype, type_.shape)


def _clamped_indices(b: Builder, indices: Value, how: Addressing, shape: Sequence[int]) -> Value:
    return CLAMP(b, _zeros(b, indices.type), indices, _last_starts(b, indices, how, shape))


def _inside(b: Builder, indices: Value, how: Addressing, shape: Sequence[int]) -> Value:
    """Whether each window lies inside an operand of a shape; of the indices' batch shape."""
    low = COMPARE(b, indices, _zeros(b, indices.type), direction="GE")
    ok = AND(b, low, COMPARE(b, indices, _last_starts(b, indices, how, shape), direction="LE"))
    at = how.index_vector_dim
    return ok if at == indices.type.rank else REDUCE(b, ok, dims=(at,), monoid="and")


def _gather_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """Add the cotangent up where it was read, clamped starts and all."""
    (ct,) = cotangents
    if ct is None:
        return [None, None]
    b, (x, indices) = gradient.builder, node.operands
    attrs: Any = node.attrs
    at = _clamped_indices(b, indices, gather_addressing(attrs, x.type.rank), x.type.shape)
    return [SCATTER.emit(b, (gradient.zeros(x.type.bare), at, ct), _transposed_gather(attrs))[0], None]


def _transposed_gather(attrs: GatherAttrs) -> ScatterAttrs:
    return ScatterAttrs(
        attrs.offset_dims,
        attrs.collapsed_slice_dims,
        attrs.operand_batching_dims,
        attrs.indices_batching_dims,
        attrs.start_index_map,
        attrs.index_vector_dim,
        "add",
    )


def _scatter_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """add: the cotangent passes, and windows of it are read back. set: only the winners of each element get theirs."""
    if all(ct is None for ct in cotangents):
        return [None] * len(node.operands)
    attrs: Any = node.attrs
    if attrs.monoid not in ("add", "set"):
        raise TraceError(
            f"no gradient flows through a scatter that combines by {attrs.monoid}",
            loc=node.loc,
            fix="use a scatter that adds or sets, or stop the gradient before it",
        )
    (ct,), b, (x, indices, updates) = cotangents, gradient.builder, node.operands
    assert ct is not None
    how = scatter_addressing(attrs, x.type.rank, updates.type.shape)
    keep = _inside(b, indices, how, x.type.shape)
    batch = others(updates.type.rank, attrs.update_window_dims)
    keep = BROADCAST_IN_DIM(b, keep, shape=ResultShape(updates.type.shape), dims=batch)
    to_x = ct
    if attrs.monoid == "set":
        to_x = node.op.emit(b, (ct, indices, gradient.zeros(updates.type.bare)), attrs)[0]
        keep = AND(b, keep, _winners(b, node, indices))
    read = _read_windows(b, node, ct, indices)
    return [to_x, None, SELECT(b, keep, read, gradient.zeros(updates.type.bare))]


def _read_windows(b: Builder, node: Node, source: Value, indices: Value) -> Value:
    attrs: Any = node.attrs
    how = scatter_addressing(attrs, source.type.rank, node.operands[2].type.shape)
    read = GatherAttrs(
        attrs.update_window_dims,
        attrs.inserted_window_dims,
        attrs.input_batching_dims,
        attrs.scatter_indices_batching_dims,
        attrs.scatter_dims_to_operand_dims,
        attrs.index_vector_dim,
        how.window,
    )
    return GATHER.emit(b, (source, indices), read)[0]


def _winners(b: Builder, node: Node, indices: Value) -> Value:
    """Which update elements are the last of their place: number them, scatter the numbers, read them back."""
    shape, updates = node.operands[0].type.shape, node.operands[2].type
    count = IOTA(b, shape=ResultShape((updates.size,)), dtype=DTYPES["i32"], dimension=0)
    numbers = RESHAPE(b, count, shape=ResultShape(updates.shape))
    placed = node.op.emit(b, (full(b, -1, "i32", shape), indices, numbers), node.attrs)[0]
    return COMPARE(b, _read_windows(b, node, placed, indices), numbers, direction="EQ")


# -- records ---------------------------------------------------------------------------------------------------------

_LOOKUP = "offset_dims=[1] collapsed_slice_dims=[0] operand_batching_dims=[] indices_batching_dims=[]"
_PUT = (
    "inserted_window_dims=[0] input_batching_dims=[] scatter_indices_batching_dims=[] scatter_dims_to_operand_dims=[0]"
)

GATHER: OpDef[GatherAttrs] = OpDef(
    name="gather",
    attrs=GatherAttrs,
    infer=gather_infer,
    rule=gather_rule,
    kernel=_gather_kernel,
    localize=gather_localize,
    vjp=_gather_vjp,
    examples=(
        # rows of a table
        f"gather(f32[12, 5], i32[7]) {_LOOKUP} start_index_map=[0] index_vector_dim=1 slice_sizes=[1, 5]",
        # a window of a batched operand, u8 indices
        "gather(f32[5, 11, 6, 4], u8[2, 5, 7]) offset_dims=[1, 3] collapsed_slice_dims=[2] operand_batching_dims=[0] "
        "indices_batching_dims=[1] start_index_map=[2, 1] index_vector_dim=0 slice_sizes=[1, 3, 1, 4]",
        # kept dims: a window of one element, an unaddressed part, an addressed dim that the window covers
        "gather(i32[9, 8, 6, 5], i64[4, 7, 2]) offset_dims=[0, 2, 3, 4] collapsed_slice_dims=[] "
        "operand_batching_dims=[] indices_batching_dims=[] start_index_map=[0, 2] index_vector_dim=2 "
        "slice_sizes=[1, 3, 6, 5]",
    ),
    doc="Slices of the operand at start indices that are data; starts are moved so that each slice lies inside.",
)

SCATTER: OpDef[ScatterAttrs] = OpDef(
    name="scatter",
    attrs=ScatterAttrs,
    infer=scatter_infer,
    rule=scatter_rule,
    kernel=_scatter_kernel,
    execute=_scatter_execute,
    updates=_scatter_updates,
    localize=scatter_localize,
    vjp=_scatter_vjp,
    examples=(
        # rows of a table
        f"scatter(f32[12, 5], i32[7], f32[7, 5]) update_window_dims=[1] {_PUT} index_vector_dim=1 monoid=add",
        f"scatter(i32[12, 5], i32[7, 1], i32[7, 5]) update_window_dims=[1] {_PUT} index_vector_dim=1 monoid=set",
        f"scatter(f32[6, 8], i64[9, 4], f32[9, 8, 4]) update_window_dims=[1] {_PUT} index_vector_dim=2 monoid=max",
        f"scatter(i32[12], i32[7], i32[7]) update_window_dims=[] {_PUT} index_vector_dim=1 monoid=min",
        f"scatter(bool[12], i32[7], bool[7]) update_window_dims=[] {_PUT} index_vector_dim=1 monoid=or",
        f"scatter(u8[12, 5], i32[7], u8[7, 5]) update_window_dims=[1] {_PUT} index_vector_dim=1 monoid=xor",
        f"scatter(i32[12], i32[7], i32[7]) update_window_dims=[] {_PUT} index_vector_dim=1 monoid=and",
        # by a region: the smallest, and the number of the update that brought it
        f"scatter(f32[12, 5], i32[12, 5], i32[7], f32[7, 5], i32[7, 5]) update_window_dims=[1] {_PUT} "
        "index_vector_dim=1 monoid=custom (%a: f32[], %i: i32[], %b: f32[], %j: i32[]) { "
        "%less = compare(%b, %a) direction=LT : bool[] "
        "%v = select(%less, %b, %a) : f32[] "
        "%k = select(%less, %j, %i) : i32[] "
        "return %v, %k }",
        # windows of a batched operand, u8 indices
        "scatter(f32[5, 11, 6, 4], u8[2, 5, 7], f32[5, 3, 7, 4]) update_window_dims=[1, 3] inserted_window_dims=[2] "
        "input_batching_dims=[0] scatter_indices_batching_dims=[1] scatter_dims_to_operand_dims=[2, 1] "
        "index_vector_dim=0 monoid=mul",
        # kept dims: a window of one element, an unaddressed part, an addressed dim that the window covers
        "scatter(f32[9, 8, 6, 5], i32[4, 7, 2], f32[1, 4, 3, 6, 5, 7]) update_window_dims=[0, 2, 3, 4] "
        "inserted_window_dims=[] input_batching_dims=[] scatter_indices_batching_dims=[] "
        "scatter_dims_to_operand_dims=[0, 2] index_vector_dim=2 monoid=add",
    ),
    doc="The operand with windows at start indices that are data combined with updates, or dropped if not inside.",
)

FAMILY: tuple[OpDef[Any], ...] = (GATHER, SCATTER)
