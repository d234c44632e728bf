"""gather and scatter with all of StableHLO's dimension numbers, as one row lookup or one row update.

The operand's dimensions are brought into the order *head* (addressed, batching, partly windowed), *tail* (copied
whole), so that the operand is a table of rows and each slice is a set of row numbers: no loop over elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.kernels.finite import is_narrow, widened
from gspmd.kernels.monoids import combine, update

Array = NDArray[Any]
Ints = tuple[int, ...]


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
    return _columns(indices.astype(np.int64), index_vector_dim)


def _columns(indices: Array, index_vector_dim: int) -> list[Array]:
    return [indices] if index_vector_dim == indices.ndim else list(np.moveaxis(indices, index_vector_dim, 0))


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
    terms: list[tuple[Array, int]] = []

    def count_along(axis: int, n: int, stride: int) -> None:
        terms.append((np.arange(n).reshape([-1 if i == axis else 1 for i in range(rank)]), stride))

    stride = 1
    for d in reversed(head):
        if d in how.batching:
            axis = how.indices_batching[how.batching.index(d)]
            count_along(axis - (axis > how.index_vector_dim), shape[d], stride)
        elif d in starts:
            terms.append((starts[d].reshape(batch + (1,) * len(partial)), stride))
        if d in partial:
            count_along(len(batch) + partial.index(d), how.window[d], stride)
        stride *= shape[d]
    # The small ones first, so that few of the sums are of the whole size; those are in place, and without conversions.
    rows = np.zeros((1,) * rank, np.int64)
    for at, stride in sorted(terms, key=lambda term: term[0].size):
        new = at.astype(np.int64)
        if stride != 1:
            new *= stride
        if np.broadcast_shapes(new.shape, rows.shape) == new.shape:
            new += rows
            rows = new
        else:
            rows = rows + new
    return np.broadcast_to(rows, batch + tuple(how.window[d] for d in partial))


def gather(operand: Array, indices: Array, how: Addressing, offset_dims: Ints) -> Array:
    """Slices of the operand at start indices, which are clamped so that each slice lies inside."""
    shape = operand.shape
    batch = _batch_shape(indices, how.index_vector_dim)
    # Indices of 32 bits are clamped as they are: half of the bytes.
    narrow = indices.dtype == np.int32 and max(shape, default=0) <= np.iinfo(np.int32).max
    columns = _columns(indices, how.index_vector_dim) if narrow else index_columns(indices, how.index_vector_dim)
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
    (table,), rows, (values,), order = _tables([operand], indices, [updates], how, window_dims)
    _update_rows(table, rows, values, monoid)
    return _untabled(table, operand.shape, order)


class ScatterTables:
    """A scatter of several operands of one shape as rows of values that go to rows of tables, in their order."""

    __slots__ = ("_order", "_shape", "rows", "tables", "values")

    def __init__(
        self, operands: Sequence[Array], indices: Array, updates: Sequence[Array], how: Addressing, window_dims: Ints
    ) -> None:
        self._shape = operands[0].shape
        self.tables, self.rows, self.values, self._order = _tables(operands, indices, updates, how, window_dims)

    def results(self) -> list[Array]:
        """The operands as they are now."""
        return [_untabled(t, self._shape, self._order) for t in self.tables]


class ScatterRounds:
    """A scatter in rounds: each takes the next update of every element that has one.

    What becomes of (all held, all new) elements is the caller's affair, who need not know an associative function.
    """

    __slots__ = ("_held", "_rounds")

    def __init__(self, held: ScatterTables) -> None:
        self._held = held
        order, rank = _ranked(held.rows, len(held.tables[0]))
        self._rounds = np.split(_by_rank(order, rank), np.cumsum(np.bincount(rank))[:-1]) if len(order) else []

    def __len__(self) -> int:
        return len(self._rounds)

    def take(self, number: int) -> list[Array]:
        """The elements held and the new ones of a round; none of a round beyond the last."""
        chosen, held = self._chosen(number), self._held
        rows = held.rows[chosen]
        return [*(t[rows] for t in held.tables), *(v[chosen] for v in held.values)]

    def put(self, number: int, combined: Sequence[Array]) -> None:
        """What the elements of a round become."""
        for table, new in zip(self._held.tables, combined, strict=True):
            table[self._held.rows[self._chosen(number)]] = new

    def results(self) -> list[Array]:
        """The operands as they are now."""
        return self._held.results()

    def _chosen(self, number: int) -> Array:
        return self._rounds[number] if number < len(self._rounds) else np.zeros(0, np.int64)


def _tables(
    operands: Sequence[Array], indices: Array, updates: Sequence[Array], how: Addressing, window_dims: Ints
) -> tuple[list[Array], Array, list[Array], Ints]:
    """The operands as new tables of rows; the rows that updates inside go to, and those updates; the dims' order."""
    shape = operands[0].shape
    batch = _batch_shape(indices, how.index_vector_dim)
    starts = dict(zip(how.start_map, index_columns(indices, how.index_vector_dim), strict=True))
    head, tail = _split(how, shape)
    partial = tuple(d for d in head if d in how.kept)
    rows = _row_numbers(how, shape, head, starts, batch)
    order = [window_dims[how.kept.index(d)] for d in partial + tail]
    width, height = prod(shape[d] for d in tail), prod(shape[d] for d in head)
    tables = [np.array(x.transpose(head + tail), order="C").reshape(height, width) for x in operands]
    inside = np.ones(batch, np.bool_)
    for d, start in starts.items():
        inside &= (start >= 0) & (start <= shape[d] - how.window[d])
    moved = [np.moveaxis(u, order, range(len(batch), u.ndim)) if order else u for u in updates]
    values = [u.reshape(rows.size, width) for u in moved]
    flat = rows.reshape(-1)
    if not inside.all():
        keep = np.repeat(inside.reshape(-1), prod(rows.shape[len(batch) :]))
        flat, values = flat[keep], [v[keep] for v in values]
    return tables, flat, values, head + tail


