"""`gspmd.random`: random numbers from keys, the same for every way to split them (and the same as jax.random's).

A key is a u32[2] array. Numbers are functions of a key and of their place in the array, so nothing is passed along;
`split` and `fold_in` make new keys. Works only while a function is being traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from gspmd.frontend.config import default_float, default_int
from gspmd.frontend.numpy_core import broadcast_to, cast_to, constant, full_of, lift, shape_of, spread
from gspmd.frontend.numpy_creation import iota
from gspmd.frontend.numpy_index import take
from gspmd.frontend.numpy_logic import less
from gspmd.frontend.numpy_math import clip, maximum
from gspmd.frontend.numpy_reduce import argmax
from gspmd.frontend.numpy_shape import stack
from gspmd.frontend.numpy_sort import argsort
from gspmd.frontend.numpy_special import log
from gspmd.frontend.scope import current_scope, trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit, emit_all
from gspmd.ir.dtypes import DTYPES, DType, as_dtype, dtype_kind, is_float, is_integer
from gspmd.ops import elementwise as ew
from gspmd.ops.random import THREEFRY2X32, uniform_from_bits
from gspmd.ops.special import ERF_INV

__all__ = [
    "bernoulli", "bits", "categorical", "exponential", "fold_in", "gumbel", "key", "normal", "permutation", "randint",
    "split", "truncated_normal", "uniform",
]  # fmt: skip

Shape = int | Sequence[int]
_U32, _U64 = DTYPES["u32"], DTYPES["u64"]


def key(seed: ArrayLike) -> Tracer:
    """A key from a number; of a traced one its low 32 bits count."""
    if isinstance(seed, Tracer):
        return stack([full_of(0, _U32, ()), cast_to(seed, _U32)])
    number = int(np.asarray(seed))
    return constant(np.array([number >> 32 & 0xFFFFFFFF if number >= 0 else 0, number & 0xFFFFFFFF], np.uint32))


PRNGKey = key


def _shape(shape: Shape) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)


def _words(source: ArrayLike) -> tuple[Tracer, Tracer]:
    """The two words of a key."""
    held = lift(source)
    if held.dtype != _U32 or held.shape != (2,):
        raise trace_error(f"a key is u32[2], got {held.type.bare.text()}", rule="random.C1", fix="use gspmd.random.key")
    return held[0], held[1]


def _places(shape: tuple[int, ...]) -> tuple[Tracer, Tracer]:
    """The high and the low word of each element's row-major place."""
    dtype = _U32 if prod(shape) <= 1 << 32 else _U64
    total, stride = full_of(0, dtype, shape), 1
    for d in reversed(range(len(shape))):
        if shape[d] > 1:
            line = iota(shape, dtype, d)
            line = line if stride == 1 else line * full_of(stride, dtype, shape)
            total = line if stride == 1 else total + line
        stride *= shape[d]
    if dtype == _U32:
        return full_of(0, _U32, shape), total
    return cast_to(total >> full_of(32, _U64, shape), _U32), cast_to(total, _U32)


def _pairs(source: ArrayLike, shape: tuple[int, ...]) -> tuple[Tracer, Tracer]:
    first, second = emit_all(THREEFRY2X32, [*_words(source), *_places(shape)])
    return first, second


def split(source: ArrayLike, num: Shape = 2) -> Tracer:
    """New keys, independent of each other and of the old one: an array of shape [num, 2] to index or unpack."""
    return stack(_pairs(source, _shape(num)), axis=-1)


def fold_in(source: ArrayLike, data: ArrayLike) -> Tracer:
    """A new key from a key and a number, such as a step or a layer."""
    number = (
        cast_to(data, _U32) if isinstance(data, Tracer) else constant(np.uint32(int(np.asarray(data)) & 0xFFFFFFFF))
    )
    return stack(emit_all(THREEFRY2X32, [*_words(source), full_of(0, _U32, ()), number]))


def bits(source: ArrayLike, shape: Shape = (), dtype: Any = "u32") -> Tracer:
    """Random unsigned integers, every bit of them."""
    wanted = as_dtype(dtype)
    if dtype_kind(wanted) != "uint" or wanted.kind == "V":
        raise trace_error(f"bits come as unsigned integers, not as {wanted}", rule="random.C2")
    first, second = _pairs(source, _shape(shape))
    if wanted.itemsize == 8:
        high = cast_to(first, _U64) << full_of(32, _U64, first.shape)
        return high | cast_to(second, _U64)
    return cast_to(first ^ second, wanted)


def _float(dtype: Any) -> DType:
    found = default_float() if dtype is None else as_dtype(dtype)
    if not is_float(found) or found.itemsize == 1:
        raise trace_error(f"this distribution is of floats, not of {found}", rule="random.C3")
    return found


def _unit(source: ArrayLike, shape: tuple[int, ...], dtype: DType) -> Tracer:
    """Numbers in [0, 1)."""
    width = {"float64": "u64", "float32": "u32", "float16": "u16", "bfloat16": "u8"}[dtype.name]
    drawn = bits(source, shape, width)
    scope = current_scope()
    return Tracer(uniform_from_bits(scope.builder, drawn.value, dtype), scope)


