"""Reading by index: `x[...]` with numbers, slices, None, Ellipsis and index arrays, `take` and its relatives.

Slices and numbers known while tracing become slices. A single traced number becomes a dynamic slice, index arrays
become a gather. Negative indices count from the end; those outside are an error if known and are clamped if not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gspmd.frontend.index_parse import ArrayItem, IndexPlan, parse_index
from gspmd.frontend.numpy_core import broadcast_shapes, broadcast_to, cast_to, constant, full_of, lift, normal_axis
from gspmd.frontend.numpy_creation import one_hot
from gspmd.frontend.numpy_math import where
from gspmd.frontend.numpy_shape import concatenate, expand_dims, ravel, reshape
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.attrs import ResultShape
from gspmd.ir.dtypes import DTYPES, dtype_kind, is_integer
from gspmd.ops.indexing import GATHER
from gspmd.ops.slicing import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, REVERSE, SLICE

__all__ = ["dynamic_slice", "dynamic_update_slice", "getitem", "one_hot", "take", "take_along_axis"]

_I32 = DTYPES["i32"]


def getitem(x: Tracer, index: Any) -> Tracer:
    """x[index], by NumPy's rules."""
    plan = parse_index(x.shape, index)
    view = cut(x, plan)
    if plan.arrays:
        found = read_block(view, plan) if plan.scalar else _gather(view, plan)
    else:
        found = view
    return reshape(found, plan.result_shape)


def cut(x: Tracer, plan: IndexPlan) -> Tracer:
    """What the slices and known numbers of an index leave of an array, all of its dimensions kept."""
    ranges = plan.ranges
    lows = tuple(min(r[0], r[-1]) if len(r) else 0 for r in ranges)
    highs = tuple(max(r[0], r[-1]) + 1 if len(r) else 0 for r in ranges)
    strides = tuple(abs(r.step) if len(r) > 1 else 1 for r in ranges)
    if lows != (0,) * x.ndim or highs != x.shape or any(s != 1 for s in strides):
        x = emit(SLICE, x, start=lows, limit=highs, stride=strides)
    turned = tuple(d for d, r in enumerate(ranges) if len(r) > 1 and r.step < 0)
    return emit(REVERSE, x, dims=turned) if turned else x


def index_values(index: Tracer | NDArray[Any], size: int) -> Tracer:
    """The positions in a dimension that an index array means, negative ones counted from the end."""
    if not isinstance(index, Tracer):
        return constant(index.astype(np.int32))
    if dtype_kind(index.dtype) == "uint":
        return index
    wide = cast_to(index, _I32) if index.dtype.itemsize < 4 else index
    return where(wide < 0, wide + size, wide)


def block_starts(x: Tracer, plan: IndexPlan) -> list[Tracer]:
    """Where the block starts that an index with single traced numbers picks."""
    starts = [full_of(0, _I32, ())] * x.ndim
    for item in plan.arrays:
        starts[item.dim] = cast_to(index_values(item.index, x.shape[item.dim]), _I32)
    return starts


def block_sizes(x: Tracer, plan: IndexPlan) -> list[int]:
    """The sizes of the block that an index with single traced numbers picks."""
    picked = {item.dim for item in plan.arrays}
    return [1 if d in picked else n for d, n in enumerate(x.shape)]


def read_block(x: Tracer, plan: IndexPlan) -> Tracer:
    """The block that an index with single traced numbers picks."""
    return emit(DYNAMIC_SLICE, x, *block_starts(x, plan), sizes=ResultShape(block_sizes(x, plan)))


def start_indices(items: Sequence[ArrayItem], shape: Sequence[int]) -> tuple[Tracer, int]:
    """The index arrays as the start indices of a gather or scatter, and which of their dims holds the components."""
    batch = broadcast_shapes(*(item.shape for item in items))
    if all(not isinstance(item.index, Tracer) for item in items):
        known = [np.broadcast_to(cast("Any", item.index), batch) for item in items]
        array = known[0] if len(items) == 1 else np.stack(known, axis=-1)
        return constant(array.astype(np.int32)), len(batch)
    parts = [index_values(item.index, shape[item.dim]) for item in items]
    if len(parts) == 1:
        return parts[0], len(batch)
    columns = [expand_dims(broadcast_to(cast_to(p, _I32), batch), len(batch)) for p in parts]
    return concatenate(columns, len(batch)), len(batch)


