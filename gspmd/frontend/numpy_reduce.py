"""Reductions along axes, and cumulative sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product
from typing import Any

from gspmd.frontend.config import default_int
from gspmd.frontend.numpy_core import cast_to, dtype_of, full_of, lift, normal_axes, normal_axis, scalar, shape_of
from gspmd.frontend.numpy_creation import iota
from gspmd.frontend.numpy_logic import equal, isclose, isfinite, isnan, logical_and, logical_not, logical_or, truth
from gspmd.frontend.numpy_math import square, stop_gradient, where
from gspmd.frontend.numpy_shape import expand_dims, ravel, reshape
from gspmd.frontend.numpy_special import conj, exp, imag, log, real, sqrt
from gspmd.frontend.promotion import inexact
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit, emit_all
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES, DType, as_dtype, dtype_kind, is_float
from gspmd.ir.graph import Region
from gspmd.ir.location import user_location
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import identity
from gspmd.ops import elementwise as ew
from gspmd.ops.reduce import REDUCE
from gspmd.ops.window import CUMULATIVE_REDUCE

Axes = int | Sequence[int] | None
_BOOL = DTYPES["bool"]


def _reduce(x: Tracer, axis: Axes, keepdims: bool, monoid: str) -> Tracer:
    dims = normal_axes(axis, x.ndim)
    found = emit(REDUCE, x, dims=tuple(sorted(dims)), monoid=monoid) if dims else x
    return reshape(found, _kept(x.shape, dims)) if keepdims else found


def _kept(shape: tuple[int, ...], dims: Sequence[int]) -> list[int]:
    return [1 if d in dims else n for d, n in enumerate(shape)]


def _numbers(x: ArrayLike, dtype: Any) -> Tracer:
    """The array as numbers that add up: bools become integers."""
    lifted = lift(x)
    if dtype is not None:
        return cast_to(lifted, as_dtype(dtype))
    return cast_to(lifted, default_int()) if lifted.dtype == _BOOL else lifted


def sum(x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
    """The sum along axes, in the array's dtype (bools: the default integer)."""
    return _reduce(_numbers(x, dtype), axis, keepdims, "add")


