"""StableHLO's older products: einsum and unary_einsum as sums, dot_general and transpose; torch_index_select as gather.

A label that an operand has twice takes its diagonal, one that stands nowhere else is summed over, and an ellipsis
stands for the dimensions that have no label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Handler, Visit
from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.graph import Value
from gspmd.kernels.monoids import identity
from gspmd.ops.dot import DOT_GENERAL, DotGeneralAttrs
from gspmd.ops.elementwise import COMPARE, CONVERT, SELECT
from gspmd.ops.indexing import GATHER, GatherAttrs
from gspmd.ops.layout import TRANSPOSE, TransposeAttrs
from gspmd.ops.literal import IOTA, full
from gspmd.ops.reduce import REDUCE

_ELLIPSIS = "..."
Labels = tuple[str, ...]


def _einsum(v: Visit) -> Sequence[Value]:
    (left, right), result = _equation(v, 2)
    x, y = v.operands
    x, left = _alone(v, x, left, {*right, *result})
    y, right = _alone(v, y, right, {*left, *result})
    shared = [d for d in left if d in right]
    batch = [d for d in shared if d in result]
    contracted = [d for d in shared if d not in result]
    dtype = v.result.dtype
    attrs = DotGeneralAttrs(
        tuple(map(left.index, batch)),
        tuple(map(right.index, batch)),
        tuple(map(left.index, contracted)),
        tuple(map(right.index, contracted)),
        None if dtype == x.type.dtype else dtype,
    )
    (product,) = v.emit(DOT_GENERAL, (x, y), attrs)
    order = (*batch, *(d for d in left if d not in shared), *(d for d in right if d not in shared))
    return _ordered(v, product, order, result)


def _unary_einsum(v: Visit) -> Sequence[Value]:
    (labels,), result = _equation(v, 1)
    x, labels = _alone(v, v.operands[0], labels, set(result))
    if x.type.dtype != v.result.dtype:
        x = CONVERT(v.builder, x, dtype=v.result.dtype)
    return _ordered(v, x, labels, result)


def _equation(v: Visit, count: int) -> tuple[list[Labels], Labels]:
    """The labels of the operands' dimensions and of the result's."""
    text: str = v.value("einsum_config")
    given, arrow, wanted = text.replace(" ", "").partition("->")
    parts = given.split(",")
    if not arrow or len(parts) != count:
        raise Unsupported(f"the equation {text!r} of {v.op.name} has not {count} operands and a result")
    operands = [_labels(p, x.type.rank, text) for p, x in zip(parts, v.operands, strict=True)]
    result = _labels(wanted, v.result.rank, text)
    unknown = sorted(set(result).difference(*operands))
    if unknown or len(set(result)) < len(result):
        raise Unsupported(f"the result of the equation {text!r} has a label that no operand has, or one twice")
    return operands, result


def _labels(part: str, rank: int, text: str) -> Labels:
    """One label a dimension; those under an ellipsis are counted from the right."""
    before, dots, after = part.partition(_ELLIPSIS)
    hidden = rank - len(before) - len(after) if dots else 0
    if hidden < 0 or (not dots and len(before) != rank):
        raise Unsupported(f"{part!r} of the equation {text!r} does not fit {rank} dimensions")
    return (*before, *(f"{_ELLIPSIS}{i}" for i in range(hidden, 0, -1)), *after)


def _alone(v: Visit, x: Value, labels: Labels, used: set[str]) -> tuple[Value, Labels]:
    """An operand with each label once, and no label that nobody else has."""
    twice = next((d for i, d in enumerate(labels) if d in labels[:i]), None)
    while twice is not None:
        i = labels.index(twice)
        j = labels.index(twice, i + 1)
        x = _diagonal(v, x, i, j)
        labels = labels[:j] + labels[j + 1 :]
        twice = next((d for k, d in enumerate(labels) if d in labels[:k]), None)
    idle = tuple(i for i, d in enumerate(labels) if d not in used)
    if idle:
        x = REDUCE(v.builder, x, dims=idle)
    return x, tuple(d for d in labels if d in used)


def _diagonal(v: Visit, x: Value, i: int, j: int) -> Value:
    """The elements with equal indices in two dimensions, of which the second disappears."""
    b, type_ = v.builder, x.type
    if type_.shape[i] != type_.shape[j]:
        raise Unsupported(f"{v.op.name} takes a diagonal of sizes {type_.shape[i]} and {type_.shape[j]}")
    rows, columns = (IOTA(b, shape=ResultShape(type_.shape), dtype=DTYPES["i32"], dimension=d) for d in (i, j))
    nothing = full(b, identity("add", type_.dtype), type_.dtype, type_.shape)
    return REDUCE(b, SELECT(b, COMPARE(b, rows, columns, direction="EQ"), x, nothing), dims=(j,))


def _ordered(v: Visit, x: Value, labels: Sequence[str], result: Labels) -> Sequence[Value]:
    permutation = tuple(list(labels).index(d) for d in result)
    return (x,) if permutation == tuple(range(len(result))) else v.emit(TRANSPOSE, (x,), TransposeAttrs(permutation))


def _index_select(v: Visit) -> Sequence[Value]:
    """Slices of one dimension at indices; the first dimensions of both may go together."""
    x, indices = v.operands
    dim, batch = v.value("dim") % x.type.rank, v.value("batch_dims", 0)
    batch = batch % (indices.type.rank + 1)
    rank = x.type.rank - 1 + indices.type.rank - batch
    behind = dim + indices.type.rank - batch
    attrs: Attrs = GatherAttrs(
        (*range(batch, dim), *range(behind, rank)),
        (dim,),
        tuple(range(batch)),
        tuple(range(batch)),
        (dim,),
        indices.type.rank,
        tuple(1 if d == dim or d < batch else n for d, n in enumerate(x.type.shape)),
    )
    return v.emit(GATHER, (x, indices), attrs)


HANDLERS: Mapping[str, Handler] = {
    "stablehlo.einsum": _einsum,
    "stablehlo.unary_einsum": _unary_einsum,
    "stablehlo.torch_index_select": _index_select,
}
