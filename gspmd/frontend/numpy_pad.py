"""Around an array: `pad` in NumPy's modes, and known elements along a dimension as slices, which become halos.

Where the elements that go around are copies of others, the padded indices say which: runs of them, up, down or of one
index, become slices, reversed slices and broadcasts, one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gspmd.frontend.numpy_core import broadcast_to, cast_to, constant, lift
from gspmd.frontend.numpy_reduce import max, mean, min
from gspmd.frontend.numpy_shape import concatenate, flip, pad_with, slice_dim
from gspmd.frontend.numpy_special import round
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ops.indexing import GATHER

# More runs than this are gathered.
_MOST_RUNS = 16
_COPIES = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS = {"maximum": max, "mean": mean, "minimum": min}
Widths = Sequence[tuple[int, int]]


def pad(x: ArrayLike, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tracer:
    """Elements around the array: one width, (before, after), or such a pair for each dimension.

    Modes: `constant`, `empty`, `edge`, `reflect`, `symmetric`, `wrap`, `maximum`, `mean`, `minimum`.
    """
    lifted = lift(x)
    widths = [(int(low), int(high)) for low, high in np.broadcast_to(np.asarray(pad_width), (lifted.ndim, 2))]
    if mode in ("constant", "empty"):
        return _constant(lifted, widths, constant_values)
    if mode not in (*_COPIES, *_STATISTICS):
        raise trace_error(
            f"pad cannot do mode {mode!r}",
            rule="pad.C0",
            fix=f"use one of constant, empty, {', '.join((*_COPIES, *_STATISTICS))}",
        )
    for d, (low, high) in enumerate(widths):
        if low < 0 or high < 0:
            raise trace_error(f"axis {d} cannot be padded by {low} and {high} elements", rule="pad.C1", fix="slice it")
        if (low or high) and not lifted.shape[d]:
            raise trace_error(f"axis {d} has no elements to pad with in mode {mode!r}", rule="pad.C2")
        lifted = _copied(lifted, d, low, high, mode) if mode in _COPIES else _flat(lifted, d, low, high, mode)
    return lifted


def _constant(x: Tracer, widths: Widths, values: Any) -> Tracer:
    """One value all around, or one for each side; a later dimension's fill the corners."""
    low, high = ([w[i] for w in widths] for i in (0, 1))
    if isinstance(values, Tracer) or np.size(values) == 1:
        return pad_with(x, low, high, values if isinstance(values, Tracer) else np.asarray(values).reshape(()))
    for d, sides in enumerate(np.broadcast_to(np.asarray(values), (x.ndim, 2))):
        for i, value in enumerate(sides):
            one = [widths[d][i] if e == d else 0 for e in range(x.ndim)]
            none = [0] * x.ndim
            x = pad_with(x, *((one, none) if i == 0 else (none, one)), value)
    return x


def _copied(x: Tracer, dim: int, low: int, high: int, mode: Any) -> Tracer:
    return elements(x, dim, np.pad(np.arange(x.shape[dim]), (low, high), mode=mode).tolist())


def _flat(x: Tracer, dim: int, low: int, high: int, mode: str) -> Tracer:
    """What the elements along a dimension come to, on both of its sides."""
    found = _STATISTICS[mode](x, axis=dim, keepdims=True)
    value = cast_to(round(found) if x.dtype.kind in "iu" else found, x.dtype)
    wide = [broadcast_to(value, [n if d == dim else m for d, m in enumerate(x.shape)]) for n in (low, high)]
    return concatenate([wide[0], x, wide[1]], dim)


def elements(x: Tracer, dim: int, indices: Sequence[int]) -> Tracer:
    """The elements at known indices of a dimension, each in its range."""
    found = list(_runs(indices))
    if len(found) > _MOST_RUNS:
        return _gathered(x, dim, indices)
    if not found:
        return slice_dim(x, dim, 0, 0)
    return concatenate([_run(x, dim, run) for run in found], dim)


def _runs(indices: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """First index, step (1, -1, or 0 for one index again and again) and length of each run."""
    at = 0
    while at < len(indices):
        step = indices[at + 1] - indices[at] if at + 1 < len(indices) else 1
        end = at + 1
        while step in (-1, 0, 1) and end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        yield indices[at], step, end - at
        at = end


def _run(x: Tracer, dim: int, run: tuple[int, int, int]) -> Tracer:
    first, step, length = run
    if length == 1 or step == 0:
        one = slice_dim(x, dim, first, first + 1)
        return broadcast_to(one, [length if d == dim else n for d, n in enumerate(x.shape)])
    if step == 1:
        return slice_dim(x, dim, first, first + length)
    return flip(slice_dim(x, dim, first - length + 1, first + 1), dim)


def _gathered(x: Tracer, dim: int, indices: Sequence[int]) -> Tracer:
    return emit(
        GATHER,
        x,
        constant(np.array(indices, np.int32)),
        offset_dims=tuple(d for d in range(x.ndim) if d != dim),
        collapsed_slice_dims=(dim,),
        operand_batching_dims=(),
        indices_batching_dims=(),
        start_index_map=(dim,),
        index_vector_dim=1,
        slice_sizes=tuple(1 if d == dim else n for d, n in enumerate(x.shape)),
    )
