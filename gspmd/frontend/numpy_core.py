"""From what users write to operands of one dtype and one shape: constants, conversion, broadcasting.

The ops of the IR broadcast nothing and convert nothing; here is where NumPy's rules become ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gspmd.frontend.config import canonical, canonical_array
from gspmd.frontend.promotion import inexact, promote_scalar, result_type
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, WeakTracer, emit, is_scalar, python_type, weak_kind
from gspmd.ir.attrs import Dense, ResultShape
from gspmd.ir.dtypes import DType, as_dtype, dtype_kind, dtype_name, is_integer
from gspmd.ir.errors import TraceError
from gspmd.ir.location import user_location
from gspmd.ir.opdef import OpDef
from gspmd.ops.elementwise import CONVERT
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import CONSTANT

Shape = tuple[int, ...]
_PYTHON: dict[str, type] = {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}


def array_of(x: Any) -> NDArray[Any]:
    """What is no tracer and no Python number as a NumPy array of a dtype that programs know."""
    array = _known(x)
    try:
        return canonical_array(array)
    except OverflowError as error:
        raise _not_data(x, error) from None


def _known(x: Any) -> NDArray[Any]:
    try:
        array = np.asarray(x)
        as_dtype(array.dtype)
    except ValueError as error:
        raise _not_data(x, error) from None
    return array


def _not_data(x: Any, error: Exception) -> TraceError:
    return trace_error(
        f"{type(x).__name__} cannot become part of a program: {error}",
        rule="trace.C6",
        fix="give numbers of a supported dtype",
    )


def shape_of(x: ArrayLike) -> Shape:
    """The shape of anything that stands for an array."""
    if isinstance(x, Tracer):
        return x.value.type.shape
    return () if is_scalar(x) else np.shape(cast("Any", x))


def dtype_of(x: ArrayLike) -> DType:
    """The dtype of anything that stands for an array; Python numbers have the default of their kind."""
    if isinstance(x, Tracer):
        return x.value.type.dtype
    if is_scalar(x):
        return promote_scalar(None, python_type(x))
    return canonical(_known(x).dtype)


def common_dtype(*operands: ArrayLike) -> DType:
    """The dtype that an operation on these operands computes in."""
    kinds = [weak_kind(x) for x in operands]
    typed = [dtype_of(x) for x, kind in zip(operands, kinds, strict=True) if kind is None]
    try:
        return result_type(typed, [kind for kind in kinds if kind is not None])
    except TraceError as error:
        raise error.at(user_location()) from None


# -- constants -------------------------------------------------------------------------------------------------------


def constant(array: Any) -> Tracer:
    """A NumPy array as a constant of the program."""
    return emit(CONSTANT, value=Dense(array))


@lru_cache(maxsize=4096)
def _dense_scalar(text: str, value: Any, dtype: DType) -> Dense:
    """A scalar attribute; `text` tells apart what compares equal, such as 0.0 and -0.0."""
    return Dense(np.array(value).astype(dtype))


def scalar(value: Any, dtype: DType) -> Tracer:
    """A number as a scalar constant; raises TraceError if it is an integer that does not fit the dtype."""
    if isinstance(value, int) and is_integer(dtype) and not _fits(value, dtype):
        raise trace_error(
            f"the number {value} does not fit into {dtype_name(dtype)}",
            rule="promotion.C2",
            fix="convert the other operand to a wider dtype with .astype",
        )
    return emit(CONSTANT, value=_dense_scalar(repr(value), value, dtype))


@lru_cache(maxsize=1024)
def _fits(value: int, dtype: DType) -> bool:
    bits = int(dtype_name(dtype)[1:])
    signed = dtype_kind(dtype) == "int"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return low <= value <= high


def full_of(value: Any, dtype: DType, shape: Shape) -> Tracer:
    """An array of equal elements: a scalar constant, broadcast."""
    one = scalar(value, dtype)
    return one if not shape else emit(BROADCAST_IN_DIM, one, shape=ResultShape(shape), dims=())


# -- conversion and broadcasting -------------------------------------------------------------------------------------


def lift(x: ArrayLike) -> Tracer:
    """Anything that stands for an array as a traced array of its own dtype."""
    if isinstance(x, Tracer):
        return x
    return scalar(x, dtype_of(x)) if is_scalar(x) else constant(array_of(x))


def cast_to(x: ArrayLike, dtype: DType) -> Tracer:
    """Anything that stands for an array as a traced array of a dtype."""
    if is_scalar(x):
        return scalar(x, dtype)
    lifted = lift(x)
    if lifted.dtype == dtype:
        # What is asked to have a dtype has it for good.
        return Tracer(lifted.value, lifted.scope) if isinstance(lifted, WeakTracer) else lifted
    return constant(array_of(x).astype(dtype)) if not isinstance(x, Tracer) else emit(CONVERT, lifted, dtype=dtype)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape by NumPy's rules; raises TraceError naming two shapes that do not fit."""
    first = shapes[0]
    for other in shapes[1:]:
        if other != first:
            first = _broadcast_two(first, other)
    return first


