"""Functional updates: `x.at[index].set(y)` and its relatives return a changed copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gspmd.frontend.index_parse import IndexPlan, parse_index
from gspmd.frontend.numpy_core import broadcast_to, cast_to, full_of
from gspmd.frontend.numpy_creation import iota
from gspmd.frontend.numpy_index import block_sizes, block_starts, cut, getitem, read_block, start_indices
from gspmd.frontend.numpy_logic import equal, greater_equal, less_equal, logical_and
from gspmd.frontend.numpy_math import (
    add,
    maximum,
    minimum,
    multiply,
    remainder,
    where,
)
from gspmd.frontend.numpy_shape import pad_with, reshape
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.attrs import ResultShape
from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.ops.elementwise import SELECT
from gspmd.ops.indexing import SCATTER
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.slicing import DYNAMIC_UPDATE_SLICE, REVERSE

# A block of at least this part of the array is written by position: that needs only halos where the array is split.
_LARGE = 8

_COMBINE: dict[str, Callable[[Tracer, Tracer], Tracer]] = {
    "set": lambda old, new: new,
    "add": add,
    "mul": multiply,
    "max": maximum,
    "min": minimum,
}


@dataclass(frozen=True, slots=True)
class At:
    """`x.at`: pick a place by index."""

    array: Tracer

    def __getitem__(self, index: Any) -> Place:
        return Place(self.array, index)


@dataclass(frozen=True, slots=True)
class Place:
    """`x.at[index]`: the elements to be changed."""

    array: Tracer
    index: Any

    def get(self) -> Tracer:
        """The elements themselves."""
        return getitem(self.array, self.index)

    def set(self, values: ArrayLike) -> Tracer:
        """A copy with these elements replaced; of two for one place the last counts."""
        return update(self.array, self.index, values, "set")

    def add(self, values: ArrayLike) -> Tracer:
        """A copy with values added; those for one place add up."""
        return update(self.array, self.index, values, "add")

    def mul(self, values: ArrayLike) -> Tracer:
        """A copy with these elements multiplied."""
        return update(self.array, self.index, values, "mul")

    def multiply(self, values: ArrayLike) -> Tracer:
        """A copy with these elements multiplied."""
        return update(self.array, self.index, values, "mul")

    def max(self, values: ArrayLike) -> Tracer:
        """A copy with these elements raised to values where they are lower."""
        return update(self.array, self.index, values, "max")

    def min(self, values: ArrayLike) -> Tracer:
        """A copy with these elements lowered to values where they are higher."""
        return update(self.array, self.index, values, "min")


def update(x: Tracer, index: Any, values: ArrayLike, monoid: str) -> Tracer:
    """A copy of x with the elements at an index combined with values."""
    if isinstance(index, Tracer) and dtype_kind(index.dtype) == "bool":
        return _masked(x, index, values, monoid)
    plan = parse_index(x.shape, index)
    new = broadcast_to(cast_to(values, x.dtype), plan.result_shape)
    view = cut(x, plan)
    if not plan.arrays:
        block = _COMBINE[monoid](view, reshape(new, view.shape))
    elif plan.scalar:
        old = view if monoid == "set" else read_block(view, plan)
        piece = _COMBINE[monoid](old, reshape(new, block_sizes(view, plan)))
        block = emit(DYNAMIC_UPDATE_SLICE, view, piece, *block_starts(view, plan))
    else:
        block = _scatter(view, plan, new, monoid)
    return _written(x, block, plan)


def _masked(x: Tracer, mask: Tracer, values: ArrayLike, monoid: str) -> Tracer:
    new = cast_to(values, x.dtype)
    if mask.shape != x.shape[: mask.ndim] or new.ndim:
        raise trace_error(
            f"a traced mask {mask.type.bare.text()} with values of shape {list(new.shape)}: how many elements it picks "
            "is only known when the program runs",
            rule="index.C2",
            fix="give a single number, or use gspmd.numpy.where with values of the array's shape",
        )
    wide = reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    return where(wide, _COMBINE[monoid](x, broadcast_to(new, x.shape)), x)


def _scatter(x: Tracer, plan: IndexPlan, new: Tracer, monoid: str) -> Tracer:
    indices, at = start_indices(plan.arrays, x.shape)
    dims = tuple(item.dim for item in plan.arrays)
    batch = plan.batch_shape
    kept = [n for d, n in enumerate(x.shape) if d not in dims]
    place = plan.batch_place
    block = range(place, place + len(batch))
    updates = reshape(new, (*kept[:place], *batch, *kept[place:]))
    return emit(
        SCATTER,
        x,
        indices,
        updates,
        update_window_dims=tuple(d for d in range(updates.ndim) if d not in block),
        inserted_window_dims=tuple(sorted(dims)),
        input_batching_dims=(),
        scatter_indices_batching_dims=(),
        scatter_dims_to_operand_dims=dims,
        index_vector_dim=at,
        monoid=monoid,
    )


def _written(x: Tracer, block: Tracer, plan: IndexPlan) -> Tracer:
    """X with the elements that the plan's ranges pick replaced by a block."""
    ranges = plan.ranges
    if all(r == range(n) for r, n in zip(ranges, x.shape, strict=True)):
        return block
    if 0 in block.shape:
        return x
    if all(r.step == 1 or len(r) == 1 for r in ranges) and _LARGE * block.size < x.size:
        starts = [full_of(r[0], DTYPES["i32"], ()) for r in ranges]
        return emit(DYNAMIC_UPDATE_SLICE, x, block, *starts)
    turned = tuple(d for d, r in enumerate(ranges) if len(r) > 1 and r.step < 0)
    if turned:
        block = emit(REVERSE, block, dims=turned)
    if block.shape == x.shape:
        return block
    low = [min(r[0], r[-1]) for r in ranges]
    high = [n - 1 - max(r[0], r[-1]) for n, r in zip(x.shape, ranges, strict=True)]
    between = [abs(r.step) - 1 if len(r) > 1 else 0 for r in ranges]
    return emit(SELECT, _picked(x.shape, ranges), pad_with(block, low, high, 0, between), x)


def _picked(shape: tuple[int, ...], ranges: Sequence[range]) -> Tracer:
    """Where the elements are that ranges pick, told from positions alone, which every device knows of its shard."""
    picked: Tracer | None = None
    for d, (n, r) in enumerate(zip(shape, ranges, strict=True)):
        if len(r) == n:
            continue
        place = iota((n,), DTYPES["i32"], 0)
        first, step = min(r[0], r[-1]), abs(r.step)
        here = logical_and(greater_equal(place, first), less_equal(place, max(r[0], r[-1])))
        if len(r) > 1 and step > 1:
            here = logical_and(here, equal(remainder(place, step), first % step))
        wide = emit(BROADCAST_IN_DIM, here, shape=ResultShape(shape), dims=(d,))
        picked = wide if picked is None else logical_and(picked, wide)
    assert picked is not None
    return picked
