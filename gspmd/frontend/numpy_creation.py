"""Arrays from nothing: the array API's creation functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, cast

import numpy as np

from gspmd.frontend.config import default_float
from gspmd.frontend.numpy_core import Shape, cast_to, common_dtype, dtype_of, full_of, lift, spread
from gspmd.frontend.promotion import inexact, result_type
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, as_sequence, emit, is_scalar, python_type
from gspmd.ir.attrs import ResultShape
from gspmd.ir.dtypes import DTYPES, DType, as_dtype, is_integer
from gspmd.ops.elementwise import ADD, COMPARE, CONVERT, MULTIPLY, SELECT
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE
from gspmd.ops.literal import IOTA
from gspmd.ops.slicing import CONCATENATE


def _shape(shape: int | Sequence[int]) -> Shape:
    return tuple(int(n) for n in as_sequence(shape))


def full(shape: int | Sequence[int], fill_value: ArrayLike, dtype: Any = None) -> Tracer:
    """An array of one value, which may be traced; its dtype is the value's unless given."""
    kind = dtype_of(fill_value) if dtype is None else as_dtype(dtype)
    return spread(fill_value, kind, _shape(shape))


def zeros(shape: int | Sequence[int], dtype: Any = None) -> Tracer:
    """Zeros, by default floats."""
    return full_of(0, default_float() if dtype is None else as_dtype(dtype), _shape(shape))


def ones(shape: int | Sequence[int], dtype: Any = None) -> Tracer:
    """Ones, by default floats."""
    return full_of(1, default_float() if dtype is None else as_dtype(dtype), _shape(shape))


def empty(shape: int | Sequence[int], dtype: Any = None) -> Tracer:
    """An array to be overwritten; programs have no undefined numbers, so these are zeros."""
    return zeros(shape, dtype)


def _like(x: ArrayLike, shape: int | Sequence[int] | None) -> Shape:
    return lift(x).shape if shape is None else _shape(shape)


def zeros_like(x: ArrayLike, dtype: Any = None, shape: int | Sequence[int] | None = None) -> Tracer:
    """Zeros of an array's shape and dtype."""
    return full_of(0, dtype_of(x) if dtype is None else as_dtype(dtype), _like(x, shape))


def ones_like(x: ArrayLike, dtype: Any = None, shape: int | Sequence[int] | None = None) -> Tracer:
    """Ones of an array's shape and dtype."""
    return full_of(1, dtype_of(x) if dtype is None else as_dtype(dtype), _like(x, shape))


def empty_like(x: ArrayLike, dtype: Any = None, shape: int | Sequence[int] | None = None) -> Tracer:
    """Zeros of an array's shape and dtype (programs have no undefined numbers)."""
    return zeros_like(x, dtype, shape)


def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: Any = None) -> Tracer:
    """One value in an array's shape and dtype."""
    return spread(fill_value, dtype_of(x) if dtype is None else as_dtype(dtype), _like(x, None))


def asarray(x: Any, dtype: Any = None) -> Tracer:
    """Numbers, NumPy arrays, traced arrays, or nested lists of them, as a traced array."""
    if isinstance(x, (list, tuple)) and _holds_tracer(cast("Sequence[Any]", x)):
        joined = _stacked([asarray(item) for item in cast("Sequence[Any]", x)])
        return joined if dtype is None else cast_to(joined, as_dtype(dtype))
    if isinstance(x, (list, tuple)):
        numbers = np.asarray(cast("Any", x))
        # Lists of Python numbers are as weak as the numbers: they get the defaults.
        x = numbers.astype(default_float()) if numbers.size == 0 else numbers
    return lift(x) if dtype is None else cast_to(x, as_dtype(dtype))


def _holds_tracer(items: Sequence[Any]) -> bool:
    return any(isinstance(i, Tracer) or (isinstance(i, (list, tuple)) and _holds_tracer(cast("Any", i))) for i in items)


def _stacked(items: list[Tracer]) -> Tracer:
    dtype = common_dtype(*items)
    rows = [emit(RESHAPE, cast_to(i, dtype), shape=ResultShape((1, *i.shape))) for i in items]
    return emit(CONCATENATE, *rows, dimension=0)


def astype(x: ArrayLike, dtype: Any) -> Tracer:
    """The values converted to a dtype."""
    return cast_to(x, as_dtype(dtype))