def prod(x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
    """The product along axes, in the array's dtype (bools: the default integer)."""
    return _reduce(_numbers(x, dtype), axis, keepdims, "mul")


def max(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """The largest element along axes, NaN if there is one."""
    return _extreme(lift(x), axis, keepdims, "max")


def min(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """The smallest element along axes, NaN if there is one."""
    return _extreme(lift(x), axis, keepdims, "min")


def _extreme(x: Tracer, axis: Axes, keepdims: bool, monoid: str) -> Tracer:
    dims = normal_axes(axis, x.ndim)
    if 0 in [x.shape[d] for d in dims]:
        raise trace_error(f"the {monoid} of no elements: shape {list(x.shape)}, axes {list(dims)}", rule="reduce.C10")
    if x.dtype == _BOOL:
        monoid = {"max": "or", "min": "and"}[monoid]
    return _reduce(x, axis, keepdims, monoid)


def all(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """Whether all elements along axes are true."""
    return _reduce(truth(x), axis, keepdims, "and")


def any(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """Whether any element along axes is true."""
    return _reduce(truth(x), axis, keepdims, "or")


def count_nonzero(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """How many elements along axes are other than zero."""
    return sum(truth(x), axis, keepdims=keepdims)


def allclose(x: ArrayLike, y: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tracer:
    """Whether all elements are close."""
    return all(isclose(x, y, rtol, atol, equal_nan))


def array_equal(x: ArrayLike, y: ArrayLike, equal_nan: bool = False) -> Tracer:
    """Whether two arrays have one shape and the same elements; with `equal_nan` a NaN is the same as a NaN."""
    if shape_of(x) != shape_of(y):
        return full_of(False, _BOOL, ())
    same = equal(x, y)
    return all(logical_or(same, logical_and(isnan(x), isnan(y))) if equal_nan else same)


def _mean_dtypes(x: ArrayLike, dtype: Any) -> tuple[DType, DType]:
    """The result's dtype and the one to compute in: a sum of many f16 would overflow f16."""
    result = inexact(dtype_of(x)) if dtype is None else as_dtype(dtype)
    return result, DTYPES["f32"] if is_float(result) and result.itemsize < 4 else result


def _count(x: Tracer, axis: Axes) -> int:
    return product(x.shape[d] for d in normal_axes(axis, x.ndim))


def mean(x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
    """The mean along axes; of integers and bools in the default float."""
    result, wide = _mean_dtypes(x, dtype)
    lifted = cast_to(x, wide)
    return cast_to(_reduce(lifted, axis, keepdims, "add") / _count(lifted, axis), result)


def squared_size(x: Tracer) -> Tracer:
    """The square of the absolute value, real for complex numbers."""
    return real(x * conj(x)) if dtype_kind(x.dtype) == "complex" else square(x)


def var(
    x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False, correction: float = 0, ddof: float = 0
) -> Tracer:
    """The variance along axes: squared distances from the mean, divided by their number less the correction."""
    result, wide = _mean_dtypes(x, dtype)
    lifted = cast_to(x, wide)
    apart = lifted - mean(lifted, axis, keepdims=True)
    total = _reduce(squared_size(apart), axis, keepdims, "add") / (_count(lifted, axis) - (correction or ddof))
    return total if dtype_kind(result) == "complex" else cast_to(total, result)


def std(
    x: ArrayLike, axis: Axes = None, dtype: Any = None, keepdims: bool = False, correction: float = 0, ddof: float = 0
) -> Tracer:
    """The standard deviation along axes."""
    return sqrt(var(x, axis, dtype, keepdims, correction, ddof))


def logsumexp(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """log(sum(exp(x))) along axes without overflow."""
    lifted = cast_to(x, inexact(dtype_of(x)))
    dims = normal_axes(axis, lifted.ndim)
    high = stop_gradient(max(lifted, dims, keepdims=True))
    # Where the largest is infinite its distance to itself is not zero but NaN.
    shift = where(isfinite(high), high, full_of(0, high.dtype, high.shape))
    total = log(sum(exp(lifted - shift), dims, keepdims=True)) + shift
    return total if keepdims else reshape(total, [n for d, n in enumerate(lifted.shape) if d not in dims])


# -- where the extreme is --------------------------------------------------------------------------------------------


def argmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tracer:
    """The first index of the largest element along an axis (None: in row-major order); a NaN is larger than all."""
    return _arg(lift(x), axis, keepdims, "max")


def argmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tracer:
    """The first index of the smallest element along an axis (None: in row-major order); a NaN is smaller than all."""
    return _arg(lift(x), axis, keepdims, "min")


def _arg(x: Tracer, axis: int | None, keepdims: bool, monoid: str) -> Tracer:
    if axis is None:
        found = _arg(ravel(x), 0, False, monoid)
        return reshape(found, (1,) * x.ndim) if keepdims else found
    d = normal_axis(axis, x.ndim)
    if x.shape[d] == 0:
        raise trace_error(f"the arg{monoid} of no elements: shape {list(x.shape)}, axis {d}", rule="reduce.C10")
    if dtype_kind(x.dtype) == "complex":
        return _arg(_lexicographic(x, d, monoid), d, keepdims, "max")
    if x.dtype == _BOOL:
        x = cast_to(x, DTYPES["i32"])
    index = default_int()
    last = scalar(int(identity("min", index)), index)
    first = scalar(identity(monoid, x.dtype).item(), x.dtype)
    region = _picker(x.dtype, index, "GT" if monoid == "max" else "LT")
    operands = [x, iota(x.shape, index, d), first, last]
    _, found = emit_all(REDUCE, operands, (region,), dims=(d,), monoid="custom")
    return expand_dims(found, d) if keepdims else found


def _lexicographic(x: Tracer, dim: int, monoid: str) -> Tracer:
    """Where complex numbers are the extreme along a dimension by real part, then imaginary part; NaN before all."""
    extreme = max if monoid == "max" else min
    odd = isnan(x)
    worst = full_of(float("-inf" if monoid == "max" else "inf"), real(x).dtype, ())
    held = logical_not(odd)
    for part in (real(x), imag(x)):
        left = where(held, part, worst)
        held = logical_and(held, equal(left, extreme(left, dim, keepdims=True)))
    return where(any(odd, dim, keepdims=True), odd, held)


def _picker(dtype: DType, index: DType, better: str) -> Region:
    """Of two (element, index) pairs the better one: NaN before all, else by `better`, of equals the lower index."""
    b = Builder(user_location())
    value, number = TensorType(dtype, ()), TensorType(index, ())
    x, i, y, j = b.param(value), b.param(number), b.param(value), b.param(number)
    wins = ew.COMPARE(b, x, y, direction=better)
    same = ew.COMPARE(b, x, y, direction="EQ")
    if dtype_kind(dtype) == "float":
        x_nan, y_nan = ew.COMPARE(b, x, x, direction="NE"), ew.COMPARE(b, y, y, direction="NE")
        wins = ew.OR(b, wins, ew.AND(b, x_nan, ew.NOT(b, y_nan)))
        same = ew.OR(b, same, ew.AND(b, x_nan, y_nan))
    wins = ew.OR(b, wins, ew.AND(b, same, ew.COMPARE(b, i, j, direction="LT")))
    return b.region([ew.SELECT(b, wins, x, y), ew.SELECT(b, wins, i, j)])


# -- running sums ----------------------------------------------------------------------------------------------------


def cumsum(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tracer:
    """The running sum along an axis (None: in row-major order)."""
    numbers = _numbers(x, dtype)
    lifted = ravel(numbers) if axis is None else numbers
    return emit(CUMULATIVE_REDUCE, lifted, dim=normal_axis(axis or 0, lifted.ndim), monoid="add")


def cumulative_sum(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tracer:
    """The array API's name of cumsum."""
    return cumsum(x, axis, dtype)


def cumprod(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tracer:
    """The running product along an axis (None: in row-major order)."""
    numbers = _numbers(x, dtype)
    lifted = ravel(numbers) if axis is None else numbers
    return emit(CUMULATIVE_REDUCE, lifted, dim=normal_axis(axis or 0, lifted.ndim), monoid="mul")
