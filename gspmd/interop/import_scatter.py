"""scatter and select_and_scatter: regions that say how updates combine with what is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_monoid import comparison, is_identity, monoid_of, monoids_of, negated_new
from gspmd.interop.import_region import everywhere, promoted, read_region, scalar_region
from gspmd.interop.import_visit import Handler, Visit
from gspmd.interop.import_window import read_window
from gspmd.ir.graph import Value
from gspmd.ops.elementwise import COMPARE, NEGATE
from gspmd.ops.indexing import SCATTER, ScatterAttrs
from gspmd.ops.reduce import CUSTOM
from gspmd.ops.window.pooling import SELECT_AND_SCATTER
from gspmd.ops.window.select_and_scatter import SelectAndScatterAttrs


def _scatter(v: Visit) -> Sequence[Value]:
    """Operands, indices, updates; each operand on its own where its updates combine by a monoid, else all by region."""
    operands = v.operands
    count = len(operands) // 2
    region = read_region(v, 0)
    dtypes = [p.type.dtype for p in region.params[:count]]
    arrays, indices = promoted(v, operands[:count], dtypes), operands[count]
    updates = promoted(v, operands[count + 1 :], dtypes)
    if not region.outers:
        closed = region.closed()
        if negated_new(closed):
            return v.emit(SCATTER, (arrays[0], indices, NEGATE(v.builder, updates[0])), _attrs(v, "add"))
        monoids = monoids_of(closed)
        if monoids is not None:
            each = zip(arrays, updates, monoids, strict=True)
            return [v.emit(SCATTER, (x, indices, u), _attrs(v, monoid))[0] for x, u, monoid in each]
    here = everywhere(v, region.outers, arrays[0].type.shape)
    new = everywhere(v, region.outers, updates[0].type.shape)
    found = v.emit(SCATTER, (*arrays, *here, indices, *updates, *new), _attrs(v, CUSTOM), (region.folded(),))
    return found[:count]


def _attrs(v: Visit, monoid: str) -> ScatterAttrs:
    n: Any = bindings().stablehlo.ScatterDimensionNumbers(v.attribute("scatter_dimension_numbers"))
    return ScatterAttrs(
        tuple(n.update_window_dims),
        tuple(n.inserted_window_dims),
        tuple(n.input_batching_dims),
        tuple(n.scatter_indices_batching_dims),
        tuple(n.scattered_dims_to_operand_dims),
        n.index_vector_dim,
        monoid,
    )


def _select_and_scatter(v: Visit) -> Sequence[Value]:
    x, source, init = v.operands
    rank = x.type.rank
    sizes = v.ints("window_dimensions", (1,) * rank)
    window = read_window(v, sizes, {"stride": "window_strides"})
    select, scatter = scalar_region(v, 0), scalar_region(v, 1)
    picked, monoid = comparison(select, COMPARE), monoid_of(scatter)
    if picked is not None and picked[0] in ("GE", "GT", "LE", "LT") and not picked[1] and monoid == "add":
        if is_identity("add", v.literal(init), init.type.dtype):
            return v.emit(SELECT_AND_SCATTER, (x, source), SelectAndScatterAttrs(window, picked[0], "add"))
    attrs = SelectAndScatterAttrs(window, CUSTOM, CUSTOM)
    return v.emit(SELECT_AND_SCATTER, (x, source, init), attrs, (select, scatter))


HANDLERS: Mapping[str, Handler] = {
    "stablehlo.scatter": _scatter,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