def _broadcast_two(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    for m, n in zip(left, right, strict=True):
        if m != n and m != 1 and n != 1:
            raise trace_error(
                f"shapes {list(a)} and {list(b)} do not broadcast: sizes {m} and {n} meet",
                rule="broadcast.C1",
                fix="reshape or transpose one operand so that sizes agree from the right, or are 1",
            )
    return tuple(n if m == 1 else m for m, n in zip(left, right, strict=True))


def broadcast_to(x: ArrayLike, shape: Sequence[int]) -> Tracer:
    """The array repeated along new and size-1 dimensions to a shape."""
    lifted, target = lift(x), tuple(shape)
    if lifted.shape == target:
        return lifted
    offset = len(target) - lifted.ndim
    if offset < 0 or broadcast_shapes(lifted.shape, target) != target:
        raise trace_error(f"an array of shape {list(lifted.shape)} cannot become {list(target)}", rule="broadcast.C2")
    dims = tuple(range(offset, len(target)))
    return emit(BROADCAST_IN_DIM, lifted, shape=ResultShape(target), dims=dims)


def spread(x: ArrayLike, dtype: DType, shape: Shape) -> Tracer:
    """Anything that stands for an array, in a dtype and a shape."""
    if isinstance(x, Tracer):
        converted = x if x.value.type.dtype == dtype else emit(CONVERT, x, dtype=dtype)
        return converted if converted.value.type.shape == shape else broadcast_to(converted, shape)
    return full_of(x, dtype, shape) if is_scalar(x) else broadcast_to(cast_to(x, dtype), shape)


def together(*operands: ArrayLike, dtype: DType | None = None) -> list[Tracer]:
    """The operands in one dtype and one shape."""
    dtype = common_dtype(*operands) if dtype is None else dtype
    shape = broadcast_shapes(*map(shape_of, operands))
    return [spread(x, dtype, shape) for x in operands]


def binary(op: OpDef[Any], x: ArrayLike, y: ArrayLike, **attrs: Any) -> Tracer:
    """A binary element-wise op on operands brought to one dtype and shape."""
    if isinstance(x, Tracer) and isinstance(y, Tracer):
        a, b = x.value.type, y.value.type
        if a.dtype == b.dtype and a.shape == b.shape:
            return as_weak_as(emit(op, x, y, **attrs), x, y)
    left, right = together(x, y)
    return as_weak_as(emit(op, left, right, **attrs), x, y)


def as_weak_as(found: Tracer, *operands: ArrayLike) -> Tracer:
    """What was computed of operands, weak if all of these are, so that it goes on like a number."""
    for x in operands:
        if type(x) is Tracer or weak_kind(x) is None:
            return found
    return WeakTracer(found.value, found.scope, _PYTHON[dtype_kind(found.dtype)])


def as_inexact(x: ArrayLike) -> Tracer:
    """The array with integers and bools converted to the default float."""
    return cast_to(x, inexact(dtype_of(x)))


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from the left; raises TraceError if there is none of that number."""
    if not -rank <= axis < rank:
        raise trace_error(
            f"axis {axis} is out of range for an array of {rank} dimensions",
            rule="axis.C1",
            fix=f"use an axis from {-rank} to {rank - 1}",
        )
    return axis % rank


def normal_axes(axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes counted from the left, each once; None means all."""
    if axes is None:
        return tuple(range(rank))
    found = tuple(normal_axis(int(a), rank) for a in ((axes,) if isinstance(axes, (int, np.integer)) else axes))
    if len(set(found)) != len(found):
        raise trace_error(f"an axis is named twice in {axes}", rule="axis.C2")
    return found
