"""while, case and if: counted and uncounted loops, captured values, branch indices out of range."""

from __future__ import annotations

import numpy as np

from gspmd.ir.dtypes import DTYPES
from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    WHOLE,
    Case,
    Draw,
    Generator,
    Type,
    apply,
    choose,
    draw_shape,
    flip,
    function,
    integer,
    random,
    region,
    tensor,
    type_of,
)

_DTYPES = ("i32", "u8", "f32", "f64", "c64")
_COUNTERS = ("i32", "i64", "u32", "i8")


def _while(draw: Draw, dtype: str) -> Case:
    """x = x * y + x a few times: y from outside of the loop, the bound a constant or an argument."""
    shape, kind = draw_shape(draw, 0, 2, least=1), choose(draw, _COUNTERS)
    x, y = (values.ordinary(random(draw), dtype, shape, 0.5) for _ in range(2))
    start, bound, step = integer(draw, 0, 3), integer(draw, 0, 6), integer(draw, 1, 3)
    direction, constant = choose(draw, ("LT", "LE", "NE")), flip(draw)
    if direction == "NE":
        bound = start + step * integer(draw, 0, 3)
    elif constant:
        bound = max(bound, start + step)  # XLA miscounts loops that end within a step of their start
    limit = np.array(bound, DTYPES[kind])
    t, i, b = type_of(x), (kind, ()), ("bool", ())
    less = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    cond = region([i, t], [f"%c = {apply('stablehlo.compare', ['%p0', '%n'], [i, i], [b], less)}"], ["%c"], [b])
    body = region(
        [i, t],
        [
            f"%k = {apply('stablehlo.add', ['%p0', '%s'], [i, i], [i])}",
            f"%m = {apply('stablehlo.multiply', ['%p1', '%a1'], [t, t], [t])}",
            f"%z = {apply('stablehlo.add', ['%m', '%p1'], [t, t], [t])}",
        ],
        ["%k", "%z"],
        [i, t],
    )
    zero = apply("stablehlo.subtract", ["%a2", "%a2"], [i, i], [i])
    held = f"stablehlo.constant dense<{bound}> : {tensor(i)}"
    lines = [
        f"%n = {held if constant else apply('stablehlo.add', ['%a2', '%zero'], [i, i], [i])}",
        f"%s = stablehlo.constant dense<{step}> : {tensor(i)}",
        f"%i = stablehlo.constant dense<{start}> : {tensor(i)}",
        f"%r:2 = {apply('stablehlo.while', ['%i', '%a0'], [i, t], [i, t], '', [cond, body])}",
    ]
    text = function([t, t, i], [t, i], [f"%zero = {zero}", *lines], ["%r#1", "%r#0"])
    exact = dtype in WHOLE
    return Case("while", dtype, text, (x, y, limit), exact=exact, terms=16, absolute=not exact)


def _branch(op: str, t: Type) -> str:
    """A branch that uses values from outside."""
    return region([], [f"%b = {apply(f'stablehlo.{op}', ['%a1', '%a2'], [t, t], [t])}"], ["%b"], [t])


_OPS = ("add", "subtract", "multiply")


def _case(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 2)
    x, y = (values.ordinary(random(draw), dtype, shape) for _ in range(2))
    t, count = type_of(x), integer(draw, 1, 3)
    index = np.array(choose(draw, (-100, -1, 0, 1, 2, 3, 7)), np.int32)
    call = apply("stablehlo.case", ["%a0"], [("i32", ())], [t], "", [_branch(op, t) for op in _OPS[:count]])
    text = function([("i32", ()), t, t], [t], [f"%r = {call}"], ["%r"])
    return Case("case", dtype, text, (index, x, y), exact=dtype not in ("c64",), elementwise=True)


def _if(draw: Draw, dtype: str) -> Case:
    shape = draw_shape(draw, 0, 2)
    x, y = (values.ordinary(random(draw), dtype, shape) for _ in range(2))
    t = type_of(x)
    call = apply("stablehlo.if", ["%a0"], [("bool", ())], [t], "", [_branch(op, t) for op in _OPS[:2]])
    text = function([("bool", ()), t, t], [t], [f"%r = {call}"], ["%r"])
    return Case("if", dtype, text, (np.array(flip(draw)), x, y), exact=True)


GENERATORS = (
    Generator("while", _DTYPES, _while, 8),
    Generator("case", _DTYPES, _case, 4),
    Generator("if", _DTYPES, _if, 2),
)
