"""Cells beyond the end of a tensor, and how an op keeps them out of its results (paper section 4.4).

A shard's buffer has a chunk of cells in each dimension; those beyond the tensor's end hold anything. Where they could
reach a result they are replaced by a neutral element first: by the identity of the monoid that a reduction combines
with, by zero on every operand of a contraction (zero on one alone would still multiply infinities and NaNs).
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.graph import Value
from gspmd.ir.rule import Factor, Rule
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import identity
from gspmd.ops.elementwise import AND, REMAINDER, SELECT
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import IOTA, scalar
from gspmd.ops.moving import PAD, SLICE

I32 = "i32"


def positions(builder: Builder, shape: Sequence[int], dim: int, offset: Value | None, dtype: str = I32) -> Value:
    """Global positions along a dimension of a local shape whose first element is at `offset` (None: at 0)."""
    counted = Expression(builder, IOTA(builder, shape=ResultShape(shape), dtype=as_dtype(I32), dimension=dim))
    if offset is not None:
        counted = counted + Expression(builder, offset).spread(tuple(shape))
    return counted.convert(as_dtype(dtype)).value


def inside(builder: Builder, place: Value, low: int | None, high: int | None) -> Value | None:
    """Where positions lie in [low, high); None stands for no bound, and for no condition."""
    tests: list[Value] = []
    where = Expression(builder, place)
    if low is not None:
        tests.append(where.compare("GE", low).value)
    if high is not None:
        tests.append(where.compare("LT", high).value)
    if len(tests) == 2:
        return AND(builder, *tests)
    return tests[0] if tests else None


def along(builder: Builder, line: Value, shape: Sequence[int], dim: int) -> Value:
    """A vector repeated to a shape along one of its dimensions."""
    return BROADCAST_IN_DIM(builder, line, shape=ResultShape(shape), dims=(dim,))


def choose(builder: Builder, where: Value, on_true: Value, on_false: Value) -> Value:
    """`on_true` where a predicate of its shape holds, else `on_false`, which may be a scalar."""
    shape = on_true.type.shape
    if on_false.type.shape != shape:
        on_false = spread(builder, on_false, shape)
    return SELECT(builder, where, on_true, on_false)


def masked(builder: Builder, value: Value, dim: int, offset: Value | None, size: int, fill: Value) -> Value:
    """The value with a scalar fill beyond position `size` of a dimension that starts at `offset`."""
    shape = value.type.shape
    place = positions(builder, (shape[dim],), 0, offset)
    real = inside(builder, place, None, size)
    assert real is not None
    return choose(builder, along(builder, real, shape, dim), value, fill)


def fit(builder: Builder, value: Value, dim: int, size: int) -> Value:
    """The value with so many elements along a dimension: cut off at the end, or padded there with zeros."""
    shape = value.type.shape
    if shape[dim] == size:
        return value
    if shape[dim] > size:
        limit = tuple(size if d == dim else n for d, n in enumerate(shape))
        return SLICE(builder, value, start=(0,) * len(shape), limit=limit, stride=(1,) * len(shape))
    high = tuple(size - n if d == dim else 0 for d, n in enumerate(shape))
    none = (0,) * len(shape)
    return PAD(builder, value, zero(builder, value), low=none, high=high, interior=none)


def zero(builder: Builder, like: Value) -> Value:
    """A scalar zero of a value's dtype."""
    return scalar(builder, 0, like.type.dtype)


def neutral(builder: Builder, rule: Rule, factor: int, like: Value) -> Value:
    """What padding must hold along a factor that is combined: zero if several operands carry it, else the identity."""
    f = rule.factors[factor]
    if f.monoid is None or carriers(rule, factor) > 1:
        return zero(builder, like)
    return scalar(builder, identity(f.monoid, like.type.dtype), like.type.dtype)


def carriers(rule: Rule, factor: int) -> int:
    """How many operands have a dimension that is this factor."""
    return sum((factor,) in operand for operand in rule.operands)


def combines(factor: Factor) -> bool:
    """Whether padding at the end of a split factor reaches real results."""
    return factor.kind == "reduce" or (factor.kind == "scan" and factor.reverse)


def spread(builder: Builder, value: Value, shape: Sequence[int]) -> Value:
    """A scalar repeated to a shape."""
    return value if not shape else BROADCAST_IN_DIM(builder, value, shape=ResultShape(shape), dims=())


def converted(builder: Builder, value: Value, type_: TensorType) -> Value:
    """The value in the element type of another."""
    return Expression(builder, value).convert(type_.dtype).value


def remainder(builder: Builder, value: Value, divisor: int) -> Value:
    """A natural number modulo a constant."""
    return REMAINDER(builder, value, scalar(builder, divisor, value.type.dtype))
