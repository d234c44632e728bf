"""Shardings on their way out in Shardy's terms: `sdy.mesh`, `sdy.sharding`, and the ops that speak of shardings alone.

Unlike XLA's strings they say which dimensions are open, annotations' priorities, explicitly replicated axes, groups and
barriers (Shardy's documentation of the dialect: "sharding representation").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gspmd.interop.export_writer import Emitter, Writer
from gspmd.interop.stablehlo_text import quoted
from gspmd.ir.axes import Axes
from gspmd.ir.dim_sharding import DimSharding
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Node, Value
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ops.annotate import PropagationBarrierAttrs, ShardingConstraintAttrs, ShardingGroupAttrs

MESH = "@mesh"

_DIRECTIONS = {"none": 0, "forward": 1, "backward": 2}  # of sdy.propagation_barrier


def mesh_op(mesh: Mesh) -> str:
    """The declaration of the mesh, on a line of the module."""
    axes = ", ".join(f"{quoted(name)}={size}" for name, size in mesh.axes)
    order = "" if mesh.device_order is None else f", device_ids=[{', '.join(map(str, mesh.device_order))}]"
    return f"  sdy.mesh {MESH} = <[{axes}]{order}>\n"


def shardy_attribute(sharding: Sharding) -> str:
    """`#sdy.sharding<@mesh, [{"x", ?}, {}]>`; raises UsageError for shards of a chosen size and for partial sums."""
    return f"#sdy.sharding{_angled(sharding)}"


def shardy_results(values: Sequence[Value]) -> dict[str, str]:
    """The attribute of an op whose results have shardings."""
    held = [v.type.sharding for v in values]
    if all(s is None for s in held):
        return {}
    mesh = next(s.mesh for s in held if s is not None)
    each = [_angled(v.type.sharding or Sharding.replicate(mesh, v.type.rank, open=True)) for v in values]
    return {"sdy.sharding": f"#sdy.sharding_per_value<[{', '.join(each)}]>"}


def _angled(sharding: Sharding) -> str:
    if sharding.unreduced or any(d.chunk is not None for d in sharding.dims):
        raise UsageError(
            f"Shardy cannot say {sharding.text()}: partial sums, and shards of a chosen size", rule="export.C3"
        )
    dims = ", ".join([_dim(sharding.mesh, d) for d in sharding.dims])
    kept = f", replicated={{{_axes(sharding.mesh, sharding.replicated)}}}" if sharding.replicated else ""
    return f"<{MESH}, [{dims}]{kept}>"


def _dim(mesh: Mesh, dim: DimSharding) -> str:
    axes = _axes(mesh, dim.axes)
    mark = "?" if dim.open else ""
    late = f"p{dim.priority}" if dim.priority else ""
    return f"{{{axes}{', ' if axes and mark else ''}{mark}}}{late}"


def _axes(mesh: Mesh, axes: Axes) -> str:
    return ", ".join([_axis(mesh, a) for a in axes])


def _axis(mesh: Mesh, axis: Axis) -> str:
    whole = dict(mesh.axes)[axis.name] == axis.size
    return quoted(axis.name) if whole else f"{quoted(axis.name)}:({axis.pre}){axis.size}"


def _constraint(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, ShardingConstraintAttrs)
    held = node.result.type.sharding or attrs.sharding
    writer.op("sdy.sharding_constraint", node.operands, node.results, {"sharding": shardy_attribute(held)})


def _group(writer: Writer, node: Node) -> None:
    """Shardy's groups tie values together strictly; it has no others, which are left out."""
    attrs = node.attrs
    assert isinstance(attrs, ShardingGroupAttrs)
    if attrs.exact:
        writer.op("sdy.sharding_group", node.operands, (), {"group_id": f"{writer.number_of(attrs.group)} : i64"})
    writer.alias(node.results, node.operands)


def _barrier(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, PropagationBarrierAttrs)
    allowed = f"{_DIRECTIONS[attrs.allowed]} : i32"
    writer.op("sdy.propagation_barrier", node.operands, node.results, {"allowed_direction": allowed})


EMITTERS: Mapping[str, Emitter] = {
    "sharding_constraint": _constraint,
    "sharding_group": _group,
    "propagation_barrier": _barrier,
}
