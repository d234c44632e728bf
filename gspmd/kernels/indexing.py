"""gather and scatter with all of StableHLO's dimension numbers, as one row lookup or one row update.

The operand's dimensions are brought into the order *head* (addressed, batching, partly windowed), *tail* (copied
whole), so that the operand is a table of rows and each slice is a set of row numbers: no loop over elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.kernels.finite import is_narrow, widened
from gspmd.kernels.monoids import combine

Array = NDArray[Any]
Ints = tuple[int, ...]

_UFUNCS: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True, slots=True)
class Addressing:
    """What gather and scatter share: how start indices address the operand.

    `window` has one size per operand dimension (1 for a collapsed, inserted or batching one); `kept` are the operand
    dimensions that windows keep, in order; `start_map[k]` is the operand dimension that component k of a start index
    addresses; `batching[k]` goes with dimension `indices_batching[k]` of the indices.
    """

    window: Ints
    kept: Ints
    start_map: Ints
    index_vector_dim: int
    batching: Ints = ()
    indices_batching: Ints = ()


def index_columns(indices: Array, index_vector_dim: int) -> list[Array]:
    """The components of the start indices, each of the indices' batch shape, as i64 (a u64 beyond i64 saturates)."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    indices = indices.astype(np.int64)
    if index_vector_dim == indices.ndim:
        return [indices]
    return list(np.moveaxis(indices, index_vector_dim, 0))


def _batch_shape(indices: Array, index_vector_dim: int) -> Ints:
    return tuple(n for d, n in enumerate(indices.shape) if d != index_vector_dim)


def _split(how: Addressing, shape: Ints) -> tuple[Ints, Ints]:
    """The operand's head and tail dimensions."""
    whole = {d for d in how.kept if how.window[d] == shape[d]}
    head = tuple(d for d in range(len(shape)) if d not in whole)
    return head, tuple(sorted(whole))


def _row_numbers(how: Addressing, shape: Ints, head: Ints, starts: dict[int, Array], batch: Ints) -> Array:
    """Row numbers in the operand's table, of the batch shape followed by the sizes of the partly windowed dims."""
    partial = [d for d in head if d in how.kept]
    rank = len(batch) + len(partial)
    rows = np.zeros((1,) * rank, np.int64)
    for d in head:
        at: Array = np.zeros((1,) * rank, np.int64)
        if d in how.batching:
            axis = how.indices_batching[how.batching.index(d)]
            axis -= axis > how.index_vector_dim
            at = at + np.arange(shape[d]).reshape([-1 if i == axis else 1 for i in range(rank)])
        elif d in starts:
            at = starts[d].reshape(batch + (1,) * len(partial))
        if d in partial:
            at = at + np.arange(how.window[d]).reshape(
                [-1 if i == len(batch) + partial.index(d) else 1 for i in range(rank)]
            )
        rows = rows * shape[d] + at
    return np.broadcast_to(rows, batch + tuple(how.window[d] for d in partial))


def gather(operand: Array, indices: Array, how: Addressing, offset_dims: Ints) -> Array:
    """Slices of the operand at start indices, which are clamped so that each slice lies inside."""
    shape = operand.shape
    batch = _batch_shape(indices, how.index_vector_dim)
    columns = index_columns(indices, how.index_vector_dim)
    starts = {d: np.clip(c, 0, shape[d] - how.window[d]) for d, c in zip(how.start_map, columns, strict=True)}
    head, tail = _split(how, shape)
    partial = tuple(d for d in head if d in how.kept)
    if len(head) == 1 and not partial and not how.batching:
        (d,) = head
        at = starts.get(d, np.zeros(batch, np.int64))
        taken = np.take(operand, at, axis=d, mode="clip")  # the slice's dims stand where the operand's did
        taken = np.moveaxis(taken, range(d, d + len(batch)), range(len(batch)))
    else:
        rows = _row_numbers(how, shape, head, starts, batch)
        row = tuple(shape[d] for d in tail)
        table = operand.transpose(head + tail).reshape((prod(shape[d] for d in head), *row))
        taken = np.take(table, rows, axis=0, mode="clip") if table.size else np.empty(rows.shape + row, operand.dtype)
    return np.asarray(_to_result(taken, len(batch), partial + tail, how.kept, offset_dims), order="C")


def _to_result(taken: Array, batch_rank: int, order: Ints, kept: Ints, offset_dims: Ints) -> Array:
    """From batch dims and then window dims in `order` to window dims in `kept`'s order at `offset_dims`."""
    source = [batch_rank + order.index(d) for d in kept]
    return np.moveaxis(taken, source, offset_dims) if source else taken


