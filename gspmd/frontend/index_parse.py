"""What an index means, before any op is emitted: NumPy's indexing rules as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gspmd.frontend.numpy_core import broadcast_shapes
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import Tracer
from gspmd.ir.dtypes import dtype_kind, is_integer


@dataclass(frozen=True, slots=True)
class ArrayItem:
    """An index array, known (then without negative numbers) or traced, and the dimension that it indexes."""

    dim: int
    index: Tracer | NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the index array."""
        return self.index.shape


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """An index, taken apart.

    ranges: of each dimension the positions that slices and known numbers leave. arrays: index arrays on dimensions
    whose range is whole. batch_place: where, among the dimensions that are left, those of the index arrays go.
    result_shape: of the whole, numbers' dimensions gone and new ones in place.
    """

    ranges: tuple[range, ...]
    arrays: tuple[ArrayItem, ...]
    batch_shape: tuple[int, ...]
    batch_place: int
    result_shape: tuple[int, ...]

    @property
    def scalar(self) -> bool:
        """Whether all index arrays are single numbers."""
        return all(item.shape == () for item in self.arrays)


def parse_index(shape: tuple[int, ...], index: Any) -> IndexPlan:
    """Take an index into an array of a shape apart; raises TraceError for what is out of range or not possible."""
    items = _expanded(_items(index), shape)
    advanced = any(not _is_basic(item) for item in items)
    ranges: list[range] = []
    arrays: list[ArrayItem] = []
    # What each item leaves in the result: () nothing, (n,) a dimension, None the index arrays.
    left: list[tuple[int, ...] | None] = []
    for item in items:
        dim = len(ranges)
        if item is None:
            left.append((1,))
        elif isinstance(item, slice):
            picked = range(shape[dim])[_known_slice(cast("Any", item))]
            ranges.append(picked)
            left.append((len(picked),))
        elif _is_number(item) and not advanced:
            at = _checked(int(item), shape[dim], dim)
            ranges.append(range(at, at + 1))
            left.append(())
        else:
            arrays.append(ArrayItem(dim, _index_array(item, shape[dim], dim)))
            ranges.append(range(shape[dim]))
            left.append(None)
    return _planned(ranges, arrays, left)


def _planned(ranges: list[range], arrays: list[ArrayItem], left: list[tuple[int, ...] | None]) -> IndexPlan:
    batch = broadcast_shapes((), *(item.shape for item in arrays))
    places = [k for k, item in enumerate(left) if item is None]
    # NumPy: neighbouring index arrays put their dimensions in their place, separated ones in front.
    together = not places or places[-1] - places[0] + 1 == len(places)
    first = places[0] if places and together else 0
    dims = {item.dim for item in arrays}
    kept_before = 0
    if places and together:
        kept_before = sum(1 for d in range(len(ranges)) if d not in dims and d < arrays[0].dim)
    head = [n for item in left[:first] if item is not None for n in item]
    tail = [n for item in left[first:] if item is not None for n in item]
    return IndexPlan(tuple(ranges), tuple(arrays), batch, kept_before, (*head, *batch, *tail))


def _items(index: Any) -> list[Any]:
    return list(cast("tuple[Any, ...]", index)) if isinstance(index, tuple) else [index]


def _expanded(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """One item for each dimension, besides None; Ellipsis and what is left out become whole slices."""
    items = [part for item in items for part in _mask_parts(item)]
    used = sum(1 for item in items if item is not None and item is not Ellipsis)
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if used > len(shape) or len(dots) > 1:
        raise trace_error(
            f"an index with {used} entries and {len(dots)} ellipses for an array of {len(shape)} dimensions",
            rule="index.C1",
            fix="give at most one index a dimension, and at most one ellipsis",
        )
    at = dots[0] if dots else len(items)
    return [*items[:at], *[slice(None)] * (len(shape) - used), *items[at + 1 :]]


def _mask_parts(item: Any) -> Sequence[Any]:
    """A known boolean mask as the positions where it holds; other items as they are."""
    if isinstance(item, Tracer):
        if dtype_kind(item.dtype) == "bool":
            raise trace_error(
                "indexing with a traced boolean mask gives a shape that depends on data",
                rule="index.C2",
                fix="use gspmd.numpy.where(mask, x, fill), or x.at[mask].set(number) to replace",
            )
        return (item,)
    if isinstance(item, (bool, np.bool_)):
        raise trace_error("a single bool is no index", rule="index.C3", fix="use None to add a dimension")
    if isinstance(item, (list, np.ndarray)):
        array = np.asarray(cast("Any", item))
        if array.dtype == np.bool_:
            return array.nonzero()
        return (array.astype(np.int64) if array.size == 0 else array,)
    return (item,)


def _is_number(item: Any) -> bool:
    return isinstance(item, (int, np.integer))


def _is_basic(item: Any) -> bool:
    return item is None or isinstance(item, slice) or _is_number(item)


def _known_slice(item: slice) -> slice:
    parts = (item.start, item.stop, item.step)
    if any(isinstance(p, Tracer) for p in parts):
        raise trace_error(
            "a slice with a traced bound has a length that depends on data",
            rule="index.C4",
            fix="use gspmd.numpy.dynamic_slice(x, starts, sizes) with known sizes",
        )
    if item.step == 0:
        raise trace_error("the step of a slice is zero", rule="index.C4")
    return item


def _checked(at: int, size: int, dim: int) -> int:
    if not -size <= at < size:
        raise trace_error(f"index {at} is out of range for dimension {dim} of size {size}", rule="index.C5")
    return at % size


def _index_array(item: Any, size: int, dim: int) -> Tracer | NDArray[Any]:
    if isinstance(item, Tracer):
        if not is_integer(item.dtype):
            raise trace_error(
                f"an index of type {item.type.bare.text()}: indices are integers",
                rule="index.C6",
                fix="convert it with .astype('i32')",
            )
        return item
    array = np.asarray(item)
    if array.dtype.kind not in "iu":
        raise trace_error(
            f"{type(item).__name__} {item!r} is no index",
            rule="index.C6",
            fix="use numbers, slices, None, ... or arrays of integers",
        )
    if array.size:
        _checked(int(array.min()), size, dim)
        _checked(int(array.max()), size, dim)
    return np.where(array < 0, array + size, array)
