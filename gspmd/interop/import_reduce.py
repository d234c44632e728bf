"""Ops whose region combines scalars: reduce, reduce_window, sort, map.

Where the region is one of the monoids that our ops know, the op says so and the init disappears (or is combined
afterwards, where it is not the monoid's identity); else the region stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gspmd.interop.import_monoid import COMBINE, SET, is_identity, monoids_of
from gspmd.interop.import_region import ScalarRegion, everywhere, promoted, read_region
from gspmd.interop.import_visit import Handler, Visit
from gspmd.interop.import_window import read_window
from gspmd.ir.attrs import Attrs, ResultShape, Window
from gspmd.ir.graph import Value
from gspmd.ir.opdef import OpDef
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.mapping import MAP
from gspmd.ops.reduce import CUSTOM, REDUCE, ReduceAttrs
from gspmd.ops.sorting import SORT, SortAttrs
from gspmd.ops.window.cumulative import CUMULATIVE_REDUCE, CumulativeReduceAttrs
from gspmd.ops.window.pooling import REDUCE_WINDOW
from gspmd.ops.window.reduce_window import ReduceWindowAttrs
from gspmd.ops.window.sides import is_plain

# -- reduce ----------------------------------------------------------------------------------------------------------


def _reduce(v: Visit) -> Sequence[Value]:
    operands, dims = v.operands, v.ints("dimensions")
    region = read_region(v, 0)
    arrays, inits = _halves(v, operands, region)
    monoids = _monoids(region)
    if monoids is None:
        return _by_region(v, arrays, inits, region, REDUCE, ReduceAttrs(dims, CUSTOM))
    found: list[Value] = []
    for x, init, monoid in zip(arrays, inits, monoids, strict=True):
        (y,) = v.emit(REDUCE, (x,), ReduceAttrs(dims, monoid))
        found.append(y if _neutral(v, monoid, init) else _after(v, monoid, init, y))
    return found


def _halves(v: Visit, operands: tuple[Value, ...], region: ScalarRegion) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Arrays and inits, in the dtypes that the region computes in."""
    n = len(operands) // 2
    dtypes = [p.type.dtype for p in region.params[:n]]
    return promoted(v, operands[:n], dtypes), promoted(v, operands[n:], dtypes)


def _monoids(region: ScalarRegion) -> tuple[str, ...] | None:
    """The monoids that the region stands for, None if it has to stay."""
    monoids = None if region.outers else monoids_of(region.closed())
    return None if monoids is None or SET in monoids else monoids


def _by_region(
    v: Visit, arrays: Sequence[Value], inits: Sequence[Value], region: ScalarRegion, op: OpDef[Any], attrs: Attrs
) -> Sequence[Value]:
    """All arrays together, and the scalars that the region reads from outside as more of them."""
    more = everywhere(v, region.outers, arrays[0].type.shape)
    found = v.emit(op, (*arrays, *more, *inits, *region.outers), attrs, (region.folded(),))
    return found[: len(arrays)]


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
    window = read_window(v, v.ints("window_dimensions"), _WINDOW_NAMES)
    region = read_region(v, 0)
    arrays, inits = _halves(v, v.operands, region)
    monoids = _monoids(region)
    if monoids is None:
        return _by_region(v, arrays, inits, region, REDUCE_WINDOW, ReduceWindowAttrs(window, CUSTOM))
    # The specification wants an identity as the init. Of any other XLA combines one with each window, and none for the
    # places outside of the operand; so do we.
    found: list[Value] = []
    for x, init, monoid in zip(arrays, inits, monoids, strict=True):
        running = _running(window, x.type.shape)
        if running is None:
            (y,) = v.emit(REDUCE_WINDOW, (x,), ReduceWindowAttrs(window, monoid))
        else:
            dim, reverse = running
            (y,) = v.emit(CUMULATIVE_REDUCE, (x,), CumulativeReduceAttrs(dim, monoid, reverse))
        found.append(y if _neutral(v, monoid, init) else _after(v, monoid, init, y))
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


# -- sort and map ----------------------------------------------------------------------------------------------------


def _sort(v: Visit) -> Sequence[Value]:
    operands, region = v.operands, read_region(v, 0)
    shape = operands[0].type.shape
    attrs = SortAttrs(v.value("dimension", -1) % len(shape), v.value("is_stable", False))
    more = everywhere(v, region.outers, shape)
    return v.emit(SORT, (*operands, *more), attrs, (region.compared(),))[: len(operands)]


def _map(v: Visit) -> Sequence[Value]:
    v.ints("dimensions")  # all of them, in order
    operands, region = v.operands, read_region(v, 0)
    more = everywhere(v, region.outers, v.result.shape)
    return v.emit(MAP, (*operands, *more), Attrs(), (region.mapped(),))


HANDLERS: Mapping[str, Handler] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.sort": _sort,
    "stablehlo.map": _map,
}
