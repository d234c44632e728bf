"""reduce, reduce_window, select_and_scatter and map: named monoids, custom regions, several operands."""

from __future__ import annotations

from math import prod

import numpy as np

from gspmd.ir.dtypes import DTYPES
from gspmd.kernels import monoids
from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    COMPLEX,
    EIGHTHS,
    EVERY,
    FLOATS,
    WHOLE,
    Array,
    Case,
    Draw,
    Generator,
    Type,
    apply,
    choose,
    draw_shape,
    flip,
    integer,
    listed,
    pairs,
    permutation,
    random,
    region,
    single,
    subset,
    type_of,
)

_OPS = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor"}
_REAL = WHOLE + FLOATS


def _monoids(dtype: str) -> tuple[str, ...]:
    if dtype == "bool":
        return ("and", "or", "xor", "max", "min", "add")
    if dtype in COMPLEX:
        return ("add", "mul")
    return ("add", "mul", "max", "min") + (("and", "or", "xor") if dtype in WHOLE else ())


def combining(monoid: str, dtype: str, swapped: bool = False) -> str:
    """A region of two scalars that combines them."""
    t: Type = (dtype, ())
    sides = ["%p1", "%p0"] if swapped else ["%p0", "%p1"]
    return region([t, t], [f"%c = {apply(f'stablehlo.{_OPS[monoid]}', sides, [t, t], [t])}"], ["%c"], [t])


def _init(draw: Draw, monoid: str, dtype: str, terms: int = 2) -> Array:
    """The identity, or anything at all where there is something to reduce: of one element alone XLA drops the init."""
    if flip(draw) or terms < 2:
        return np.array(monoids.identity(monoid, DTYPES[dtype]))
    return values.ordinary(random(draw), dtype, ())


