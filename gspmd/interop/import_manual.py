"""Per-device code: Shardy's manual computations, and programs that every replica runs on arguments of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_scope import Bound, one
from gspmd.interop.import_sharding import axis_name
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Handler, Visit
from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.layout import RESHAPE
from gspmd.ops.manual import ManualAttrs, manual_computation

# -- Shardy ----------------------------------------------------------------------------------------------------------


def _manual_computation(v: Visit) -> Sequence[Bound]:
    b = bindings()
    importer, operands = v.importer, v.operands
    names = [axis_name(a) for a in b.sdy.ManualAxesAttr(v.attribute("manual_axes"))]
    ins = importer.shardings.sdy_each(v.attribute("in_shardings"), [x.type for x in operands])
    block = v.op.regions[0].blocks[0]
    scope = v.scope.inside()
    mesh = importer.shardings.mesh
    outer = importer.shardings.manual
    importer.shardings.manual = () if mesh is None else (*outer, *map(mesh.axis, names))
    try:
        results = [one(r) for r in importer.block(scope, block)]
    finally:
        importer.shardings.manual = outer
    outs = importer.shardings.sdy_each(v.attribute("out_shardings"), [x.type for x in results])
    mesh = importer.shardings.mesh
    if mesh is None:
        raise Unsupported("a manual computation without a mesh")
    axes = tuple(map(mesh.axis, names))
    captured = scope.captures()
    whole = [replace(Sharding.replicate(mesh, x.type.rank), manual=outer) for x in captured]
    attrs = ManualAttrs(
        tuple(s for s in (*ins, *whole) if s is not None), tuple(s for s in outs if s is not None), axes
    )
    return manual_computation(v.builder, (*operands, *captured), attrs, scope.region(captured, results))


# -- replicas --------------------------------------------------------------------------------------------------------


def over_replicas(region: Region, mesh: Mesh) -> Region:
    """A program that every replica runs on its own arguments: all of them have a new first dimension, split over them.

    So JAX's pmap hands arrays to devices.
    """
    axis = mesh.whole
    outer, inner = Builder(), Builder()
    stacked = [outer.param(_stacked(v.type, mesh.size), v.name) for v in region.params]
    parts = [inner.param(_stacked(v.type, 1), v.name) for v in region.params]
    now: dict[Value, Value] = {
        v: RESHAPE(inner, part, shape=ResultShape(v.type.shape)) for v, part in zip(region.params, parts, strict=True)
    }
    for node in region.nodes:
        operands = tuple(now.get(v, v) for v in node.operands)
        inner.nodes.append(Node(node.op, operands, node.results, node.attrs, node.regions, node.loc))
    results = [RESHAPE(inner, now.get(v, v), shape=ResultShape((1, *v.type.shape))) for v in region.results]
    first = [_first_dim(mesh, v.type.rank + 1, axis) for v in (*region.params, *region.results)]
    count = len(region.params)
    attrs = ManualAttrs(tuple(first[:count]), tuple(first[count:]), axis)
    return outer.region(manual_computation(outer, stacked, attrs, inner.region(results)))


def _stacked(type_: TensorType, count: int) -> TensorType:
    return TensorType(type_.dtype, (count, *type_.shape))


def _first_dim(mesh: Mesh, rank: int, axes: Axes) -> Sharding:
    return Sharding(mesh, (DimSharding(axes), *(DimSharding() for _ in range(rank - 1))))


HANDLERS: dict[str, Handler] = {"sdy.manual_computation": _manual_computation}
