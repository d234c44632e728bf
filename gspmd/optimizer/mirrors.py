"""Two mirrorings one after the other, along different mesh axes, become one permute (several dimensions reversed).

Where device i receives from n - 1 - i along some axes, and then again along others, it receives from the device whose
every digit is the opposite one: a mirroring along all these axes together, at the price of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gspmd.ir.axes import Axes, canonical, overlaps, parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.rewrite import Visit, rewrite, with_body
from gspmd.ops.affine_permute import AFFINE_PERMUTE, AffinePermuteAttrs, permute_pairs


def join_mirrors(program: Program) -> Program:
    """The local program with mirrorings of mirrorings joined; itself if there are none."""
    return with_body(program, rewrite(program.body, _joining))


def _joining(region: Region) -> Visit:
    """Emits one permute at the second of each pair, for both; the first is left without a user."""
    uses = Counter(v for node in region.nodes for v in node.operands) + Counter(region.results)
    through: dict[Value, tuple[Value, Axes]] = {}  # what a value is the mirroring of, and along which axes

    def visit(builder: Builder, node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
        attrs = node.attrs
        if not isinstance(attrs, AffinePermuteAttrs) or not _mirrors(attrs):
            return None
        before = through.get(node.operands[0])
        source, axes = operands[0], attrs.axes
        if before is not None and uses[node.operands[0]] == 1 and not overlaps(axes, before[1]):
            source, axes = before[0], canonical(before[1] + axes)
        through[node.result] = source, axes
        if axes == attrs.axes:
            return None
        return (AFFINE_PERMUTE(builder, source, axes=axes, add=parts(axes) - 1, mul=-1),)

    return visit


def _mirrors(attrs: AffinePermuteAttrs) -> bool:
    n = parts(attrs.axes)
    return permute_pairs(attrs) == tuple((n - 1 - i, i) for i in range(n))