def _gather(x: Tracer, plan: IndexPlan) -> Tracer:
    indices, at = start_indices(plan.arrays, x.shape)
    dims = tuple(item.dim for item in plan.arrays)
    batch = plan.batch_shape
    kept = [d for d in range(x.ndim) if d not in dims]
    rank = len(kept) + len(batch)
    block = range(plan.batch_place, plan.batch_place + len(batch))
    return emit(
        GATHER,
        x,
        indices,
        offset_dims=tuple(d for d in range(rank) if d not in block),
        collapsed_slice_dims=tuple(sorted(dims)),
        operand_batching_dims=(),
        indices_batching_dims=(),
        start_index_map=dims,
        index_vector_dim=at,
        slice_sizes=tuple(1 if d in dims else n for d, n in enumerate(x.shape)),
    )


def take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tracer:
    """The elements at indices along an axis (None: in row-major order)."""
    lifted = ravel(x) if axis is None else lift(x)
    d = normal_axis(0 if axis is None else axis, lifted.ndim)
    return getitem(lifted, (slice(None),) * d + (indices if isinstance(indices, Tracer) else np.asarray(indices),))


def along_axis(what: str, x: ArrayLike, indices: ArrayLike, axis: int) -> tuple[Tracer, Tracer, int, tuple[int, ...]]:
    """An array and indices of their own for each place of the dimensions but one: both, that one, and the others."""
    lifted, index = lift(x), lift(indices)
    if index.ndim != lifted.ndim or not is_integer(index.dtype):
        raise trace_error(
            f"{what} takes integers of rank {lifted.ndim}, got {index.type.bare.text()}",
            rule=f"{what}.C1",
        )
    d = normal_axis(axis, lifted.ndim)
    return lifted, index, d, tuple(e for e in range(lifted.ndim) if e != d)


def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int = -1) -> Tracer:
    """Along an axis the elements at indices of their own for each place of the other dimensions."""
    lifted, index, d, others = along_axis("take_along_axis", x, indices, axis)
    common = broadcast_shapes(tuple(lifted.shape[e] for e in others), tuple(index.shape[e] for e in others))
    whole = dict(zip(others, common, strict=True))
    lifted = broadcast_to(lifted, [whole.get(e, lifted.shape[d]) for e in range(lifted.ndim)])
    index = broadcast_to(index, [whole.get(e, index.shape[d]) for e in range(lifted.ndim)])
    return emit(
        GATHER,
        lifted,
        index_values(index, lifted.shape[d]),
        offset_dims=(),
        collapsed_slice_dims=(d,),
        operand_batching_dims=others,
        indices_batching_dims=others,
        start_index_map=(d,),
        index_vector_dim=index.ndim,
        slice_sizes=(1,) * lifted.ndim,
    )


def dynamic_slice(x: ArrayLike, starts: Sequence[ArrayLike], sizes: Sequence[int]) -> Tracer:
    """A block of known sizes at a place that may be traced; a block that would stick out is moved inside."""
    lifted = lift(x)
    return emit(DYNAMIC_SLICE, lifted, *_starts(lifted, starts), sizes=ResultShape(int(n) for n in sizes))


def dynamic_update_slice(x: ArrayLike, update: ArrayLike, starts: Sequence[ArrayLike]) -> Tracer:
    """A copy of x with a block replaced at a place that may be traced; one that would stick out is moved inside."""
    lifted = lift(x)
    return emit(DYNAMIC_UPDATE_SLICE, lifted, cast_to(update, lifted.dtype), *_starts(lifted, starts))


def _starts(x: Tracer, starts: Sequence[ArrayLike]) -> list[Tracer]:
    if len(starts) != x.ndim:
        raise trace_error(f"{len(starts)} starts for an array of {x.ndim} dimensions", rule="dynamic_slice.C1")
    return [cast_to(s, _I32) for s in starts]