def _untabled(table: Array, shape: Ints, order: Ints) -> Array:
    """The array whose dims, in an order, a table holds."""
    back = np.argsort(order) if shape else ()
    return np.asarray(table.reshape([shape[d] for d in order]).transpose(back), order="C")


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
        update(monoid, table.reshape(-1), rows, values.reshape(-1))
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
    by_rank = _by_rank(order, rank)
    ends = np.cumsum(np.bincount(rank))
    for start, end in zip((0, *ends[:-1]), ends, strict=True):
        chosen = by_rank[start:end]
        at = rows[chosen]
        table[at] = fold(table[at], np.take(values, chosen, axis=0))


def _ranked(rows: Array, count: int) -> tuple[Array, Array]:
    """An order that brings equal numbers (below `count`) together, first ones first; ranks among equals, in it."""
    place = np.arange(len(rows))
    if count <= 1 << 16:  # NumPy sorts 16 bits by radix
        order = np.argsort(rows.astype(np.uint16), kind="stable")
        ordered = rows[order]
    elif max(count, len(rows)) < 1 << 32:  # numbers above places differ, and the fastest sort will do
        tagged = np.sort(rows.astype(np.uint64) << np.uint64(32) | place.astype(np.uint64))
        order, ordered = (tagged & np.uint64(0xFFFFFFFF)).astype(np.int64), (tagged >> np.uint64(32)).astype(np.int64)
    else:
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
    is_first = np.ones(len(rows), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return order, place - np.maximum.accumulate(np.where(is_first, place, 0))


def _by_rank(order: Array, rank: Array) -> Array:
    """An order sorted by the ranks that belong to it, in itself within one rank; 16 bits are sorted by radix."""
    keys = rank.astype(np.uint16) if not rank.size or rank.max() < 1 << 16 else rank
    return order[np.argsort(keys, kind="stable")]
