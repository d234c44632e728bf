"""Shardings on their way out: XLA's strings on arguments and results, and annotations as `@Sharding` calls."""

from __future__ import annotations

from collections.abc import Mapping

from gspmd.interop.export_writer import Emitter, Writer
from gspmd.interop.stablehlo_text import quoted
from gspmd.ir.graph import Node
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.annotate import ShardingConstraintAttrs


def sharding_text(type_: TensorType) -> str:
    """How XLA writes the sharding of a global type; "" if it has none."""
    return "" if type_.sharding is None else _hlo(type_.sharding, type_.shape)


def _hlo(sharding: Sharding, shape: tuple[int, ...]) -> str:
    return sharding.normal(shape).to_hlo()


def _constraint(writer: Writer, node: Node) -> None:
    """An annotation; dimensions that are left open are unspecified to XLA. Of a device's part there is none to say."""
    attrs = node.attrs
    assert isinstance(attrs, ShardingConstraintAttrs)
    (x,) = node.operands
    if writer.mesh is not None:
        writer.alias(node.results, (x,))
        return
    opened = ",".join(str(d) for d, dim in enumerate(attrs.sharding.dims) if dim.open)
    attributes = {
        "call_target_name": quoted("Sharding"),
        "mhlo.sharding": quoted(_hlo(attrs.sharding, x.type.shape)),
        **({"backend_config": quoted(f"unspecified_dims=[{opened}]")} if opened else {}),
    }
    writer.op("stablehlo.custom_call", (x,), node.results, attributes)


EMITTERS: Mapping[str, Emitter] = {"sharding_constraint": _constraint}