def uniform(
    source: ArrayLike, shape: Shape = (), dtype: Any = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Tracer:
    """Numbers in [minval, maxval)."""
    wanted, wide = _float(dtype), _shape(shape)
    low, high = (cast_to(v, wanted) for v in (minval, maxval))
    span = broadcast_to(high - low, wide)
    low = broadcast_to(low, wide)
    return maximum(low, _unit(source, wide, wanted) * span + low)


def normal(source: ArrayLike, shape: Shape = (), dtype: Any = None) -> Tracer:
    """Numbers of the standard normal distribution."""
    wanted = _float(dtype)
    low = float(np.nextafter(wanted.type(-1), wanted.type(0)))
    drawn = uniform(source, shape, wanted, low, 1.0)
    return emit(ERF_INV, drawn) * sqrt(2)


def bernoulli(source: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None) -> Tracer:
    """True with probability p."""
    chance = lift(p)
    if not is_float(chance.dtype):
        chance = cast_to(chance, default_float())
    wide = chance.shape if shape is None else _shape(shape)
    return less(uniform(source, wide, chance.dtype), broadcast_to(chance, wide))


def randint(source: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: Any = None) -> Tracer:
    """Integers in [minval, maxval), minval where that is empty."""
    wanted, wide = default_int() if dtype is None else as_dtype(dtype), _shape(shape)
    if not is_integer(wanted) or wanted.kind == "V":
        raise trace_error(f"randint gives integers of 8 to 64 bits, not {wanted}", rule="random.C4")
    low, top = np.iinfo(wanted).min, np.iinfo(wanted).max
    if wanted.itemsize < 4:  # in 32 bits, where the remainder's bias is smaller
        bounds = [clip(cast_to(v, DTYPES["i32"]), int(low), int(top) + 1) for v in (minval, maxval)]
        return cast_to(_integers(source, wide, bounds[0], bounds[1], DTYPES["i32"], False), wanted)
    beyond = isinstance(maxval, int) and maxval > top
    return _integers(source, wide, minval, int(top) if beyond else maxval, wanted, beyond)


def _integers(
    source: ArrayLike, shape: tuple[int, ...], minval: ArrayLike, maxval: ArrayLike, dtype: DType, inclusive: bool
) -> Tracer:
    """Twice as many bits as the dtype has, modulo the span; a span of all values is the 0 that they wrap to."""
    unsigned = DTYPES[f"u{8 * dtype.itemsize}"]
    keys = split(source)
    high, low = bits(keys[0], shape, unsigned), bits(keys[1], shape, unsigned)
    first, last = spread(minval, dtype, shape), spread(maxval, dtype, shape)
    one = full_of(1, unsigned, shape)
    span = emit(ew.SELECT, last <= first, one, cast_to(last - first, unsigned))
    if inclusive:
        span = emit(ew.SELECT, last <= first, span, span + one)
    factor = emit(ew.REMAINDER, full_of(1 << 4 * dtype.itemsize, unsigned, shape), span)
    factor = emit(ew.REMAINDER, factor * factor, span)
    offset = emit(ew.REMAINDER, emit(ew.REMAINDER, high, span) * factor + emit(ew.REMAINDER, low, span), span)
    return first + cast_to(offset, dtype)


def exponential(source: ArrayLike, shape: Shape = (), dtype: Any = None) -> Tracer:
    """Numbers of the exponential distribution with mean 1."""
    return -emit(ew.LOG_PLUS_ONE, -uniform(source, shape, dtype))


def gumbel(source: ArrayLike, shape: Shape = (), dtype: Any = None) -> Tracer:
    """Numbers of the standard Gumbel distribution."""
    wanted = _float(dtype)
    least = float(np.finfo(wanted).tiny) if wanted.kind == "f" else 2.0**-126
    return -log(-log(uniform(source, shape, wanted, least, 1.0)))


def categorical(source: ArrayLike, logits: ArrayLike, axis: int = -1) -> Tracer:
    """Indices along an axis, drawn with the probabilities softmax(logits)."""
    held = lift(logits)
    return argmax(gumbel(source, held.shape, held.dtype) + held, axis)


def truncated_normal(source: ArrayLike, lower: float, upper: float, shape: Shape = (), dtype: Any = None) -> Tracer:
    """Numbers of the standard normal distribution between two bounds."""
    wanted = _float(dtype)
    low, high = (emit(ew.ERF, full_of(v / sqrt(2), wanted, ())) for v in (lower, upper))
    drawn = emit(ERF_INV, uniform(source, shape, wanted, low, high)) * sqrt(2)
    least = float(np.nextafter(wanted.type(lower), wanted.type(np.inf)))
    most = float(np.nextafter(wanted.type(upper), wanted.type(-np.inf)))
    wide = drawn.shape
    return emit(ew.CLAMP, spread(least, wanted, wide), drawn, spread(most, wanted, wide))


def permutation(source: ArrayLike, x: ArrayLike) -> Tracer:
    """The numbers below x, or the rows of x, in random order."""
    held = x if not isinstance(x, (int, np.integer)) else None
    count = shape_of(held)[0] if held is not None else int(np.asarray(x))
    order = argsort(bits(source, (count,), "u64"))
    return order if held is None else take(held, order, axis=0)
