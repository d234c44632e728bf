"""Loops, branches, calls and fused groups, as `import_control` reads them.

Our regions are closed. A loop's are so there, too; branches read the values around them; a called region is a function
of its own; a fused group stands where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gspmd.interop.export_writer import Emitter, Writer
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.types import TensorType


def _while(writer: Writer, node: Node) -> None:
    writer.op("stablehlo.while", node.operands, node.results, None, node.regions)


def _case(writer: Writer, node: Node) -> None:
    """A bool index becomes a number."""
    index = node.operands[0]
    number = index
    if index.type.dtype.kind == "b":
        number = Value(TensorType("i32", ()))
        writer.op("stablehlo.convert", (index,), (number,))

    def branch(region: Region) -> Callable[[], None]:
        def write() -> None:
            writer.returned(_in_place(writer, region, node.operands[1:]))

        return write

    writer.op("stablehlo.case", (number,), node.results, None, [branch(r) for r in node.regions])


def _in_place(writer: Writer, region: Region, operands: Sequence[Value]) -> Sequence[Value]:
    """Write a region's ops here, on operands; returns what it hands out."""
    writer.alias(region.params, operands)
    writer.nodes(region.nodes)
    return region.results


def _fused(writer: Writer, node: Node) -> None:
    writer.alias(node.results, _in_place(writer, node.regions[0], node.operands))


def _call(writer: Writer, node: Node) -> None:
    """One function for all calls of one region."""
    (region,) = node.regions

    def write() -> Sequence[Value]:
        writer.nodes(region.nodes)
        return region.results

    name = writer.function(region, getattr(node.attrs, "name", "") or "called", region.params, write)
    writer.op("func.call", node.operands, node.results, {"callee": f"@{name}"})


EMITTERS: Mapping[str, Emitter] = {"while": _while, "case": _case, "fused": _fused, "call": _call}
