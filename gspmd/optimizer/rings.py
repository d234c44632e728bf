"""Two shifts of one value that together go round a ring become one permute (a rotation along a split dimension).

Shifting by -1 serves all devices but the first, shifting by n - 1 only the first: a permute modulo n does both at the
price of one. Who would have received nothing from one of the two gets its zeros back by a choice of scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.rewrite import Visit, rewrite, with_body
from gspmd.ops.affine_permute import AFFINE_PERMUTE, AffinePermuteAttrs, permute_pairs
from gspmd.ops.collective import AXIS_INDEX
from gspmd.ops.elementwise import COMPARE, SELECT
from gspmd.ops.literal import full, scalar


def join_rings(program: Program) -> Program:
    """The local program, without duplicates, with pairs of shifts joined; itself if there are none."""
    return with_body(program, rewrite(program.body, _joining))


def _joining(region: Region) -> Visit:
    """Emits the ring at the first shift of each pair, for both."""
    partners = _partners(region)
    joined: dict[Node, Value] = {}

    def visit(builder: Builder, node: Node, operands: tuple[Value, ...]) -> Sequence[Value] | None:
        pair = partners.get(node)
        if pair is None:
            return None
        if pair[0] is node:
            joined.update(zip(pair, _ring(builder, pair, operands[0]), strict=True))
        return (joined[node],)

    return visit


def _partners(region: Region) -> dict[Node, tuple[Node, Node]]:
    """Each shift that another one completes to a ring, with the pair, in program order."""
    found: dict[Node, tuple[Node, Node]] = {}
    shifts: dict[object, list[Node]] = {}
    for node in region.nodes:
        attrs = node.attrs
        if not isinstance(attrs, AffinePermuteAttrs) or attrs.wrap:
            continue
        earlier = shifts.setdefault((node.operands[0], attrs.axes), [])
        first = next((e for e in earlier if e not in found and _completes(e.attrs, attrs)), None)
        if first is not None:
            found[first] = found[node] = (first, node)
        earlier.append(node)
    return found


def _completes(first: Attrs, second: AffinePermuteAttrs) -> bool:
    """Whether two shifts serve different devices, and together all of a ring."""
    assert isinstance(first, AffinePermuteAttrs)
    pairs = set(permute_pairs(first)), set(permute_pairs(second))
    ring = set(permute_pairs(AffinePermuteAttrs(first.axes, first.add, wrap=True)))
    return pairs[0] | pairs[1] == ring and len(pairs[0]) + len(pairs[1]) == len(ring)


def _ring(builder: Builder, pair: tuple[Node, Node], x: Value) -> tuple[Value, ...]:
    """One permute for both, and zeros where a device was not served."""
    attrs = pair[0].attrs
    assert isinstance(attrs, AffinePermuteAttrs)
    whole = AFFINE_PERMUTE(builder, x, axes=attrs.axes, add=attrs.add, wrap=True)
    zeros = full(builder, 0, whole.type.dtype, whole.type.shape)
    index = AXIS_INDEX(builder, axes=attrs.axes)
    made: list[Value] = []
    for node in pair:
        assert isinstance(node.attrs, AffinePermuteAttrs)
        served = [target for _, target in permute_pairs(node.attrs)]
        # A shift serves a run of devices that starts or ends at an end of the ring.
        direction, bound = ("GE", served[0]) if served[0] else ("LT", served[-1] + 1)
        limit = scalar(builder, bound, as_dtype("i32"))
        made.append(SELECT(builder, COMPARE(builder, index, limit, direction=direction), whole, zeros))
    return tuple(made)