def scatter(operand: Array, indices: Array, updates: Array, how: Addressing, window_dims: Ints, monoid: str) -> Array:
    """The operand with windows at start indices combined with updates, in the updates' order.

    A window that does not lie inside is dropped whole. `window_dims` are the dimensions of the updates that are window
    dimensions. With monoid "set" the last update of an element wins.
    """
    shape = operand.shape
    batch = _batch_shape(indices, how.index_vector_dim)
    starts = dict(zip(how.start_map, index_columns(indices, how.index_vector_dim), strict=True))
    head, tail = _split(how, shape)
    partial = tuple(d for d in head if d in how.kept)
    rows = _row_numbers(how, shape, head, starts, batch)
    order = [window_dims[how.kept.index(d)] for d in partial + tail]
    moved = np.moveaxis(updates, order, range(len(batch), updates.ndim)) if order else updates
    width = prod(shape[d] for d in tail)
    table = np.array(operand.transpose(head + tail), order="C").reshape(prod(shape[d] for d in head), width)
    inside = np.ones(batch, np.bool_)
    for d, start in starts.items():
        inside &= (start >= 0) & (start <= shape[d] - how.window[d])
    values = moved.reshape(rows.size, width)
    flat = rows.reshape(-1)
    if not inside.all():
        keep = np.repeat(inside.reshape(-1), prod(rows.shape[len(batch) :]))
        flat, values = flat[keep], values[keep]
    _update_rows(table, flat, values, monoid)
    back = np.argsort(head + tail) if shape else ()
    return np.asarray(table.reshape([shape[d] for d in head + tail]).transpose(back), order="C")


def _update_rows(table: Array, rows: Array, values: Array, monoid: str) -> None:
    """Combine each value row into the table's row of its number, in place."""
    if not values.size:
        return
    if monoid == "set":
        last = np.full(len(table), -1, np.int64)
        np.maximum.at(last, rows, np.arange(len(rows)))
        touched = np.flatnonzero(last >= 0) if len(table) <= 4 * len(rows) else np.unique(rows)
        table[touched] = values[last[touched]]
    elif table.shape[1] == 1 and table.dtype.kind in "biufc" and not is_narrow(table.dtype):
        with np.errstate(all="ignore"):
            _UFUNCS[monoid].at(table.reshape(-1), rows, values.reshape(-1))
    elif is_narrow(table.dtype):
        touched, numbers = np.unique(rows, return_inverse=True)
        wide = widened(table[touched])
        _fold_rows(wide, numbers, widened(values), combine(monoid))
        table[touched] = wide.astype(table.dtype)
    else:
        _fold_rows(table, rows, values, combine(monoid))


def _fold_rows(table: Array, rows: Array, values: Array, fold: Callable[[Array, Array], Array]) -> None:
    """Fold value rows into table rows, one round for the first value of each row, one for the second, and so on.

    Where one row has so many values that rounds would be many and small, neighbours are first folded pairwise.
    """
    order, rank = _ranked(rows, len(table))
    limit = min(max(values.size // 8192, 8), 512)
    while rank.max() >= limit:
        odd = (rank & 1).astype(np.bool_)
        right = np.flatnonzero(odd)
        place = (np.cumsum(~odd) - 1)[right - 1]  # of the left neighbours, which have even ranks
        merged = values[order[~odd]]
        merged[place] = fold(merged[place], values[order[right]])
        rows, values, rank = rows[order[~odd]], merged, rank[~odd] >> 1
        order = np.arange(len(rows))
    by_rank = order[np.argsort(rank.astype(np.uint16), kind="stable")]
    ends = np.cumsum(np.bincount(rank))
    for start, end in zip((0, *ends[:-1]), ends, strict=True):
        chosen = by_rank[start:end]
        at = rows[chosen]
        table[at] = fold(table[at], np.take(values, chosen, axis=0))


def _ranked(rows: Array, count: int) -> tuple[Array, Array]:
    """An order that brings equal numbers (below `count`) together, first ones first; ranks among equals, in it."""
    keys = rows.astype(np.uint16) if count <= 1 << 16 else rows  # NumPy sorts 16 bits by radix
    order = np.argsort(keys, kind="stable")
    ordered = rows[order]
    place = np.arange(len(rows))
    is_first = np.ones(len(rows), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return order, place - np.maximum.accumulate(np.where(is_first, place, 0))
