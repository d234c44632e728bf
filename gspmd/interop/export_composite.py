"""Ops that neither StableHLO nor CHLO has: composites `gspmd.NAME`, with what they do in other ops as decomposition.

Whoever knows the name gets our op back with its attributes (`import_control`); to everybody else it is a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gspmd.interop.export_bessel import bessel_i0e
from gspmd.interop.export_lapack import from_zero, info, lapack
from gspmd.interop.export_writer import Emitter, Expansion, Writer
from gspmd.interop.stablehlo_text import ATTRIBUTES, PREFIX, quoted
from gspmd.ir.attr_text import attrs_text
from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.graph import Node, Value
from gspmd.ops.control import WHILE, WhileAttrs
from gspmd.ops.elementwise import OR, SHIFT_LEFT, SHIFT_RIGHT_LOGICAL, XOR
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.factorizations import GEQRF, HOUSEHOLDER_PRODUCT, LU, FullAttrs
from gspmd.ops.indexing import GATHER
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.linalg import TRIANGULAR_SOLVE
from gspmd.ops.literal import IOTA, scalar
from gspmd.ops.matrices import upper_triangle
from gspmd.ops.moving import PAD, SLICE
from gspmd.ops.random import RNG_BIT_GENERATOR, RandomBlockAttrs, RngBitGeneratorAttrs
from gspmd.ops.reduce import REDUCE
from gspmd.ops.slicing import DYNAMIC_SLICE

_I32 = DTYPES["i32"]
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _composite(decompose: Emitter) -> Emitter:
    """The emitter of an op that `decompose` writes in terms of others."""

    def write(writer: Writer, node: Node) -> None:
        params = tuple([Value(v.type.bare) for v in node.operands])
        results = tuple([Value(v.type.bare) for v in node.results])

        def body() -> Sequence[Value]:
            decompose(writer, Node(node.op, params, results, node.attrs, (), node.loc))
            return results

        name = f"{PREFIX}{node.op.name}"
        function = writer.function((node.op, node.attrs, *(v.type for v in params)), name, params, body)
        given = attrs_text(node.attrs)
        attributes = {"name": quoted(name), "decomposition": f"@{function}"}
        if given:
            attributes["composite_attributes"] = f"{{{ATTRIBUTES} = {quoted(given)}}}"
        writer.op("stablehlo.composite", node.operands, node.results, attributes)

    return write


def _expansion(expansion: Expansion) -> Emitter:
    return _composite(lambda writer, node: writer.expand(node, expansion))


def _as_it_is(b: Builder, operands: Sequence[Value], attrs: Attrs) -> Sequence[Value]:
    """What only speaks to our propagation: to others the value itself."""
    return operands


# -- random bits -----------------------------------------------------------------------------------------------------


def _threefry(b: Builder, operands: Sequence[Value], attrs: Attrs) -> Sequence[Value]:
    """Twenty rounds of Threefry-2x32 (Salmon et al. 2011)."""
    k0, k1, x0, x1 = (Expression(b, v) for v in operands)
    shape = x0.value.type.shape
    k0, k1 = (k if k.value.type.shape == shape else k.spread(shape) for k in (k0, k1))
    keys = (k0, k1, k0.apply(XOR, k1).apply(XOR, k0.number(0x1BD11BDA)))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            high, low = x1.apply(SHIFT_LEFT, x1.number(r)), x1.apply(SHIFT_RIGHT_LOGICAL, x1.number(32 - r))
            x1 = high.apply(OR, low).apply(XOR, x0)
        x0, x1 = x0 + keys[(i + 1) % 3], x1 + keys[(i + 2) % 3] + (i + 1)
    return x0.value, x1.value


def _random_block(b: Builder, operands: Sequence[Value], attrs: RandomBlockAttrs) -> Sequence[Value]:
    """All bits, then the block; one that reaches beyond the end must not move back into the array."""
    state, *starts = operands
    whole = RngBitGeneratorAttrs(attrs.shape, attrs.dtype, attrs.algorithm)
    state, bits = RNG_BIT_GENERATOR.emit(b, (state,), whole)
    if not starts:
        return state, bits
    none = (0,) * len(starts)
    bits = PAD(b, bits, scalar(b, 0, attrs.dtype), low=none, high=attrs.sizes, interior=none)
    return state, DYNAMIC_SLICE(b, bits, *starts, sizes=ResultShape(attrs.sizes))


# -- matrices --------------------------------------------------------------------------------------------------------


def _lu(writer: Writer, node: Node) -> None:
    """LAPACK counts pivots from 1, and leaves the permutation to be made of them."""
    (x,) = node.operands
    factors, pivots, order = node.results
    counted = Value(pivots.type)
    lapack(writer, "getrf", (x,), (factors, counted, info(x)), x.type.rank - 2)
    rows = order.type.shape[-1]

    def rest(b: Builder, operands: Sequence[Value], attrs: Attrs) -> Sequence[Value]:
        (swaps,) = from_zero(b, operands, attrs)
        return swaps, _permutation(b, swaps, rows)

    writer.alias((pivots, order), writer.expanded((counted,), Attrs(), rest, node))


def _permutation(b: Builder, pivots: Value, rows: int) -> Value:
    """The order of rows after swapping row i with row pivots[i], one after the other."""
    *lead, count = pivots.type.shape
    shape = ResultShape((*lead, rows))
    order = IOTA(b, shape=shape, dtype=_I32, dimension=len(lead))
    if not order.type.size or not count:
        return order
    carries = (scalar(b, 0, "i32"), order, pivots)
    test, body = Builder(), Builder()
    step = test.param(carries[0].type)
    for v in carries[1:]:
        test.param(v.type)
    cond = test.region([Expression(test, step).compare("LT", count).value])
    params = [body.param(v.type) for v in carries]
    after = body.region([(Expression(body, params[0]) + 1).value, _swapped(body, *params), params[2]])
    return WHILE.emit(b, carries, WhileAttrs(count), (cond, after))[1]


def _swapped(b: Builder, step: Value, order: Value, pivots: Value) -> Value:
    """The order with the rows of one step swapped."""
    shape, rank = order.type.shape, order.type.rank
    none = scalar(b, 0, "i32")
    sizes = ResultShape((*shape[:-1], 1))
    pivot = DYNAMIC_SLICE(b, pivots, *[none] * (rank - 1), step, sizes=sizes)
    wide = Expression(b, BROADCAST_IN_DIM(b, pivot, shape=ResultShape(shape), dims=tuple(range(rank))))
    place = Expression(b, IOTA(b, shape=ResultShape(shape), dtype=_I32, dimension=rank - 1))
    here, there = place.compare("EQ", Expression(b, step).spread(shape)), place.compare("EQ", wide)
    held = Expression(b, order)

    def at(where: Expression) -> Expression:
        total = where.select(held, held.number(0)).apply(REDUCE, dims=(rank - 1,))
        return total.apply(BROADCAST_IN_DIM, shape=ResultShape(shape), dims=tuple(range(rank - 1)))

    return here.select(at(there), there.select(at(here), held)).value


def _solve(b: Builder, operands: Sequence[Value], attrs: Attrs) -> Sequence[Value]:
    """By LU: the right-hand sides in the factors' order, then both triangles."""
    a, rhs = operands
    factors, _, order = LU.emit(b, (a,), Attrs())
    rank = rhs.type.rank
    lead = tuple(range(rank - 2))
    rows = GATHER(
        b,
        rhs,
        order,
        offset_dims=(rank - 1,),
        collapsed_slice_dims=(rank - 2,),
        operand_batching_dims=lead,
        indices_batching_dims=lead,
        start_index_map=(rank - 2,),
        index_vector_dim=rank - 1,
        slice_sizes=(*[1] * (rank - 1), rhs.type.shape[-1]),
    )
    lower = TRIANGULAR_SOLVE(b, factors, rows, lower=True, unit_diagonal=True)
    return (TRIANGULAR_SOLVE(b, factors, lower, lower=False),)


