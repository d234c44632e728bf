"""Ops that move elements: broadcasts, transposes, slices, pads, concatenations, and what makes arrays from nothing."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gspmd.ir.dtypes import DTYPES
from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    COMPLEX,
    EIGHTHS,
    EVERY,
    FLOATS,
    INTS,
    NIBBLES,
    PARTS,
    WHOLE,
    Array,
    Case,
    Draw,
    Generator,
    Shape,
    apply,
    choose,
    draw_shape,
    flip,
    function,
    integer,
    listed,
    permutation,
    random,
    single,
    subset,
    tensor,
    type_of,
)

ANY = EVERY + NIBBLES + EIGHTHS


def moved(op: str, dtype: str, text: str, arrays: tuple[Array, ...]) -> Case:
    """A case that moves elements."""
    return Case(op, dtype, text, arrays, exact=True, moves=True)


def _filled(draw: Draw, dtype: str, shape: Shape) -> Array:
    return values.wide(random(draw), dtype, shape)


def _broadcast_in_dim(draw: Draw, dtype: str) -> Case:
    out = draw_shape(draw, 0, 4)
    dims = subset(draw, range(len(out)))
    if flip(draw):
        dims = permutation(draw, dims)
    x = _filled(draw, dtype, tuple(out[d] if flip(draw) else 1 for d in dims))
    text = single("stablehlo.broadcast_in_dim", (x,), [(dtype, out)], f"broadcast_dimensions = {listed(dims)}")
    return moved("broadcast_in_dim", dtype, text, (x,))


def _transpose(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 4)
    order = permutation(draw, range(len(shape)))
    x = _filled(draw, dtype, shape)
    result = tuple(shape[d] for d in order)
    return moved("transpose", dtype, single("stablehlo.transpose", (x,), [(dtype, result)],
                                            f"permutation = {listed(order)}"), (x,))  # fmt: skip


def _reshape(draw: Draw, dtype: str) -> Case:
    factors = [choose(draw, (1, 2, 2, 3, 5)) for _ in range(integer(draw, 0, 5))]
    if flip(draw) and factors and integer(draw, 0, 9) == 0:
        factors[0] = 0

    def grouped() -> Shape:
        left, out = permutation(draw, factors), list[int]()
        while left:
            n = integer(draw, 1, len(left))
            out.append(prod(left[:n]))
            left = left[n:]
        return tuple(out)

    x, result = _filled(draw, dtype, grouped()), grouped()
    if not factors:
        result = (1,) * integer(draw, 0, 2)
    return moved("reshape", dtype, single("stablehlo.reshape", (x,), [(dtype, result)]), (x,))


def _slice(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 3, most=9)
    start = [integer(draw, 0, n) for n in shape]
    limit = [integer(draw, a, n) for a, n in zip(start, shape, strict=True)]
    stride = [integer(draw, 1, 4) for _ in shape]
    result = tuple(len(range(*part)) for part in zip(start, limit, stride, strict=True))
    attrs = f"start_indices = {listed(start)}, limit_indices = {listed(limit)}, strides = {listed(stride)}"
    x = _filled(draw, dtype, shape)
    return moved("slice", dtype, single("stablehlo.slice", (x,), [(dtype, result)], attrs), (x,))


def _pad(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 3)
    interior = [integer(draw, 0, 2) for _ in shape]
    spaced = [n + max(n - 1, 0) * g for n, g in zip(shape, interior, strict=True)]
    low = [integer(draw, -3, 3) for _ in shape]
    high = [max(integer(draw, -3, 3), -(n + lo)) for n, lo in zip(spaced, low, strict=True)]
    result = tuple(n + lo + hi for n, lo, hi in zip(spaced, low, high, strict=True))
    attrs = (
        f"edge_padding_low = {listed(low)}, edge_padding_high = {listed(high)}, interior_padding = {listed(interior)}"
    )
    arrays = _filled(draw, dtype, shape), _filled(draw, dtype, ())
    return moved("pad", dtype, single("stablehlo.pad", arrays, [(dtype, result)], attrs), arrays)


def _concatenate(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3)
    dim = integer(draw, 0, len(shape) - 1)
    lengths = [integer(draw, 0, 4) for _ in range(integer(draw, 1, 4))]
    arrays = tuple(_filled(draw, dtype, (*shape[:dim], n, *shape[dim + 1 :])) for n in lengths)
    result = (*shape[:dim], sum(lengths), *shape[dim + 1 :])
    text = single("stablehlo.concatenate", arrays, [(dtype, result)], f"dimension = {dim} : i64")
    return moved("concatenate", dtype, text, arrays)


def _reverse(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 3)
    dims = permutation(draw, subset(draw, range(len(shape))))
    x = _filled(draw, dtype, shape)
    return moved("reverse", dtype, single("stablehlo.reverse", (x,), [(dtype, shape)], f"dimensions = {listed(dims)}"),
                 (x,))  # fmt: skip


def starts_of(draw: Draw, rank: int) -> tuple[str, tuple[Array, ...]]:
    """Scalar start indices, some out of range."""
    kind = choose(draw, WHOLE)
    low = -4 if kind[0] == "i" else 0
    drawn = [np.array(choose(draw, (low, 0, 1, 2, 3, 5, 9, 100))).astype(DTYPES[kind]) for _ in range(rank)]
    return kind, tuple(drawn)


def _dynamic_slice(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3)
    sizes = tuple(integer(draw, 0 if n == 0 else 1, n) for n in shape)
    _, starts = starts_of(draw, len(shape))
    arrays = (_filled(draw, dtype, shape), *starts)
    text = single("stablehlo.dynamic_slice", arrays, [(dtype, sizes)], f"slice_sizes = {listed(sizes)}")
    return moved("dynamic_slice", dtype, text, arrays)


def _dynamic_update_slice(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3)
    sizes = tuple(integer(draw, 0 if n == 0 else 1, n) for n in shape)
    _, starts = starts_of(draw, len(shape))
    arrays = (_filled(draw, dtype, shape), _filled(draw, dtype, sizes), *starts)
    text = single("stablehlo.dynamic_update_slice", arrays, [(dtype, shape)])
    return moved("dynamic_update_slice", dtype, text, arrays)


def _iota(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 1, 3, most=7)
    dim = integer(draw, 0, len(shape) - 1)
    return moved("iota", dtype, single("stablehlo.iota", (), [(dtype, shape)], f"iota_dimension = {dim} : i64"), ())


def _number(x: float, dtype: str) -> str:
    """A number in MLIR: floats as their bits where there is no decimal form."""
    if dtype == "bool":
        return "true" if x else "false"
    if dtype[0] in "iu":
        return str(int(x))
    held = np.array(x, DTYPES[dtype])
    return f"0x{held.view(f'u{held.itemsize}'):0{2 * held.itemsize}X}"


def _constant(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 2, most=4)
    x = _filled(draw, dtype, shape)
    part = PARTS.get(dtype, dtype)

    def shown(v: Any) -> str:
        if dtype in COMPLEX:
            return f"({_number(v.item().real, part)}, {_number(v.item().imag, part)})"
        return _number(v.item() if dtype not in NIBBLES else int(v), part)

    def nested(v: Array) -> str:
        return shown(v) if v.ndim == 0 else f"[{', '.join(nested(np.asarray(r)) for r in v)}]"

    splat = flip(draw) or x.size == 0
    inner = shown(_filled(draw, dtype, ())) if splat else nested(x)
    type_ = tensor((dtype, shape))
    line = f"%r = stablehlo.constant dense<{inner}> : {type_}"
    return moved("constant", dtype, function([], [(dtype, shape)], [line], ["%r"]), ())


def _barrier(draw: Draw, dtype: str) -> Case:
    arrays = tuple(_filled(draw, dtype, draw_shape(draw)) for _ in range(integer(draw, 1, 3)))
    text = single("stablehlo.optimization_barrier", arrays, [type_of(x) for x in arrays])
    return moved("optimization_barrier", dtype, text, arrays)


def _tuple(draw: Draw, dtype: str) -> Case:
    arrays = tuple(_filled(draw, dtype, draw_shape(draw)) for _ in range(2))
    types = [type_of(x) for x in arrays]
    held = f"tuple<{', '.join(map(tensor, types))}>"
    lines = [f'%t = "stablehlo.tuple"(%a0, %a1) : ({", ".join(map(tensor, types))}) -> {held}']
    for i in range(2):
        lines.append(
            f'%r{i} = "stablehlo.get_tuple_element"(%t) {{index = {i} : i32}} : ({held}) -> {tensor(types[i])}'
        )
    return moved("tuple", dtype, function(types, types[::-1], lines, ["%r1", "%r0"]), arrays)


def _composite(draw: Draw, dtype: str) -> Case:
    x = _filled(draw, dtype, draw_shape(draw, 1, 3))
    t = type_of(x)
    inner = apply("stablehlo.reverse", ["%a0"], [t], [t], f"dimensions = {listed([0])}")
    attrs = 'name = "my.op", decomposition = @inner, composite_attributes = {n = 1 : i32}, version = 2 : i32'
    outer = function([t], [t], [f"%r = {apply('stablehlo.composite', ['%a0'], [t], [t], attrs)}"], ["%r"])
    body = function([t], [t], [f"%r = {inner}"], ["%r"]).replace("public @main", "private @inner")
    return moved("composite", dtype, f"{outer}\n{body}", (x,))


def _dimension_size(draw: Draw, dtype: str) -> Case:
    x = _filled(draw, dtype, draw_shape(draw, 1, 3))
    attrs = f"dimension = {integer(draw, 0, x.ndim - 1)} : i64"
    return moved("get_dimension_size", dtype, single("stablehlo.get_dimension_size", (x,), [("i32", ())], attrs), (x,))


GENERATORS = (
    Generator("broadcast_in_dim", ANY, _broadcast_in_dim, 3),
    Generator("transpose", ANY, _transpose, 2),
    Generator("reshape", ANY, _reshape, 2),
    Generator("slice", ANY, _slice, 2),
    Generator("pad", EVERY + EIGHTHS, _pad, 4),
    Generator("concatenate", ANY, _concatenate, 2),
    Generator("reverse", ANY, _reverse, 2),
    Generator("dynamic_slice", EVERY, _dynamic_slice, 2),
    Generator("dynamic_update_slice", EVERY, _dynamic_update_slice, 3),
    Generator("iota", INTS + WHOLE[4:] + FLOATS + COMPLEX, _iota, 2),
    Generator("constant", ANY, _constant, 2),
    Generator("optimization_barrier", ("f32", "i8"), _barrier),
    Generator("tuple", ("f32", "bool"), _tuple),
    Generator("composite", ("f32", "i32"), _composite),
    Generator("get_dimension_size", ("f32",), _dimension_size),
)
