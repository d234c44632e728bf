"""CHLO's functions: those that JAX emits, and the element-wise ops that broadcast their operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    COMPLEX,
    EVERY,
    FLOATS,
    NUMBERS,
    WHOLE,
    Array,
    Case,
    Draw,
    Generator,
    Shape,
    choose,
    draw_shape,
    flip,
    listed,
    random,
    single,
)
from tests.xla.sweep.elementwise import Spec, generator, operand_shape

_PREDICATES = ("is_inf", "is_pos_inf", "is_neg_inf")
SPECS = (
    *(Spec(name, 1, FLOATS + COMPLEX, exact=False, domain="trig") for name in
      ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "square", "tan")),
    *(Spec(name, 1, FLOATS, exact=False) for name in
      ("erf", "erfc", "bessel_i1e")),
    *(Spec(name, 1, FLOATS, exact=False, terms=10, least=1.0) for name in ("lgamma", "digamma")),
    Spec("erf_inv", 1, FLOATS, exact=False, terms=10),
    Spec("mulhi", 2, WHOLE),
    Spec("conj", 1, COMPLEX),
    Spec("next_after", 2, ("f16", "bf16", "f32", "f64")),
)  # fmt: skip


def _predicate(name: str) -> Generator:
    def make(draw: Draw, dtype: str) -> Case:
        shape, rng = operand_shape(draw), random(draw)
        x = values.wide(rng, dtype, shape)
        return Case(name, dtype, single(f"chlo.{name}", (x,), [("bool", shape)]), (x,), exact=True)

    return Generator(name, FLOATS, make)


def _pairs(name: str, left: Callable[..., Array], right: Callable[..., Array]) -> Generator:
    def make(draw: Draw, dtype: str) -> Case:
        shape, rng = operand_shape(draw), random(draw)
        arrays = left(rng, dtype, shape), right(rng, dtype, shape)
        text = single(f"chlo.{name}", arrays, [(dtype, shape)])
        return Case(name, dtype, text, arrays, elementwise=True, terms=10)

    return Generator(name, ("f32", "f64"), make)


def _orders(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    return rng.integers(1, 6, shape).astype(values.ordinary(rng, dtype, ()).dtype)


def _above_one(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    return (1.05 + np.abs(values.ordinary(rng, dtype, shape, 3.0))).astype(values.ordinary(rng, dtype, ()).dtype)


def _positive(rng: np.random.Generator, dtype: str, shape: Shape) -> Array:
    return (0.05 + np.abs(values.ordinary(rng, dtype, shape, 3.0))).astype(values.ordinary(rng, dtype, ()).dtype)


_BROADCAST = ("add", "subtract", "multiply", "maximum", "minimum", "divide", "power", "remainder", "atan2")


def _broadcast(name: str) -> Generator:
    def make(draw: Draw, dtype: str) -> Case:
        shape, rng = draw_shape(draw, 0, 3, least=1), random(draw)
        shapes = [tuple(n if flip(draw) else 1 for n in shape), shape]
        attrs = ""
        if flip(draw) and len(shape) > 1:
            shapes[0] = shape[1:]
            attrs = f"broadcast_dimensions = {listed(range(1, len(shape)))}"
        if flip(draw) and not attrs:
            shapes.reverse()
        arrays = tuple(values.finite(rng, dtype, s) for s in shapes)
        if name in ("divide", "remainder", "power"):
            arrays = tuple(np.where(np.abs(x) < 0.1, x.dtype.type(1), np.abs(x)).astype(x.dtype) for x in arrays)
        text = single(f"chlo.broadcast_{name}", arrays, [(dtype, shape)], attrs)
        return Case(f"broadcast_{name}", dtype, text, arrays, elementwise=True)

    dtypes = FLOATS if name in ("power", "remainder", "atan2") else NUMBERS
    return Generator(f"broadcast_{name}", dtypes if name not in ("maximum", "minimum") else FLOATS + WHOLE, make)


def _broadcast_compare(draw: Draw, dtype: str) -> Case:
    shape, rng = draw_shape(draw, 0, 3, least=1), random(draw)
    arrays = values.wide(rng, dtype, tuple(n if flip(draw) else 1 for n in shape)), values.wide(rng, dtype, shape)
    directions = ("EQ", "NE") if dtype in COMPLEX else ("EQ", "NE", "LT", "LE", "GT", "GE")
    attrs = f"comparison_direction = #chlo<comparison_direction {choose(draw, directions)}>"
    text = single("chlo.broadcast_compare", arrays, [("bool", shape)], attrs)
    return Case("broadcast_compare", dtype, text, arrays, exact=True)


GENERATORS = (
    *(generator(spec, "chlo") for spec in SPECS),
    *map(_predicate, _PREDICATES),
    _pairs("polygamma", _orders, _positive),
    _pairs("zeta", _above_one, _positive),
    *map(_broadcast, _BROADCAST),
    Generator("broadcast_compare", EVERY, _broadcast_compare),
)
