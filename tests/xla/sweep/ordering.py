"""sort, top_k and random bits."""

from __future__ import annotations

import numpy as np

from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    EVERY,
    FLOATS,
    UINTS,
    WHOLE,
    Case,
    Draw,
    Generator,
    Type,
    apply,
    choose,
    draw_shape,
    flip,
    integer,
    random,
    region,
    single,
    type_of,
)

_REAL = ("bool", *WHOLE, *FLOATS)
_BOOL: Type = ("bool", ())


def _compared(direction: str, left: str, right: str, t: Type, total: bool = False) -> str:
    attrs = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    if total:
        attrs += ", compare_type = #stablehlo<comparison_type TOTALORDER>"
    return apply("stablehlo.compare", [left, right], [t, t], [_BOOL], attrs)


def _sort(draw: Draw, dtype: str) -> Case:
    """One key, up or down, floats in their total order at times; other operands go along."""
    shape = draw_shape(draw, 1, 3, most=9)
    dim, down, stable = integer(draw, 0, len(shape) - 1), flip(draw), flip(draw)
    total = dtype in FLOATS and flip(draw)
    fill = values.wide if total or dtype not in FLOATS else values.finite
    count = integer(draw, 1, 3) if stable else 1
    others = [choose(draw, EVERY) for _ in range(count - 1)]
    arrays = [fill(random(draw), dtype, shape), *(values.wide(random(draw), o, shape) for o in others)]
    if total:
        # All NaN are the same here: the order of NaN by their bits would tell XLA's from NumPy's.
        arrays[0] = np.where(np.isnan(arrays[0]), np.array(np.nan, arrays[0].dtype), arrays[0])
    elif dtype in FLOATS:
        arrays[0] = (arrays[0] + 0).astype(arrays[0].dtype)  # without -0.0
    params = [(k, ()) for k in (dtype, *others) for _ in range(2)]
    body = region(params, [f"%c = {_compared('GT' if down else 'LT', '%p0', '%p1', (dtype, ()), total)}"], ["%c"],
                  [_BOOL])  # fmt: skip
    attrs = f"dimension = {dim} : i64, is_stable = {str(stable).lower()}"
    text = single("stablehlo.sort", arrays, [type_of(x) for x in arrays], attrs, [body])
    return Case("sort", dtype, text, tuple(arrays), exact=True, moves=True)


def _sort_by_two(draw: Draw, dtype: str) -> Case:
    """By a first key, and of equal ones by a second."""
    shape = draw_shape(draw, 1, 2, most=9)
    dim = integer(draw, 0, len(shape) - 1)
    arrays = tuple(np.round(values.ordinary(random(draw), dtype, shape)).astype(type_dtype) for type_dtype in
                   [values.ordinary(random(draw), dtype, ()).dtype] * 2)  # fmt: skip
    arrays = tuple((x + x.dtype.type(0)).astype(x.dtype) for x in arrays)
    t: Type = (dtype, ())
    lines = [
        f"%a = {_compared(choose(draw, ('LT', 'GT')), '%p0', '%p1', t)}",
        f"%e = {_compared('EQ', '%p0', '%p1', t)}",
        f"%b = {_compared(choose(draw, ('LT', 'GT')), '%p2', '%p3', t)}",
        f"%t = {apply('stablehlo.and', ['%e', '%b'], [_BOOL, _BOOL], [_BOOL])}",
        f"%c = {apply('stablehlo.or', ['%a', '%t'], [_BOOL, _BOOL], [_BOOL])}",
    ]
    attrs = f"dimension = {dim} : i64, is_stable = true"
    body = region([t] * 4, lines, ["%c"], [_BOOL])
    text = single("stablehlo.sort", arrays, [type_of(x) for x in arrays], attrs, [body])
    return Case("sort", dtype, text, arrays, exact=True, moves=True)


def _sort_by_magnitude(draw: Draw, dtype: str) -> Case:
    """A comparator that is no plain comparison of its parameters."""
    shape = draw_shape(draw, 1, 2, most=9)
    dim = integer(draw, 0, len(shape) - 1)
    x = values.finite(random(draw), dtype, shape)
    t: Type = (dtype, ())
    lines = [
        f"%l = {apply('stablehlo.abs', ['%p0'], [t], [t])}",
        f"%r = {apply('stablehlo.abs', ['%p1'], [t], [t])}",
        f"%c = {_compared('LT', '%l', '%r', t)}",
    ]
    attrs = f"dimension = {dim} : i64, is_stable = true"
    text = single("stablehlo.sort", (x,), [type_of(x)], attrs, [region([t, t], lines, ["%c"], [_BOOL])])
    return Case("sort", dtype, text, (x,), exact=True, moves=True)


def _top_k(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3, least=1, most=9)
    k = integer(draw, 1, shape[-1])
    x = values.wide(random(draw), dtype, shape)
    if dtype in FLOATS:
        x = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
        x = np.where(x == 0, x.dtype.type(0), x).astype(x.dtype)
    out = (*shape[:-1], k)
    text = single("chlo.top_k", (x,), [(dtype, out), ("i32", out)], f"k = {k} : i64")
    return Case("top_k", dtype, text, (x,), exact=True, moves=True)


def _random_bits(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 3, least=1)
    algorithm = choose(draw, ("THREE_FRY", "PHILOX", "DEFAULT"))
    words = 3 if algorithm == "PHILOX" and flip(draw) else 2
    state = values.wide(random(draw), "u64", (words,))
    attrs = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    text = single("stablehlo.rng_bit_generator", (state,), [("u64", (words,)), (dtype, shape)], attrs)
    return Case("rng_bit_generator", dtype, text, (state,), exact=True)


GENERATORS = (
    Generator("sort", _REAL, _sort, 6),
    Generator("sort", (*WHOLE, *FLOATS), _sort_by_two, 2),
    Generator("sort", ("i8", "i32", "i64", *FLOATS), _sort_by_magnitude, 2),
    Generator("top_k", (*WHOLE, *FLOATS), _top_k, 3),
    Generator("rng_bit_generator", UINTS, _random_bits, 6),
)
