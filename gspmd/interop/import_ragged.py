"""CHLO's ragged_dot: a product of matrices whose rows, contracted elements or stacks come in groups of given sizes.

It becomes dense products under masks that are spread over the groups: of the rows of one group, only its own matrix
counts. Elements behind the last group are zero, and what is masked cannot be NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Value
from gspmd.kernels.monoids import identity
from gspmd.ops.dot import DOT_GENERAL, DotGeneralAttrs
from gspmd.ops.elementwise import AND, COMPARE, SELECT, SUBTRACT
from gspmd.ops.layout import BROADCAST_IN_DIM, TRANSPOSE
from gspmd.ops.literal import IOTA, full
from gspmd.ops.reduce import REDUCE, ReduceAttrs
from gspmd.ops.window.cumulative import CUMULATIVE_REDUCE

Dims = tuple[int, ...]


def read_ragged_dot(v: Visit) -> Sequence[Value]:
    """A ragged product, by what the ragged dimension is to it."""
    x, y, sizes = v.operands
    numbers = bindings().chlo.RaggedDotDimensionNumbers(v.attribute("ragged_dot_dimension_numbers"))
    attrs = DotGeneralAttrs(
        tuple(numbers.lhs_batching_dimensions),
        tuple(numbers.rhs_batching_dimensions),
        tuple(numbers.lhs_contracting_dimensions),
        tuple(numbers.rhs_contracting_dimensions),
        None if v.result.dtype == x.type.dtype else v.result.dtype,
    )
    (ragged,), groups = numbers.lhs_ragged_dimensions, tuple(numbers.rhs_group_dimensions)
    if ragged in attrs.lhs_batch:
        return v.emit(DOT_GENERAL, (x, y), attrs)
    if ragged in attrs.lhs_contract:
        return [_ragged_contracted(v, x, y, sizes, attrs, ragged)]
    if len(groups) != 1:
        raise Unsupported("a ragged_dot over ragged rows without a dimension of groups")
    return _ragged_rows(v, x, y, sizes, attrs, ragged, groups[0])


def _ragged_rows(
    v: Visit, x: Value, y: Value, sizes: Value, attrs: DotGeneralAttrs, ragged: int, group: int
) -> Sequence[Value]:
    """Every row times the matrix of every group, of which its own is kept."""
    b = v.builder
    (every,) = DOT_GENERAL.emit(b, (x, y), attrs)
    free = _free(x.type.rank, attrs.lhs_batch, attrs.lhs_contract)
    others = _free(y.type.rank, attrs.rhs_batch, attrs.rhs_contract)
    lead = (*attrs.lhs_batch, *free[: free.index(ragged)])
    row = len(attrs.lhs_batch) + free.index(ragged)
    place = len(attrs.lhs_batch) + len(free) + others.index(group)
    mask = _spread(b, _mask(b, x, sizes, lead, ragged), every.type.shape, (*range(row + 1), place))
    nothing = full(b, identity("add", every.type.dtype), every.type.dtype, every.type.shape)
    return v.emit(REDUCE, (SELECT(b, mask, every, nothing),), ReduceAttrs((place,)))


def _ragged_contracted(v: Visit, x: Value, y: Value, sizes: Value, attrs: DotGeneralAttrs, ragged: int) -> Value:
    """One product for each group, of the elements that are its own: the groups are a stack."""
    at = attrs.lhs_contract.index(ragged)
    wide = [
        _own(v.builder, x, sizes, (*attrs.lhs_batch, *attrs.lhs_contract[:at]), ragged),
        _own(v.builder, y, sizes, (*attrs.rhs_batch, *attrs.rhs_contract[:at]), attrs.rhs_contract[at]),
    ]
    later = [
        tuple(d + 1 for d in ds) for ds in (attrs.lhs_batch, attrs.rhs_batch, attrs.lhs_contract, attrs.rhs_contract)
    ]
    stacked = DotGeneralAttrs((0, *later[0]), (0, *later[1]), later[2], later[3], attrs.dtype)
    return v.emit(DOT_GENERAL, wide, stacked)[0]


def _own(b: Builder, x: Value, sizes: Value, lead: Dims, ragged: int) -> Value:
    """Of every group, in a new first dimension, the operand's elements that are its own; zero elsewhere."""
    mask = _mask(b, x, sizes, lead, ragged)
    shape = (sizes.type.shape[-1], *x.type.shape)
    places = (*(d + 1 for d in lead), ragged + 1, 0)
    mask = _spread(b, mask, shape, places)
    return SELECT(b, mask, _spread(b, x, shape, tuple(range(1, len(shape)))), full(b, 0, x.type.dtype, shape))


def _mask(b: Builder, x: Value, sizes: Value, lead: Dims, ragged: int) -> Value:
    """Which element of the ragged dimension is of which group: shape [*lead, ragged, group]."""
    stack = tuple(x.type.shape[d] for d in lead)
    shape = (*stack, x.type.shape[ragged], sizes.type.shape[-1])
    ends = CUMULATIVE_REDUCE(b, sizes, dim=sizes.type.rank - 1, monoid="add")
    starts = SUBTRACT(b, ends, sizes)
    rank = len(shape)
    dims = (rank - 1,) if sizes.type.rank == 1 else (*range(rank - 2), rank - 1)
    position = IOTA(b, shape=ResultShape(shape), dtype=sizes.type.dtype, dimension=rank - 2)
    after = COMPARE(b, position, _spread(b, starts, shape, dims), direction="GE")
    return AND(b, after, COMPARE(b, position, _spread(b, ends, shape, dims), direction="LT"))


def _spread(b: Builder, x: Value, shape: Dims, places: Dims) -> Value:
    """A value repeated to a shape, its dims at `places`, which may be in any order."""
    order = tuple(sorted(range(len(places)), key=places.__getitem__))
    if order != tuple(range(len(places))):
        x = TRANSPOSE(b, x, permutation=order)
    return BROADCAST_IN_DIM(b, x, shape=ResultShape(shape), dims=tuple(sorted(places)))


def _free(rank: int, batch: Dims, contract: Dims) -> Dims:
    return tuple(d for d in range(rank) if d not in batch and d not in contract)


HANDLERS = {"chlo.ragged_dot": read_ragged_dot}
