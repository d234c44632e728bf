"""The commutative monoids that reductions, scatters and collectives combine with: add mul max min and or xor.

On bool, add and max mean or, mul and min mean and. Floats of fewer than 32 bits accumulate in f32, integers of fewer
than 8 in 8. The identity of a float sum is -0.0: picking one value by a sum with +0.0 would turn -0.0 into 0.0. Of two
zeros max takes +0.0 and min -0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np

from gspmd.kernels import extrema
from gspmd.kernels.finite import Array, DType, compute_dtype, is_float, limits, widened

MONOIDS = ("add", "mul", "max", "min", "and", "or", "xor")
_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@lru_cache(maxsize=256)
def identity(monoid: str, dtype: DType) -> Array:
    """The neutral element of a monoid as a read-only scalar array; raises ValueError for bits of floats."""
    if monoid in ("and", "or", "xor") and (is_float(dtype) or dtype.kind == "c"):
        raise ValueError(f"{monoid} combines bits, but the dtype is {dtype}")
    if monoid == "add":
        value = complex(-0.0, -0.0) if dtype.kind == "c" else -0.0 if is_float(dtype) else 0
    elif monoid == "mul":
        value = 1
    elif monoid in ("max", "min"):
        low, high = limits(dtype)
        value = low if monoid == "max" else high
    else:
        value = 0 if monoid != "and" else True if dtype == np.bool_ else -1
    out = np.array(value).astype(dtype)
    out.setflags(write=False)
    return out


class Binary(Protocol):
    """A binary operation on arrays of one dtype, which may be told where to write."""

    def __call__(self, x: Array, y: Array, /, out: Array | None = None) -> Array:
        """The combination, in `out` if given."""
        ...


def binary(monoid: str, plain: bool = False) -> Binary:
    """The binary operation of a monoid, which does not widen narrow floats; `plain`: there is no -0.0."""
    operation = _UFUNCS[monoid]
    return partial(extrema.extremum, operation) if monoid in ("max", "min") and not plain else operation


def combine(monoid: str) -> Callable[[Array, Array], Array]:
    """The binary operation of a monoid on two arrays of one dtype, which it keeps."""
    operation = binary(monoid)

    def apply(a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(operation(widened(a), widened(b)), a.dtype)

    return apply


def reduce(monoid: str, x: Array, dims: Sequence[int]) -> Array:
    """The combination of an array along some dims, which disappear; the dtype is kept."""
    dtype = compute_dtype(x.dtype)
    start: Any = identity(monoid, x.dtype).astype(dtype)[()]
    wide, operation, axes = x.astype(dtype, copy=False), _UFUNCS[monoid], tuple(dims)
    with np.errstate(all="ignore"):
        if monoid in ("max", "min"):
            out = extrema.reduce(operation, wide, axes, start)
        else:
            out = operation.reduce(wide, axis=axes, dtype=dtype, initial=start)
    return np.asarray(out, x.dtype)


def accumulate(monoid: str, x: Array, axis: int) -> Array:
    """Each element combined with all before it along an axis; narrow floats are not widened."""
    operation = _UFUNCS[monoid]
    with np.errstate(all="ignore"):
        if monoid in ("max", "min"):
            return extrema.accumulate(operation, x, axis)
        return operation.accumulate(x, axis=axis, dtype=x.dtype)


def update(monoid: str, table: Array, rows: Array, values: Array) -> None:
    """Combine each value into the element of a 1-d table that `rows` names, in order and in place."""
    with np.errstate(all="ignore"):
        if monoid in ("max", "min"):
            extrema.update(_UFUNCS[monoid], table, rows, values)
        else:
            _UFUNCS[monoid].at(table, rows, values)


def fold(monoid: str, arrays: Sequence[Array]) -> Array:
    """The combination of arrays of one shape in their order, rounded once: what collectives do with contributions."""
    operation = binary(monoid)
    total = widened(arrays[0])
    with np.errstate(all="ignore"):
        for x in arrays[1:]:
            total = operation(total, widened(x))
    return np.asarray(total, arrays[0].dtype)
