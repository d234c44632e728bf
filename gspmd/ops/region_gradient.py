"""The gradient of an op that hands its operands to a region and gives what the region gives: the op of the pullback."""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import Gradient
from gspmd.ops.rules import differentiable


def pulled_back(
    gradient: Gradient, node: Node, cotangents: Sequence[Value | None], attrs: Attrs, own: int = 0
) -> Sequence[Value | None]:
    """The same op, under `attrs`, with each region's pullback; regions do not see the first `own` operands."""
    operands = node.operands[own:]
    wanted = [differentiable(x.type) for x in operands]
    if all(ct is None for ct in cotangents) or not any(wanted):
        return [None] * len(node.operands)
    given = [gradient.zeros(y.type.bare) if ct is None else ct for y, ct in zip(node.results, cotangents, strict=True)]
    pullbacks = tuple(gradient.region_vjp(region, wanted) for region in node.regions)
    pulled = iter(node.op.emit(gradient.builder, (*node.operands, *given), attrs, pullbacks, node.loc))
    return [*[None] * own, *(next(pulled) if w else None for w in wanted)]