def summands(draw: Draw, monoid: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """What sums and products of stay finite; anything for the other monoids."""
    fill = values.finite if monoid in ("add", "mul") and dtype not in WHOLE else values.wide
    return fill(random(draw), dtype, shape)


def _is_exact(monoid: str, dtype: str) -> bool:
    return dtype in ("bool", *WHOLE)


def _reduce(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 4, most=5)
    dims = permutation(draw, subset(draw, range(len(shape))))
    monoid = choose(draw, _monoids(dtype))
    terms = prod(shape[d] for d in dims)
    x, init = summands(draw, monoid, dtype, shape), _init(draw, monoid, dtype, terms)
    out = tuple(n for d, n in enumerate(shape) if d not in dims)
    text = single("stablehlo.reduce", (x, init), [(dtype, out)], f"dimensions = {listed(dims)}",
                  [combining(monoid, dtype, flip(draw))])  # fmt: skip
    exact = _is_exact(monoid, dtype)
    extremum = monoid in ("max", "min")
    return Case("reduce", dtype, text, (x, init), exact=exact, terms=1 if extremum else max(terms, 1),
                absolute=not exact and not extremum, elementwise=extremum)  # fmt: skip


def _arg_extremum(draw: Draw, dtype: str) -> Case:
    """The greatest element and its place, as front ends write it: ties go to the lower place, NaN wins."""
    shape = draw_shape(draw, 1, 3, least=1)
    dim = integer(draw, 0, len(shape) - 1)
    index = choose(draw, ("i32", "i64", "u32"))
    x = values.wide(random(draw), dtype, shape)
    if flip(draw):
        x = values.ordinary(random(draw), dtype, shape)
    least = flip(draw)
    places = np.broadcast_to(
        np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape
    ).astype(DTYPES[index])
    start = np.array(monoids.identity("min" if least else "max", DTYPES[dtype]))
    e, i, b = (dtype, ()), (index, ()), ("bool", ())

    def compare(direction: str, left: str, right: str, t: Type) -> str:
        return apply(
            "stablehlo.compare",
            [left, right],
            [t, t],
            [b],
            f"comparison_direction = #stablehlo<comparison_direction {direction}>",
        )

    lines = [
        f"%gt = {compare('LT' if least else 'GT', '%p0', '%p2', e)}",
        f"%nan = {compare('NE', '%p0', '%p0', e)}",
        f"%first = {apply('stablehlo.or', ['%gt', '%nan'], [b, b], [b])}",
        f"%eq = {compare('EQ', '%p0', '%p2', e)}",
        f"%lt = {compare('LT', '%p1', '%p3', i)}",
        f"%tie = {apply('stablehlo.and', ['%eq', '%lt'], [b, b], [b])}",
        f"%low = {apply('stablehlo.or', ['%first', '%tie'], [b, b], [b])}",
        f"%v = {apply('stablehlo.select', ['%first', '%p0', '%p2'], [b, e, e], [e])}",
        f"%k = {apply('stablehlo.select', ['%low', '%p1', '%p3'], [b, i, i], [i])}",
    ]
    body = region([e, i, e, i], lines, ["%v", "%k"], [e, i])
    arrays = x, places, start, np.array(0, DTYPES[index])
    out = tuple(n for d, n in enumerate(shape) if d != dim)
    text = single("stablehlo.reduce", arrays, [(dtype, out), (index, out)], f"dimensions = {listed([dim])}", [body])
    return Case("reduce", dtype, text, arrays, exact=True)


def _reduce_several(draw: Draw, dtype: str) -> Case:
    """Sums, products and extrema side by side, and a region that no monoid stands for."""
    shape = draw_shape(draw, 1, 3, least=1)
    dims = subset(draw, range(len(shape)), 1)
    kinds = [choose(draw, _monoids(dtype)) for _ in range(2)]
    arrays = [summands(draw, "add", dtype, shape) for _ in kinds]
    inits = [np.array(monoids.identity(m, DTYPES[dtype])) for m in kinds]
    t: Type = (dtype, ())
    lines = [
        f"%c{i} = {apply(f'stablehlo.{_OPS[m]}', [f'%p{i}', f'%p{2 + i}'], [t, t], [t])}" for i, m in enumerate(kinds)
    ]
    out = tuple(n for d, n in enumerate(shape) if d not in dims)
    text = single("stablehlo.reduce", (*arrays, *inits), [(dtype, out)] * 2, f"dimensions = {listed(dims)}",
                  [region([t] * 4, lines, ["%c0", "%c1"], [t, t])])  # fmt: skip
    exact = dtype in ("bool", *WHOLE)
    terms = prod(shape[d] for d in dims)
    return Case("reduce", dtype, text, (*arrays, *inits), exact=exact, terms=terms, absolute=not exact)


# -- windows ---------------------------------------------------------------------------------------------------------


def _windows(draw: Draw, rank: int, shape: tuple[int, ...], plain: bool = False) -> tuple[str, tuple[int, ...], int]:
    """The attributes of a window, the result's shape, and the number of taps."""
    size = [min(choose(draw, (1, 1, 2, 3)), n + 1) for n in shape]
    stride = [choose(draw, (1, 1, 2, 3)) for _ in range(rank)]
    base = [1 if plain else choose(draw, (1, 1, 1, 2)) for _ in range(rank)]
    dilation = [1 if plain else choose(draw, (1, 1, 1, 2)) for _ in range(rank)]
    low, high = ([choose(draw, (0, 0, 1, 2)) if not plain or size[d] > 1 else 0 for d in range(rank)] for _ in range(2))
    if plain:
        low, high = ([min(p, size[d] - 1) for d, p in enumerate(side)] for side in (low, high))
    out: list[int] = []
    for d in range(rank):
        padded = low[d] + high[d] + ((shape[d] - 1) * base[d] + 1 if shape[d] else 0)
        reach = (size[d] - 1) * dilation[d] + 1
        if reach > padded:
            high[d] += reach - padded
            padded = reach
        out.append((padded - reach) // stride[d] + 1)
    attrs = f"window_dimensions = {listed(size)}, window_strides = {listed(stride)}, padding = {pairs(low, high)}"
    if not plain:
        attrs += f", base_dilations = {listed(base)}, window_dilations = {listed(dilation)}"
    return attrs, tuple(out), prod(size)


def _reduce_window(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3, least=1)
    monoid = choose(draw, _monoids(dtype))
    attrs, out, taps = _windows(draw, len(shape), shape)
    x, init = summands(draw, monoid, dtype, shape), _init(draw, monoid, dtype)
    text = single("stablehlo.reduce_window", (x, init), [(dtype, out)], attrs, [combining(monoid, dtype, flip(draw))])
    exact, extremum = _is_exact(monoid, dtype), monoid in ("max", "min")
    # XLA combines the init once a tap of padding, the specification pads with it: only an identity is the same.
    return Case("reduce_window", dtype, text, (x, init), exact=exact, terms=1 if extremum else taps,
                absolute=not exact and not extremum, elementwise=extremum)  # fmt: skip


def _cumulative(draw: Draw, dtype: str) -> Case:
    """A window that reaches back to the first element: a running sum."""
    shape = draw_shape(draw, 1, 3, least=1)
    dim, reverse = integer(draw, 0, len(shape) - 1), flip(draw)
    monoid = choose(draw, _monoids(dtype))
    n = shape[dim]
    size = [n if d == dim else 1 for d in range(len(shape))]
    before = [n - 1 if d == dim else 0 for d in range(len(shape))]
    low, high = ([0] * len(shape), before) if reverse else (before, [0] * len(shape))
    x, init = summands(draw, monoid, dtype, shape), np.array(monoids.identity(monoid, DTYPES[dtype]))
    attrs = f"window_dimensions = {listed(size)}, padding = {pairs(low, high)}"
    text = single("stablehlo.reduce_window", (x, init), [(dtype, shape)], attrs, [combining(monoid, dtype)])
    exact, extremum = _is_exact(monoid, dtype), monoid in ("max", "min")
    return Case("reduce_window", dtype, text, (x, init), exact=exact, terms=1 if extremum else n,
                absolute=not exact and not extremum, elementwise=extremum)  # fmt: skip


def _select_and_scatter(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3, least=1)
    attrs, out, taps = _windows(draw, len(shape), shape, plain=True)
    x, source = values.ordinary(random(draw), dtype, shape), values.finite(random(draw), dtype, out, 1.0)
    init = _init(draw, "add", dtype)
    t, b = (dtype, ()), ("bool", ())
    direction = f"comparison_direction = #stablehlo<comparison_direction {choose(draw, ('GE', 'LE', 'GT', 'LT'))}>"
    select = region([t, t], [f"%s = {apply('stablehlo.compare', ['%p0', '%p1'], [t, t], [b], direction)}"], ["%s"], [b])
    monoid = choose(draw, ("add", "add", "max"))
    arrays = x, source, init
    text = single("stablehlo.select_and_scatter", arrays, [(dtype, shape)], attrs, [select, combining(monoid, dtype)])
    exact = dtype in WHOLE
    return Case("select_and_scatter", dtype, text, arrays, exact=exact, terms=taps)


def _map(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3)
    arrays = tuple(values.finite(random(draw), dtype, shape) for _ in range(2))
    t: Type = (dtype, ())
    lines = [
        f"%m = {apply('stablehlo.multiply', ['%p0', '%p1'], [t, t], [t])}",
        f"%s = {apply('stablehlo.add', ['%m', '%p0'], [t, t], [t])}",
    ]
    attrs = f"dimensions = {listed(range(len(shape)))}"
    text = single("stablehlo.map", arrays, [type_of(arrays[0])], attrs, [region([t, t], lines, ["%s"], [t])])
    return Case("map", dtype, text, arrays, exact=dtype in WHOLE, absolute=dtype not in WHOLE)


GENERATORS = (
    Generator("reduce", EVERY + EIGHTHS, _reduce, 4),
    Generator("reduce", _REAL, _arg_extremum, 2),
    Generator("reduce", EVERY, _reduce_several, 1),
    Generator("reduce_window", EVERY + EIGHTHS, _reduce_window, 4),
    Generator("reduce_window", EVERY, _cumulative, 2),
    Generator("select_and_scatter", _REAL, _select_and_scatter, 3),
    Generator("map", (*WHOLE, *FLOATS, *COMPLEX), _map),
)
