"""Conversions between element types, comparisons, and cutting precision, with StableHLO's meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np

from gspmd.kernels.finite import (
    Array,
    DType,
    bit_width,
    is_float,
    is_integer,
    is_narrow,
    is_packed,
    limits,
    signed_bits,
    unsigned_bits,
    widened,
)

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def convert(x: Array, dtype: DType) -> Array:
    """The array in another dtype: floats saturate in integers (NaN gives 0), integers wrap, complex loses its imag."""
    if x.dtype == dtype:
        return x
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c" and dtype.kind != "c":
            x = np.real(x)
        if dtype == np.bool_:
            return np.asarray(x != x.dtype.type(0))
        if is_float(x.dtype) and is_integer(dtype):
            return _saturate(widened(x), dtype)
        if is_narrow(x.dtype) and dtype.kind == "c":
            x = widened(x)
        if is_packed(x.dtype) and is_packed(dtype):  # ml_dtypes knows no way between them
            x = x.astype(np.int8)
        return x.astype(dtype)


def _saturate(x: Array, dtype: DType) -> Array:
    low, high = limits(dtype)
    # high + 1 is a power of two, hence a number of every float type of 32 bits or more, while high may not be one.
    inside = (x > low - 1) & (x < high + 1) if low else (x > -1) & (x < high + 1)
    if dtype.itemsize == 8 and low:
        inside = (x >= low) & (x < high + 1)
    if inside.all():
        return x.astype(dtype)
    kept = np.where(inside, x, x.dtype.type(0)).astype(dtype)
    edge = np.where(x > 0, np.array(high, dtype), np.where(x < 0, np.array(low, dtype), np.array(0, dtype)))
    return np.where(inside, kept, edge)


def compare(x: Array, y: Array, direction: str, total_order: bool = False) -> Array:
    """Whether x and y stand in a relation; NaN only differs. In the total order -NaN < -inf < -0 < 0 < inf < NaN."""
    if total_order and is_float(x.dtype):
        x, y = _order(x), _order(y)
    with np.errstate(all="ignore"):
        return np.asarray(_COMPARE[direction](x, y))


def _order(x: Array) -> Array:
    """Integers that are ordered as the floats' total order."""
    bits = signed_bits(x)
    return np.where(bits < 0, bits ^ np.array(np.iinfo(bits.dtype).max, bits.dtype), bits)


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """The floats rounded (ties to even) as if stored with fewer bits: overflow gives inf, subnormals become zero."""
    mantissa, exponent = _layout(x.dtype)
    if x.dtype.itemsize == 1:  # as XLA does it: in f16, which holds them all and has an infinity
        with np.errstate(all="ignore"):
            return reduce_precision(x.astype(np.float16), exponent_bits, mantissa_bits).astype(x.dtype)
    bits = unsigned_bits(np.ascontiguousarray(x)).reshape(x.shape)
    unit: Any = bits.dtype.type
    magnitude: Array = bits & unit((1 << (mantissa + exponent)) - 1)
    sign = bits ^ magnitude
    drop = mantissa - mantissa_bits
    if drop > 0:
        half = unit((1 << (drop - 1)) - 1)
        odd = (magnitude >> unit(drop)) & unit(1)
        magnitude = (magnitude + half + odd) & ~unit((1 << drop) - 1)
    if exponent_bits < exponent:
        bias, small = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        found = magnitude >> unit(mantissa)
        infinity = unit(((1 << exponent) - 1) << mantissa)
        magnitude = np.where(found > unit(bias + small), infinity, magnitude)
        magnitude = np.where(found <= unit(bias - small), unit(0), magnitude)
    return np.where(np.isnan(x), x, (sign | magnitude).view(x.dtype))


def _layout(dtype: DType) -> tuple[int, int]:
    """The mantissa and exponent bits of a float dtype."""
    mantissa = int(cast("Any", ml_dtypes.finfo)(dtype).nmant)
    return mantissa, 8 * dtype.itemsize - 1 - mantissa


def bitcast(x: Array, dtype: DType) -> Array:
    """The bits of an array as another dtype: a narrower one adds a minor dim, a wider one removes it."""
    old, new = bit_width(x.dtype), bit_width(dtype)
    integers = is_packed(x.dtype) and is_packed(dtype)
    if 1 < min(old, new) < 8 and not (integers and old == new):
        return _bitcast_packed(x, dtype)
    if dtype.itemsize == x.dtype.itemsize:
        return np.ascontiguousarray(x).reshape(x.shape).view(dtype)
    if dtype.itemsize < x.dtype.itemsize:
        flat = np.ascontiguousarray(x).reshape(*x.shape, 1)
        return flat.view(dtype)
    return np.ascontiguousarray(x).view(dtype).reshape(x.shape[:-1])


def _bitcast_packed(x: Array, dtype: DType) -> Array:
    """To or from numbers of fewer than 8 bits, which lie in the low bits of a byte each; by single bits."""
    width, size = bit_width(x.dtype), bit_width(dtype)
    data = np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, x.dtype.itemsize)
    bits = np.unpackbits(data, axis=1, bitorder="little")[:, :width]
    found = np.packbits(bits.reshape(x.size * width // size, size), axis=1, bitorder="little").reshape(-1)
    shape = x.shape if width == size else (*x.shape, width // size) if width > size else x.shape[:-1]
    return (found.astype(dtype) if is_packed(dtype) else found.view(dtype)).reshape(shape)
