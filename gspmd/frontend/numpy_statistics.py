"""Order statistics, also those that pass over NaN, and how variables vary together."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product
from typing import Any

import numpy as np

from gspmd.frontend.einsum import matmul
from gspmd.frontend.numpy_core import as_inexact, cast_to, dtype_of, full_of, lift, normal_axes, shape_of
from gspmd.frontend.numpy_index import getitem, take_along_axis
from gspmd.frontend.numpy_join import atleast_2d, diag
from gspmd.frontend.numpy_logic import equal, isnan, logical_not, logical_or
from gspmd.frontend.numpy_math import clip, divide, maximum, where
from gspmd.frontend.numpy_reduce import Axes, max, mean, min, sum
from gspmd.frontend.numpy_shape import concatenate, expand_dims, moveaxis, ravel, reshape
from gspmd.frontend.numpy_sort import sort
from gspmd.frontend.numpy_special import conj, real, sqrt
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer
from gspmd.ir.dtypes import DTYPES, dtype_kind

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def ptp(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """The largest element less the smallest along axes."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def average(
    x: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The weighted mean along axes, the weights for each element or along the axis; `returned`: their sum as well."""
    lifted = as_inexact(x)
    if weights is None:
        dims = normal_axes(axis, lifted.ndim)
        found = mean(lifted, axis, keepdims=keepdims)
        count = full_of(product(lifted.shape[d] for d in dims), found.dtype, found.shape)
        return (found, count) if returned else found
    weight = lift(weights)
    if weight.shape != lifted.shape:
        (d,) = normal_axes(axis, lifted.ndim) if axis is not None else (0,)
        if weight.shape != (lifted.shape[d],):
            raise trace_error(
                f"weights of shape {list(weight.shape)} for an array of shape {list(lifted.shape)}, axis {axis}",
                rule="average.C1",
            )
        weight = reshape(weight, [-1 if e == d else 1 for e in range(lifted.ndim)])
    weighted = lifted * weight
    total = sum(weight + full_of(0, weighted.dtype, weighted.shape), axis, keepdims=keepdims)
    found = sum(weighted, axis, keepdims=keepdims) / total
    return (found, total) if returned else found


# -- quantiles -------------------------------------------------------------------------------------------------------


def median(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """The middle element along axes, or the mean of the two in the middle; NaN if there is one."""
    return quantile(x, 0.5, axis, "midpoint", keepdims)


def percentile(x: ArrayLike, q: ArrayLike, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Tracer:
    """The quantiles of so many hundredths."""
    return quantile(x, _hundredths(q), axis, method, keepdims)


def quantile(x: ArrayLike, q: ArrayLike, axis: Axes = None, method: str = "linear", keepdims: bool = False) -> Tracer:
    """Below which the parts q of the elements along axes lie, NaN if there is one; the dimensions of q come first.

    Between two elements the method decides: linear, lower, higher, midpoint, nearest.
    """
    rows, kept = _rows(x, axis, method)
    ordered = sort(rows, -1)
    last = getitem(ordered, (..., slice(-1, None)))
    if isinstance(q, Tracer):
        position = ravel(q) * (rows.shape[-1] - 1)
        found = _along(ordered, position + full_of(0, position.dtype, (*rows.shape[:-1], q.size)), method)
    else:
        found = _between(ordered, _checked(q).ravel() * (rows.shape[-1] - 1), method)
    return _finished(where(isnan(last), last, found), shape_of(q), kept, keepdims)


def nanmedian(x: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Tracer:
    """The median of what is not NaN; NaN where there is nothing."""
    return nanquantile(x, 0.5, axis, "midpoint", keepdims)


def nanpercentile(
    x: ArrayLike, q: ArrayLike, axis: Axes = None, method: str = "linear", keepdims: bool = False
) -> Tracer:
    """The quantiles, of so many hundredths, of what is not NaN."""
    return nanquantile(x, _hundredths(q), axis, method, keepdims)


def nanquantile(
    x: ArrayLike, q: ArrayLike, axis: Axes = None, method: str = "linear", keepdims: bool = False
) -> Tracer:
    """The quantiles of what is not NaN along axes; NaN where there is nothing."""
    rows, kept = _rows(x, axis, method)
    parts = ravel(q if isinstance(q, Tracer) else _checked(q).astype(np.float32))
    count = sum(cast_to(logical_not(isnan(rows)), parts.dtype), -1, keepdims=True)
    found = _along(sort(rows, -1), parts * maximum(count - 1, 0), method)
    return _finished(found, shape_of(q), kept, keepdims)


def _hundredths(q: ArrayLike) -> ArrayLike:
    return q / 100 if isinstance(q, Tracer) else np.asarray(q, np.float64) / 100


def _checked(q: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    parts = np.asarray(q, np.float64)
    if not np.all((parts >= 0) & (parts <= 1)):
        raise trace_error(f"quantiles at {q}: parts lie between 0 and 1", rule="quantile.C1")
    return parts


def _rows(x: ArrayLike, axis: Axes, method: str) -> tuple[Tracer, tuple[int, ...]]:
    """The array with all of the axes as its last dimension, and its shape with the axes of size 1."""
    lifted = as_inexact(x)
    if method not in _METHODS:
        raise trace_error(f"the method {method!r} of quantiles is not known", rule="quantile.C2", fix=str(_METHODS))
    dims = normal_axes(axis, lifted.ndim)
    kept = tuple(1 if d in dims else n for d, n in enumerate(lifted.shape))
    size = product(lifted.shape[d] for d in dims)
    if not size:
        raise trace_error(
            f"quantiles of no elements: shape {list(lifted.shape)}, axes {list(dims)}", rule="quantile.C3"
        )
    turned = moveaxis(lifted, dims, range(lifted.ndim - len(dims), lifted.ndim)) if dims else lifted
    return reshape(turned, (*(n for d, n in enumerate(lifted.shape) if d not in dims), size)), kept


def _between(ordered: Tracer, position: np.ndarray[Any, np.dtype[np.float64]], method: str) -> Tracer:
    """The elements at known places of the last dimension, which may lie between two."""
    low, high, weight = _neighbours(position, method)
    first, second = (getitem(ordered, (..., np.asarray(i, np.int32))) for i in (low, high))
    return _mixed(first, second, np.asarray(weight))


def _along(ordered: Tracer, position: Tracer, method: str) -> Tracer:
    """As `_between`, at places of its own for each row."""
    low, high, weight = _neighbours(position, method)
    first, second = (take_along_axis(ordered, cast_to(i, DTYPES["i32"]), -1) for i in (low, high))
    return _mixed(first, second, weight)


def _neighbours(position: Any, method: str) -> tuple[Any, Any, Any]:
    """The places below and above, and the weight of the latter; NumPy's functions take traced arrays as well."""
    low, high = np.floor(position), np.ceil(position)
    if method == "lower":
        return low, low, position * 0
    if method == "higher":
        return high, high, position * 0
    if method == "nearest":
        near = np.rint(position)
        return near, near, position * 0
    return low, high, position * 0 + 0.5 if method == "midpoint" else position - low


