"""Programs under construction: append ops, close regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.memo import memo_by_attrs
from gspmd.ir.types import TensorType

if TYPE_CHECKING:
    from gspmd.ir.opdef import OpDef


class Builder:
    """Collects the nodes of one region. `loc` is the line that nodes get when none is given to `emit`."""

    __slots__ = ("loc", "nodes", "params")

    def __init__(self, loc: Location | None = None) -> None:
        self.params: list[Value] = []
        self.nodes: list[Node] = []
        self.loc = loc

    def param(self, type_: TensorType, name: str = "") -> Value:
        """A new parameter of the region."""
        value = Value(type_, name)
        self.params.append(value)
        return value

    def emit(
        self,
        op: OpDef[Any],
        operands: tuple[Value, ...],
        attrs: Attrs,
        regions: tuple[Region, ...] = (),
        loc: Location | None = None,
        name: str = "",
    ) -> tuple[Value, ...]:
        """Append a node, its result types inferred; a broken type rule is reported at `loc`."""
        loc = loc or self.loc
        types = tuple(v.type for v in operands)
        try:
            results = op.infer(types, attrs, regions) if regions else infer_types(op, types, attrs)
        except GspmdError as error:
            raise error.at(loc) from None
        return self.append(op, operands, attrs, results, regions, loc, name)

    def append(
        self,
        op: OpDef[Any],
        operands: tuple[Value, ...],
        attrs: Attrs,
        results: Sequence[TensorType],
        regions: tuple[Region, ...] = (),
        loc: Location | None = None,
        name: str = "",
    ) -> tuple[Value, ...]:
        """Append a node with given result types (passes that keep shardings)."""
        values = tuple(Value(t, name) for t in results)
        self.nodes.append(Node(op, operands, values, attrs, regions, loc))
        return values

    def region(self, results: Sequence[Value]) -> Region:
        """The finished region."""
        return Region(tuple(self.params), tuple(self.nodes), tuple(results))


@memo_by_attrs(maxsize=1 << 16)
def infer_types(op: OpDef[Any], operands: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
    """The type rule of an op without regions, memoised."""
    return op.infer(operands, attrs, ())
