"""Ops whose region combines scalars: reduce, reduce_window, select_and_scatter, scatter, sort, map.

Where the region is one of the monoids that our ops know, the op says so and the init disappears (or is combined
afterwards, where it is not the monoid's identity); else the region stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_monoid import COMBINE, SET, comparison, is_identity, monoid_of, monoids_of
from gspmd.interop.import_scope import one
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Handler, Visit
from gspmd.interop.import_window import read_window
from gspmd.ir.attrs import Attrs, ResultShape, Window
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Region, Value
from gspmd.ops.elementwise import COMPARE, CONVERT
from gspmd.ops.indexing import SCATTER, ScatterAttrs
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.mapping import MAP
from gspmd.ops.reduce import CUSTOM, REDUCE, ReduceAttrs
from gspmd.ops.sorting import SORT, SortAttrs
from gspmd.ops.window.cumulative import CUMULATIVE_REDUCE, CumulativeReduceAttrs
from gspmd.ops.window.pooling import REDUCE_WINDOW, SELECT_AND_SCATTER
from gspmd.ops.window.reduce_window import ReduceWindowAttrs
from gspmd.ops.window.select_and_scatter import SelectAndScatterAttrs
from gspmd.ops.window.sides import is_plain

_SCATTERS = ("set", "add", "mul", "max", "min")
_BOOL_SCATTERS = {"or": "max", "and": "min"}


def scalar_region(v: Visit, number: int) -> Region:
    """A region of the op, which may use nothing from outside but constants."""
    scope = v.scope.inside(isolated=True)
    results = v.importer.block(scope, v.op.regions[number].blocks[0])
    return scope.region([], [one(r) for r in results])


# -- reduce ----------------------------------------------------------------------------------------------------------


def _reduce(v: Visit) -> Sequence[Value]:
    operands, dims = v.operands, v.ints("dimensions")
    arrays, inits = _halves(operands)
    region = scalar_region(v, 0)
    arrays = _promoted(v, arrays, [p.type.dtype for p in region.params[: len(arrays)]])
    monoids = monoids_of(region)
    if monoids is None or SET in monoids:
        return v.emit(REDUCE, (*arrays, *inits), ReduceAttrs(dims, CUSTOM), (region,))
    found: list[Value] = []
    for x, init, monoid in zip(arrays, inits, monoids, strict=True):
        (y,) = v.emit(REDUCE, (x,), ReduceAttrs(dims, monoid))
        found.append(y if _neutral(v, monoid, init) else _after(v, monoid, init, y))
    return found


def _halves(operands: tuple[Value, ...]) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    n = len(operands) // 2
    return operands[:n], operands[n:]


def _promoted(v: Visit, arrays: Sequence[Value], dtypes: Sequence[DType]) -> tuple[Value, ...]:
    """The operands in the dtypes that the region computes in."""
    pairs = zip(arrays, dtypes, strict=True)
    return tuple(x if x.type.dtype == d else CONVERT(v.builder, x, dtype=d) for x, d in pairs)


def _neutral(v: Visit, monoid: str, init: Value) -> bool:
    return is_identity(monoid, v.literal(init), init.type.dtype)


def _after(v: Visit, monoid: str, init: Value, reduced: Value) -> Value:
    """The init combined with what was reduced without it."""
    shape = reduced.type.shape
    wide = BROADCAST_IN_DIM(v.builder, init, shape=ResultShape(shape), dims=()) if shape else init
    (value,) = v.emit(COMBINE[monoid], (wide, reduced), Attrs())
    return value


# -- windows ---------------------------------------------------------------------------------------------------------

_WINDOW_NAMES = {"stride": "window_strides", "base": "base_dilations", "window": "window_dilations"}


def _reduce_window(v: Visit) -> Sequence[Value]:
    arrays, inits = _halves(v.operands)
    window = read_window(v, v.ints("window_dimensions"), _WINDOW_NAMES)
    region = scalar_region(v, 0)
    arrays = _promoted(v, arrays, [p.type.dtype for p in region.params[: len(arrays)]])
    monoids = monoids_of(region)
    named = monoids is not None and SET not in monoids
    if monoids is None or not named or not all(_neutral(v, m, i) for m, i in zip(monoids, inits, strict=True)):
        return v.emit(REDUCE_WINDOW, (*arrays, *inits), ReduceWindowAttrs(window, CUSTOM), (region,))
    found: list[Value] = []
    for x, monoid in zip(arrays, monoids, strict=True):
        running = _running(window, x.type.shape)
        if running is None:
            found += v.emit(REDUCE_WINDOW, (x,), ReduceWindowAttrs(window, monoid))
        else:
            dim, reverse = running
            found += v.emit(CUMULATIVE_REDUCE, (x,), CumulativeReduceAttrs(dim, monoid, reverse))
    return found


def _running(window: Window, shape: tuple[int, ...]) -> tuple[int, bool] | None:
    """The dimension along which a window reaches back to the first element (or on to the last): a running reduction."""
    moving = [d for d, side in enumerate(window) if not is_plain(side)]
    if len(moving) != 1:
        return None
    side, n = window[moving[0]], shape[moving[0]]
    if side.size != n or (side.stride, side.base_dilation, side.window_dilation) != (1, 1, 1):
        return None
    pads = side.low, side.high
    return (moving[0], pads == (0, n - 1)) if pads in ((n - 1, 0), (0, n - 1)) else None


def _select_and_scatter(v: Visit) -> Sequence[Value]:
    x, source, init = v.operands
    rank = x.type.rank
    sizes = v.ints("window_dimensions", (1,) * rank)
    window = read_window(v, sizes, {"stride": "window_strides"})
    select, scatter = scalar_region(v, 0), scalar_region(v, 1)
    picked, monoid = comparison(select, COMPARE), monoid_of(scatter)
    if picked is not None and picked[0] in ("GE", "GT", "LE", "LT") and not picked[1] and monoid == "add":
        if _neutral(v, "add", init):
            return v.emit(SELECT_AND_SCATTER, (x, source), SelectAndScatterAttrs(window, picked[0], "add"))
    attrs = SelectAndScatterAttrs(window, CUSTOM, CUSTOM)
    return v.emit(SELECT_AND_SCATTER, (x, source, init), attrs, (select, scatter))


# -- scatter ---------------------------------------------------------------------------------------------------------


def _scatter(v: Visit) -> Sequence[Value]:
    n: Any = bindings().stablehlo.ScatterDimensionNumbers(v.attribute("scatter_dimension_numbers"))
    operands = v.operands
    count = len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    region = scalar_region(v, 0)
    monoids = monoids_of(region)
    if monoids is None:
        raise Unsupported("a scatter whose region is neither the update nor add, multiply, maximum or minimum")
    found: list[Value] = []
    for x, update, monoid in zip(arrays, updates, monoids, strict=True):
        named = _BOOL_SCATTERS.get(monoid, monoid) if x.type.dtype.kind == "b" else monoid
        if named not in _SCATTERS:
            raise Unsupported(f"a scatter that combines by {monoid}")
        attrs = ScatterAttrs(
            tuple(n.update_window_dims),
            tuple(n.inserted_window_dims),
            tuple(n.input_batching_dims),
            tuple(n.scatter_indices_batching_dims),
            tuple(n.scattered_dims_to_operand_dims),
            n.index_vector_dim,
            named,
        )
        found += v.emit(SCATTER, (x, indices, update), attrs)
    return found


# -- sort and map ----------------------------------------------------------------------------------------------------


def _sort(v: Visit) -> Sequence[Value]:
    operands = v.operands
    dimension = v.value("dimension", -1) % operands[0].type.rank
    return v.emit(SORT, operands, SortAttrs(dimension, v.value("is_stable", False)), (scalar_region(v, 0),))


def _map(v: Visit) -> Sequence[Value]:
    v.ints("dimensions")  # all of them, in order
    return v.emit(MAP, v.operands, Attrs(), (scalar_region(v, 0),))


HANDLERS: dict[str, Handler] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.scatter": _scatter,
    "stablehlo.sort": _sort,
    "stablehlo.map": _map,
}
