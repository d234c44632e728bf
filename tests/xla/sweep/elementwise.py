"""Element-wise ops on every dtype that StableHLO allows, with special values among the operands."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    NUMBERS,
    PARTS,
    WHOLE,
    Case,
    Draw,
    Generator,
    Shape,
    Type,
    apply,
    choose,
    draw_shape,
    flip,
    function,
    integer,
    random,
    single,
    type_of,
)

REAL = WHOLE + FLOATS + NIBBLES
WHOLES = WHOLE + NIBBLES
BITS = ("bool", *WHOLES)


@dataclass(frozen=True)
class Spec:
    """An op without attributes: how many operands, of which dtypes, and where results are bits for bits the same."""

    name: str
    arity: int
    dtypes: tuple[str, ...]
    exact: bool = True
    domain: str = "wide"
    terms: int = 1
    least: float = 0.0


SPECS = (
    Spec("abs", 1, (*INTS, "i4", *FLOATS, *COMPLEX)),
    Spec("negate", 1, NUMBERS + NIBBLES),
    Spec("sign", 1, (*INTS, "i4", *FLOATS, *COMPLEX), domain="moderate"),
    Spec("ceil", 1, FLOATS),
    Spec("floor", 1, FLOATS),
    Spec("round_nearest_afz", 1, FLOATS),
    Spec("round_nearest_even", 1, FLOATS),
    Spec("is_finite", 1, FLOATS),
    Spec("not", 1, BITS),
    Spec("popcnt", 1, WHOLE),
    Spec("count_leading_zeros", 1, WHOLES),
    Spec("sqrt", 1, FLOATS + COMPLEX, domain="cut"),
    *(
        Spec(name, 1, FLOATS + COMPLEX, exact=False, domain="moderate")
        for name in (
            *("rsqrt", "cosine", "sine", "tan", "tanh", "exponential", "exponential_minus_one", "log"),
            "log_plus_one",
        )
    ),
    Spec("logistic", 1, FLOATS + COMPLEX, exact=False, domain="moderate", terms=4),
    Spec("cbrt", 1, FLOATS, exact=False),
    Spec("add", 2, EVERY + NIBBLES),
    Spec("subtract", 2, NUMBERS + NIBBLES),
    Spec("multiply", 2, EVERY + NIBBLES),
    Spec("divide", 2, NUMBERS + NIBBLES, domain="nonzero"),
    Spec("remainder", 2, REAL),
    Spec("maximum", 2, ("bool", *REAL), exact=False),
    Spec("minimum", 2, ("bool", *REAL), exact=False),
    Spec("power", 2, FLOATS + COMPLEX, exact=False, domain="power", terms=4),
    Spec("atan2", 2, FLOATS, exact=False),
    Spec("and", 2, BITS),
    Spec("or", 2, BITS),
    Spec("xor", 2, BITS),
    Spec("shift_left", 2, WHOLES),
    Spec("shift_right_arithmetic", 2, WHOLES),
    Spec("shift_right_logical", 2, WHOLES),
)


def operand_shape(draw: Draw) -> Shape:
    """Mostly room for many special values; at times a scalar or something odd."""
    return choose(draw, ((4, 24), (96,), (), (0, 3), (1, 1, 5), (3, 2, 16), (150,)))


def generator(spec: Spec, dialect: str = "stablehlo") -> Generator:
    """Cases of an op without attributes."""

    def make(draw: Draw, dtype: str) -> Case:
        shape, rng = operand_shape(draw), random(draw)
        fill = getattr(values, spec.domain)
        arrays = tuple(fill(rng, dtype, shape) for _ in range(spec.arity))
        result = {"is_finite": "bool", "abs": PARTS.get(dtype, dtype)}.get(spec.name, dtype)
        exact = (spec.exact and dtype not in COMPLEX) or dtype in BITS
        text = single(f"{dialect}.{spec.name}", arrays, [(result, shape)])
        return Case(spec.name, dtype, text, arrays, exact=exact, elementwise=True, terms=spec.terms, least=spec.least)

    return Generator(spec.name, spec.dtypes, make)


# -- with attributes or operands of different types ------------------------------------------------------------------


def _compare(draw: Draw, dtype: str) -> Case:
    shape, rng = operand_shape(draw), random(draw)
    x = values.wide(rng, dtype, shape)
    y = np.where(rng.integers(0, 3, shape) == 0, x, values.wide(rng, dtype, shape)).astype(x.dtype)
    complex_ = dtype in COMPLEX
    direction = choose(draw, ("EQ", "NE") if complex_ else ("EQ", "NE", "LT", "LE", "GT", "GE"))
    kinds = {"u": "UNSIGNED", "i": "SIGNED"}
    order = "UNSIGNED" if dtype == "bool" else kinds.get(dtype[0], "FLOAT")
    if dtype in FLOATS + EIGHTHS and flip(draw):
        order = "TOTALORDER"
    attrs = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    if order == "TOTALORDER" or flip(draw):
        attrs += f", compare_type = #stablehlo<comparison_type {order}>"
    text = single("stablehlo.compare", (x, y), [("bool", shape)], attrs)
    return Case("compare", dtype, text, (x, y), exact=True)


def _select(draw: Draw, dtype: str) -> Case:
    shape, rng = draw_shape(draw), random(draw)
    pred = rng.integers(0, 2, shape if flip(draw) else ()).astype(np.bool_)
    arrays = (np.asarray(pred), values.wide(rng, dtype, shape), values.wide(rng, dtype, shape))
    return Case("select", dtype, single("stablehlo.select", arrays, [(dtype, shape)]), arrays, exact=True, moves=True)


def _clamp(draw: Draw, dtype: str) -> Case:
    shape, rng = draw_shape(draw), random(draw)
    low, high = (values.wide(rng, dtype, shape if flip(draw) else ()) for _ in range(2))
    arrays = (low, values.wide(rng, dtype, shape), high)
    return Case("clamp", dtype, single("stablehlo.clamp", arrays, [(dtype, shape)]), arrays, elementwise=True)


CONVERTED = EVERY + NIBBLES + EIGHTHS


def _convert(draw: Draw, dtype: str) -> Case:
    rng = random(draw)
    lines: list[str] = []
    x = values.wide(rng, dtype, (40,))
    results: list[Type] = [(other, x.shape) for other in CONVERTED if other != dtype]
    for i, result in enumerate(results):
        lines.append(f"%r{i} = {apply('stablehlo.convert', ['%a0'], [type_of(x)], [result])}")
    text = function([type_of(x)], results, lines, [f"%r{i}" for i in range(len(results))])
    return Case("convert", dtype, text, (x,), exact=True)


def _reduce_precision(draw: Draw, dtype: str) -> Case:
    shape, rng = operand_shape(draw), random(draw)
    x = values.wide(rng, dtype, shape)
    attrs = f"exponent_bits = {integer(draw, 1, 11)} : i32, mantissa_bits = {integer(draw, 1, 23)} : i32"
    text = single("stablehlo.reduce_precision", (x,), [(dtype, shape)], attrs)
    return Case("reduce_precision", dtype, text, (x,), exact=True)


_WIDTHS = {name: 8 * DTYPES[name].itemsize for name in (*WHOLE, *FLOATS, *EIGHTHS)} | dict.fromkeys(NIBBLES, 4)


def _bitcast(draw: Draw, dtype: str) -> Case:
    target = choose(draw, tuple(_WIDTHS))
    shape, rng = draw_shape(draw), random(draw)
    ratio = _WIDTHS[target] / _WIDTHS[dtype]
    out: Shape = shape
    if ratio > 1:
        shape = (*shape, int(ratio))
    elif ratio < 1:
        out = (*shape, int(1 / ratio))
    if dtype[0] in "fb":
        x = values.finite(rng, dtype, shape)
        x = np.where(np.isnan(x), DTYPES[dtype].type(1), x).astype(x.dtype).reshape(shape)
    else:
        x = values.wide(rng, dtype, shape)
    text = single("stablehlo.bitcast_convert", (x,), [(target, out)])
    return Case("bitcast_convert", dtype, text, (x,), exact=True, moves=True)


def _complex(draw: Draw, dtype: str) -> Case:
    shape, rng = operand_shape(draw), random(draw)
    arrays = tuple(values.wide(rng, PARTS[dtype], shape) for _ in range(2))
    return Case("complex", dtype, single("stablehlo.complex", arrays, [(dtype, shape)]), arrays, exact=True)


def _part(name: str) -> Generator:
    def make(draw: Draw, dtype: str) -> Case:
        shape, rng = operand_shape(draw), random(draw)
        x = values.wide(rng, dtype, shape)
        text = single(f"stablehlo.{name}", (x,), [(PARTS.get(dtype, dtype), shape)])
        return Case(name, dtype, text, (x,), exact=True)

    return Generator(name, COMPLEX + FLOATS, make)


def _integer_power(draw: Draw, dtype: str) -> Case:
    """XLA looks at the lowest six bits of an exponent alone: none is greater here, and none negative."""
    shape, rng = operand_shape(draw), random(draw)
    x = values.wide(rng, dtype, shape)
    y = rng.integers(0, 64, shape).astype(x.dtype)
    text = single("stablehlo.power", (x, y), [(dtype, shape)])
    return Case("power", dtype, text, (x, y), exact=True)


GENERATORS = (
    Generator("power", WHOLE, _integer_power),
    *map(generator, SPECS),
    *(replace(generator(s), dtypes=EIGHTHS) for s in SPECS if "f16" in s.dtypes and "c64" in s.dtypes),
    Generator("compare", EVERY + NIBBLES + EIGHTHS, _compare, 5),
    Generator("select", EVERY + NIBBLES + EIGHTHS, _select, 2),
    Generator("clamp", REAL, _clamp, 3),
    Generator("convert", CONVERTED, _convert, 2),
    Generator("reduce_precision", FLOATS + EIGHTHS, _reduce_precision, 6),
    Generator("bitcast_convert", tuple(_WIDTHS), _bitcast, 3),
    Generator("complex", COMPLEX, _complex),
    _part("real"),
    _part("imag"),
)
