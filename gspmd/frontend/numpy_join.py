"""Arrays put together and taken apart: stacks, blocks, grids, diagonals, insertions; nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gspmd.frontend.config import canonical, default_float
from gspmd.frontend.numpy_core import broadcast_shapes, broadcast_to, cast_to, common_dtype, full_of, lift, normal_axis
from gspmd.frontend.numpy_creation import asarray, diagonal_mask, iota
from gspmd.frontend.numpy_pad import elements
from gspmd.frontend.numpy_shape import (
    concatenate,
    diagonal,
    expand_dims,
    flip,
    moveaxis,
    pad_with,
    ravel,
    reshape,
    split,
    stack,
    swapaxes,
)
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.attrs import ResultShape
from gspmd.ir.dtypes import as_dtype
from gspmd.ops.elementwise import CONVERT, SELECT
from gspmd.ops.layout import BROADCAST_IN_DIM

Known = NDArray[Any]


# -- dimensions ------------------------------------------------------------------------------------------------------


def atleast_1d(*arrays: ArrayLike) -> Any:
    """The array, a number as an array of one; of several arrays a tuple."""
    return _each(arrays, lambda x: _in_front(x, 1))


def ascontiguousarray(x: ArrayLike, dtype: Any = None) -> Tracer:
    """The array with at least one dimension; how it lies in memory is not for programs to say."""
    return _in_front(asarray(x, dtype), 1)


def atleast_2d(*arrays: ArrayLike) -> Any:
    """The array with new dimensions in front until it has two; of several arrays a tuple."""
    return _each(arrays, lambda x: _in_front(x, 2))


def atleast_3d(*arrays: ArrayLike) -> Any:
    """The array with new dimensions around until it has three; of several arrays a tuple."""
    return _each(arrays, _three)


def _in_front(x: Tracer, rank: int) -> Tracer:
    return reshape(x, (1,) * (rank - x.ndim) + x.shape)


def _three(x: Tracer) -> Tracer:
    shapes = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}
    return reshape(x, shapes[x.ndim]) if x.ndim < 3 else x


def _each(arrays: Sequence[ArrayLike], function: Callable[[Tracer], Tracer]) -> Any:
    found = [function(lift(x)) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


# -- joining ---------------------------------------------------------------------------------------------------------


def vstack(arrays: Sequence[ArrayLike]) -> Tracer:
    """Arrays below one another; those of one dimension are rows."""
    return concatenate([atleast_2d(x) for x in arrays], 0)


def hstack(arrays: Sequence[ArrayLike]) -> Tracer:
    """Arrays side by side, along the second dimension (the first, if they have but one)."""
    lifted = [atleast_1d(x) for x in arrays]
    return concatenate(lifted, 0 if not lifted or lifted[0].ndim == 1 else 1)


def dstack(arrays: Sequence[ArrayLike]) -> Tracer:
    """Arrays behind one another, along the third dimension."""
    return concatenate([atleast_3d(x) for x in arrays], 2)


def column_stack(arrays: Sequence[ArrayLike]) -> Tracer:
    """Arrays side by side; those of one dimension are columns."""
    lifted = [lift(x) for x in arrays]
    return concatenate([reshape(x, (x.size, 1)) if x.ndim < 2 else x for x in lifted], 1)


def block(arrays: Any) -> Tracer:
    """An array from nested lists of blocks: the innermost lists go along the last dimension."""
    depth = _depth(arrays)
    rank = max(depth, _rank(arrays))
    return _block(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    return 1 + max((_depth(x) for x in cast("list[Any]", arrays)), default=0) if isinstance(arrays, list) else 0


def _rank(arrays: Any) -> int:
    if isinstance(arrays, list):
        return max((_rank(x) for x in cast("list[Any]", arrays)), default=0)
    return lift(arrays).ndim


def _block(arrays: Any, depth: int, rank: int) -> Tracer:
    if not isinstance(arrays, list):
        if depth:
            raise trace_error("the lists of a block are nested to different depths", rule="block.C1")
        return _in_front(lift(arrays), rank)
    return concatenate([_block(x, depth - 1, rank) for x in cast("list[Any]", arrays)], -depth)


def append(x: ArrayLike, values: ArrayLike, axis: int | None = None) -> Tracer:
    """Values behind the elements along an axis (None: in row-major order)."""
    return concatenate([x, values], axis)


def insert(x: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Tracer:
    """Values before known places along an axis (None: in row-major order)."""
    lifted = ravel(x) if axis is None else lift(x)
    d = normal_axis(axis or 0, lifted.ndim)
    n = lifted.shape[d]
    places = _known("insert", obj)
    new = cast_to(values, lifted.dtype)
    new = _in_front(new, lifted.ndim)
    if np.ndim(places) == 0 and not isinstance(places, slice):
        new = moveaxis(new, 0, d)
        count = new.shape[d]
        places = [int(places)] * count
    else:
        count = len(range(n)[places]) if isinstance(places, slice) else np.size(places)
    new = broadcast_to(new, [count if e == d else m for e, m in enumerate(lifted.shape)])
    order: NDArray[Any] = np.insert(np.arange(n), cast("list[int]", places), n + np.arange(count))
    return elements(concatenate([lifted, new], d), d, order.tolist())


def delete(x: ArrayLike, obj: Any, axis: int | None = None) -> Tracer:
    """The array without the elements at known places along an axis (None: in row-major order)."""
    lifted = ravel(x) if axis is None else lift(x)
    d = normal_axis(axis or 0, lifted.ndim)
    return elements(lifted, d, np.delete(np.arange(lifted.shape[d]), _known("delete", obj)).tolist())


def _known(name: str, obj: Any) -> Any:
    if isinstance(obj, Tracer):
        raise trace_error(f"the shape of {name} depends on traced places", rule=f"{name}.C1", fix="give known numbers")
    return obj


# -- taking apart ----------------------------------------------------------------------------------------------------


def array_split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tracer]:
    """Parts along an axis that differ by one element at most, or those between cutting points."""
    lifted = lift(x)
    if not isinstance(indices_or_sections, int):
        return split(lifted, indices_or_sections, axis)
    n, parts = lifted.shape[normal_axis(axis, lifted.ndim)], indices_or_sections
    sizes = [n // parts + (i < n % parts) for i in range(parts)]
    return split(lifted, np.cumsum(sizes)[:-1].tolist(), axis)


def vsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tracer]:
    """Parts along the first dimension."""
    return split(x, indices_or_sections, 0)


def hsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tracer]:
    """Parts along the second dimension (the first, if there is but one)."""
    lifted = lift(x)
    return split(lifted, indices_or_sections, 1 if lifted.ndim > 1 else 0)


def dsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tracer]:
    """Parts along the third dimension."""
    return split(x, indices_or_sections, 2)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Tracer, ...]:
    """The arrays that lie along an axis."""
    return tuple(moveaxis(x, axis, 0))


# -- order -----------------------------------------------------------------------------------------------------------


def fliplr(x: ArrayLike) -> Tracer:
    """The second dimension in reverse order."""
    return flip(x, 1)


def flipud(x: ArrayLike) -> Tracer:
    """The first dimension in reverse order."""
    return flip(x, 0)


def rot90(x: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tracer:
    """The plane of two axes turned by so many right angles, from the first towards the second."""
    first, second = axes
    turns = k % 4
    if turns == 0:
        return lift(x)
    if turns == 2:
        return flip(x, axes)
    return swapaxes(flip(x, second), first, second) if turns == 1 else flip(swapaxes(x, first, second), second)


# -- grids and diagonals ---------------------------------------------------------------------------------------------


def meshgrid(*arrays: ArrayLike, indexing: str = "xy", sparse: bool = False) -> tuple[Tracer, ...]:
    """The coordinates of a grid from those along each dimension; `xy`: the first two are columns and rows."""
    if indexing not in ("xy", "ij"):
        raise trace_error(f"indexing {indexing!r} is neither xy nor ij", rule="meshgrid.C1")
    lifted = [ravel(x) for x in arrays]
    rank = len(lifted)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[:2] = [1, 0]
    lines = [reshape(x, [x.size if d == p else 1 for d in range(rank)]) for x, p in zip(lifted, places, strict=True)]
    shape = broadcast_shapes(*(x.shape for x in lines)) if lines else ()
    return tuple(lines) if sparse else tuple(broadcast_to(x, shape) for x in lines)


def indices(dimensions: Sequence[int], dtype: Any = None) -> Tracer:
    """The index along each dimension of a grid, one after another along a new first dimension."""
    kind = canonical(np.dtype(np.int64)) if dtype is None else as_dtype(dtype)
    shape = tuple(int(n) for n in dimensions)
    return stack([iota(shape, kind, d) for d in range(len(shape))])


def diag(x: ArrayLike, k: int = 0) -> Tracer:
    """The k-th diagonal of a matrix, or a matrix with a vector on its k-th diagonal and zeros elsewhere."""
    lifted = lift(x)
    if lifted.ndim == 2:
        return diagonal(lifted, k)
    if lifted.ndim != 1:
        raise trace_error(f"diag of an array of {lifted.ndim} dimensions", rule="diag.C1", fix="use diagonal")
    column = pad_with(lifted, [max(-k, 0)], [max(k, 0)])
    shape = (column.size, column.size)
    wide = emit(BROADCAST_IN_DIM, column, shape=ResultShape(shape), dims=(0,))
    return emit(SELECT, diagonal_mask(shape, k, "EQ"), wide, full_of(0, lifted.dtype, shape))


def diagflat(x: ArrayLike, k: int = 0) -> Tracer:
    """A matrix with all elements on its k-th diagonal."""
    return diag(ravel(x), k)


def tri(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = None) -> Tracer:
    """Ones on and below the k-th diagonal, zeros above."""
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    return emit(CONVERT, diagonal_mask(shape, k, "LE"), dtype=default_float() if dtype is None else as_dtype(dtype))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Known, Known]:
    """Where the elements on and below the k-th diagonal are, as known numbers."""
    rows, columns = np.tril_indices(n, k, m)
    return rows.astype(np.int32), columns.astype(np.int32)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Known, Known]:
    """Where the elements on and above the k-th diagonal are, as known numbers."""
    rows, columns = np.triu_indices(n, k, m)
    return rows.astype(np.int32), columns.astype(np.int32)


def tril_indices_from(x: ArrayLike, k: int = 0) -> tuple[Known, Known]:
    """Where the elements of a matrix on and below the k-th diagonal are, as known numbers."""
    rows, columns = lift(x).shape
    return tril_indices(rows, k, columns)


def triu_indices_from(x: ArrayLike, k: int = 0) -> tuple[Known, Known]:
    """Where the elements of a matrix on and above the k-th diagonal are, as known numbers."""
    rows, columns = lift(x).shape
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Known, ...]:
    """Where the elements on the main diagonal are, as known numbers."""
    return (np.arange(n, dtype=np.int32),) * ndim


def kron(x: ArrayLike, y: ArrayLike) -> Tracer:
    """Copies of y, each scaled by an element of x, in the order of x."""
    dtype = common_dtype(x, y)
    a, b = cast_to(x, dtype), cast_to(y, dtype)
    rank = max(a.ndim, b.ndim)
    a, b = _in_front(a, rank), _in_front(b, rank)
    product = expand_dims(a, range(1, 2 * rank, 2)) * expand_dims(b, range(0, 2 * rank, 2))
    return reshape(product, [m * n for m, n in zip(a.shape, b.shape, strict=True)])