def iota(shape: Shape, dtype: DType, dimension: int) -> Tracer:
    """The index along one dimension, in a dtype."""
    if dtype == DTYPES["bool"]:
        return emit(CONVERT, iota(shape, DTYPES["i32"], dimension), dtype=dtype)
    return emit(IOTA, shape=ResultShape(shape), dtype=dtype, dimension=dimension)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tracer:
    """Numbers from start (0) up to stop, which is not among them; the three must be numbers, not traced."""
    first, last = (0, start) if stop is None else (start, stop)
    if any(isinstance(v, Tracer) for v in (first, last, step)):
        raise trace_error(
            "the length of arange depends on a traced value",
            rule="arange.C1",
            fix="give Python numbers; mask with where if the length varies",
        )
    kind = result_type([], [python_type(v) for v in map(_python, (first, last, step))]) if dtype is None else dtype
    n = max(0, ceil((last - first) / step))
    found = as_dtype(kind)
    counted = iota((n,), found, 0)
    if step != 1:
        counted = emit(MULTIPLY, counted, full_of(_python(step), found, (n,)))
    return counted if first == 0 else emit(ADD, counted, full_of(_python(first), found, (n,)))


def _python(x: Any) -> Any:
    return x if is_scalar(x) else np.asarray(x).item()


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Tracer:
    """Evenly spaced numbers from start to stop."""
    kind = inexact(common_dtype(start, stop)) if dtype is None else as_dtype(dtype)
    wide = inexact(kind)
    count = num - 1 if endpoint else num
    t = emit(MULTIPLY, iota((num,), wide, 0), full_of(1 / max(count, 1), wide, (num,)))
    low, high = spread(start, wide, (num,)), spread(stop, wide, (num,))
    one = full_of(1, wide, (num,))
    # Weights that sum to one, and exactly 0 and 1 at the ends, give both ends exactly.
    rest = one - t
    line = low * rest + high * t
    if endpoint and num > 1:
        last = emit(COMPARE, iota((num,), DTYPES["i32"], 0), full_of(num - 1, DTYPES["i32"], (num,)), direction="EQ")
        line = emit(SELECT, last, high, line)
    return cast_to(line, kind)


def eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = None) -> Tracer:
    """Ones on the k-th diagonal, zeros elsewhere."""
    kind = default_float() if dtype is None else as_dtype(dtype)
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    return emit(CONVERT, diagonal_mask(shape, k, "EQ"), dtype=kind)


def identity(n: int, dtype: Any = None) -> Tracer:
    """The unit matrix."""
    return eye(n, dtype=dtype)


def diagonal_mask(shape: Shape, k: int, direction: str) -> Tracer:
    """Where column - row compares with k in the last two dimensions: EQ on, LE on or below, GE on or above it."""
    index = DTYPES["i32"]
    matrix = shape[-2:]
    rows = emit(ADD, iota(matrix, index, 0), full_of(k, index, matrix)) if k else iota(matrix, index, 0)
    mask = emit(COMPARE, iota(matrix, index, 1), rows, direction=direction)
    if len(shape) == 2:
        return mask
    return emit(BROADCAST_IN_DIM, mask, shape=ResultShape(shape), dims=(len(shape) - 2, len(shape) - 1))


def one_hot(x: ArrayLike, num_classes: int, dtype: Any = None, axis: int = -1) -> Tracer:
    """A new axis that is one where its index equals x, else zero; an x out of range gives zeros only."""
    lifted = lift(x)
    if not is_integer(lifted.dtype):
        raise trace_error(f"one_hot takes integers, got {lifted.type.bare.text()}", rule="one_hot.C1")
    at = axis % (lifted.ndim + 1)
    shape = (*lifted.shape[:at], num_classes, *lifted.shape[at:])
    dims = tuple(d for d in range(len(shape)) if d != at)
    wide = cast_to(lifted, DTYPES["i32"]) if lifted.dtype.itemsize < 4 else lifted
    repeated = emit(BROADCAST_IN_DIM, wide, shape=ResultShape(shape), dims=dims)
    hit = emit(COMPARE, repeated, iota(shape, wide.dtype, at), direction="EQ")
    return emit(CONVERT, hit, dtype=default_float() if dtype is None else as_dtype(dtype))
