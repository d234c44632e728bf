"""Ops whose region combines scalars: reduce, scatter, sort, map, as `import_reduce` reads them.

Where our op names a monoid, StableHLO has its identity as an operand and its combination as a region.
"""

from __future__ import annotations

from collections.abc import Mapping

from gspmd.interop.export_monoid import combination, start
from gspmd.interop.export_writer import Block, Emitter, Writer
from gspmd.interop.stablehlo_text import integers, listed, truth
from gspmd.ir.graph import Node
from gspmd.ops.indexing import ScatterAttrs
from gspmd.ops.reduce import CUSTOM, ReduceAttrs
from gspmd.ops.sorting import SortAttrs


def _reduce(writer: Writer, node: Node) -> None:
    attrs, operands = node.attrs, node.operands
    assert isinstance(attrs, ReduceAttrs)
    regions: tuple[Block, ...] = node.regions
    if attrs.monoid != CUSTOM:
        type_ = operands[0].type
        operands = (*operands, start(writer, attrs.monoid, type_.dtype))
        regions = (combination(writer, attrs.monoid, type_),)
    dims = {"dimensions": integers(sorted(attrs.dims))}
    writer.op("stablehlo.reduce", operands, node.results, dims, regions)


def _scatter(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, ScatterAttrs)
    numbers = listed(
        update_window_dims=attrs.update_window_dims,
        inserted_window_dims=attrs.inserted_window_dims,
        input_batching_dims=attrs.input_batching_dims,
        scatter_indices_batching_dims=attrs.scatter_indices_batching_dims,
        scatter_dims_to_operand_dims=attrs.scatter_dims_to_operand_dims,
        index_vector_dim=attrs.index_vector_dim,
    )
    attributes = {"scatter_dimension_numbers": f"#stablehlo.scatter<{numbers}>"}
    regions: tuple[Block, ...] = node.regions
    if attrs.monoid != CUSTOM:
        regions = (combination(writer, attrs.monoid, node.operands[0].type),)
    writer.op("stablehlo.scatter", node.operands, node.results, attributes, regions)


def _sort(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, SortAttrs)
    attributes = {"dimension": f"{attrs.dimension} : i64", "is_stable": truth(attrs.is_stable)}
    writer.op("stablehlo.sort", node.operands, node.results, attributes, node.regions)


def _map(writer: Writer, node: Node) -> None:
    """All dimensions, in order."""
    dims = {"dimensions": integers(range(node.operands[0].type.rank))}
    writer.op("stablehlo.map", node.operands, node.results, dims, node.regions)


EMITTERS: Mapping[str, Emitter] = {"reduce": _reduce, "scatter": _scatter, "sort": _sort, "map": _map}