def _qr(b: Builder, operands: Sequence[Value], attrs: FullAttrs) -> Sequence[Value]:
    """Reflectors, their product, and what they leave of the triangle above them."""
    a, scales = GEQRF.emit(b, operands, Attrs())
    *lead, m, n = a.type.shape
    k = m if attrs.full_matrices else min(m, n)
    none = (0,) * len(lead)
    left = a
    if k > n:
        at = (*none, 0, 0)
        left = PAD(b, a, scalar(b, 0, a.type.dtype), low=at, high=(*none, 0, k - n), interior=at)
    elif k < n:
        left = _leading(b, a, (*lead, m, k))
    upper = _leading(b, a, (*lead, k, n)) if k < m else a
    return HOUSEHOLDER_PRODUCT(b, left, scales), upper_triangle(Expression(b, upper)).value


def _leading(b: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    return SLICE(b, x, start=(0,) * len(shape), limit=shape, stride=(1,) * len(shape))


EMITTERS: Mapping[str, Emitter] = {
    "threefry2x32": _expansion(_threefry),
    "random_block": _expansion(_random_block),
    "bessel_i0e": _expansion(bessel_i0e),
    "sharding_group": _expansion(_as_it_is),
    "propagation_barrier": _expansion(_as_it_is),
    "lu": _composite(_lu),
    "solve": _expansion(_solve),
    "qr": _expansion(_qr),
}
