"""Cells of a device's buffer: where they lie in the tensor, and choices by position (paper section 4.1).

A buffer holds a run of a dimension's positions. What lies outside the tensor is told by position, the only thing that
differs from device to device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes, parts
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DType, as_dtype
from gspmd.ir.graph import Value
from gspmd.ops.elementwise import AND, SELECT
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.fetch_plan import Reading, geometry
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import IOTA, scalar

I32 = "i32"


def positions(
    builder: Builder, shape: Sequence[int], dim: int, offset: Value | None, dtype: DType | str = I32
) -> Value:
    """Global positions along a dimension of a local shape whose first element is at `offset` (None: at 0)."""
    counted = Expression(builder, IOTA(builder, shape=ResultShape(shape), dtype=as_dtype(I32), dimension=dim))
    if offset is not None:
        counted = counted + Expression(builder, offset).spread(tuple(shape))
    return counted.convert(as_dtype(dtype)).value


def first_read(builder: Builder, r: Reading, index: Callable[[Axes], Value]) -> Expression:
    """The position that a fetch's buffer begins with (`Geometry.low`), from the device's `index` along axes."""
    g = geometry(r)
    low = Expression(builder, index(r.to_axes)) * g.scale / g.block * g.slope + g.base
    split = g.kslope and parts(r.k_axes) > 1
    return low + Expression(builder, index(r.k_axes)) * g.kslope if split else low


def replaced_outside(builder: Builder, x: Value, dim: int, low: Value, size: int, fill: Value) -> Value:
    """`x`, which begins at position `low` of a dimension of `size` elements, with a scalar fill beyond its ends."""
    return choose(builder, within(builder, x.type.shape, dim, low, 0, size), x, fill)


def within(builder: Builder, shape: Sequence[int], dim: int, offset: Value | None, low: int | None, high: int) -> Value:
    """For each cell of a shape whose first one is at `offset`, whether its position along a dim is in [low, high)."""
    real = inside(builder, positions(builder, (shape[dim],), 0, offset), low, high)
    assert real is not None
    return along(builder, real, shape, dim)


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


def both(builder: Builder, first: Value | None, second: Value) -> Value:
    """Where two conditions hold; None stands for no condition."""
    return second if first is None else AND(builder, first, second)


def along(builder: Builder, line: Value, shape: Sequence[int], dim: int) -> Value:
    """A vector repeated to a shape along one of its dimensions."""
    return BROADCAST_IN_DIM(builder, line, shape=ResultShape(shape), dims=(dim,))


def choose(builder: Builder, where: Value, on_true: Value, on_false: Value) -> Value:
    """`on_true` where a predicate of its shape holds, else `on_false`, which may be a scalar."""
    return SELECT(builder, where, on_true, spread(builder, on_false, on_true.type.shape))


def spread(builder: Builder, value: Value, shape: Sequence[int]) -> Value:
    """A scalar repeated to a shape; a value that has the shape already as it is."""
    if value.type.shape == tuple(shape):
        return value
    return BROADCAST_IN_DIM(builder, value, shape=ResultShape(shape), dims=())


def zero(builder: Builder, like: Value) -> Value:
    """A scalar zero of a value's dtype."""
    return scalar(builder, 0, like.type.dtype)