def _mixed(first: Tracer, second: Tracer, weight: ArrayLike) -> Tracer:
    part = cast_to(weight, first.dtype)
    between = first * (1 - part) + second * part  # infinite if one of them is, which their difference would not be
    return where(logical_or(equal(first, second), equal(part, 0)), first, between)


def _finished(found: Tracer, shape: Sequence[int], kept: Sequence[int], keepdims: bool) -> Tracer:
    """The quantiles, which lie along the last dimension, as the first ones."""
    first = moveaxis(found, -1, 0)
    rest = kept if keepdims else first.shape[1:]
    return reshape(first, (*shape, *rest))


# -- variables together ----------------------------------------------------------------------------------------------


def cov(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None
) -> Tracer:
    """How each two variables vary together; a variable is a row (`rowvar`) or a column, y holds further ones."""
    rows = _variables(x, rowvar)
    if y is not None:
        rows = concatenate([rows, _variables(y, rowvar)], 0)
    apart = rows - mean(rows, 1, keepdims=True)
    less = ddof if ddof is not None else 0 if bias else 1
    found = matmul(apart, conj(apart).T) / (rows.shape[1] - less)
    return reshape(found, ()) if found.shape == (1, 1) else found


def _variables(x: ArrayLike, rowvar: bool) -> Tracer:
    lifted = as_inexact(x)
    rows = atleast_2d(lifted)
    return rows if rowvar or lifted.ndim < 2 else rows.T


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True) -> Tracer:
    """The covariances, divided by the standard deviations: from -1 to 1."""
    found = cov(x, y, rowvar)
    if not found.ndim:
        return divide(found, found)
    spread = sqrt(real(diag(found)))
    scaled = found / expand_dims(spread, 1) / spread
    return scaled if dtype_kind(dtype_of(scaled)) == "complex" else clip(scaled, -1, 1)
