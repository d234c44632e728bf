"""The ops that need no region: one line each. An op of ours without attributes needs none at all.

An entry maps the name in StableHLO or CHLO to how our attributes are read off MLIR's; the op is ours of the same name
unless the entry names another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gspmd.interop import import_constant
from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_scope import Bound
from gspmd.interop.import_visit import Handler, Visit
from gspmd.interop.import_window import read_convolution
from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.dtypes import DTYPES, DType, dtype_kind
from gspmd.ir.graph import Value
from gspmd.ops import OPS
from gspmd.ops.bits import BitcastConvertAttrs
from gspmd.ops.dot import DotGeneralAttrs
from gspmd.ops.elementwise.arithmetic import CompareAttrs
from gspmd.ops.elementwise.conversion import CONVERT, ConvertAttrs, ReducePrecisionAttrs
from gspmd.ops.indexing import GatherAttrs
from gspmd.ops.layout import BroadcastInDimAttrs, ReshapeAttrs, TransposeAttrs
from gspmd.ops.linalg import CholeskyAttrs, TriangularSolveAttrs
from gspmd.ops.literal import IotaAttrs
from gspmd.ops.moving import ConcatenateAttrs, PadAttrs, ReverseAttrs, SliceAttrs
from gspmd.ops.normalization import BatchNormAttrs
from gspmd.ops.random import RngBitGeneratorAttrs, draw
from gspmd.ops.slicing import DynamicSliceAttrs
from gspmd.ops.spectral import FftAttrs

Reader = Callable[[Visit], Attrs]


def _compare(v: Visit) -> CompareAttrs:
    kind = v.word("compare_type", "NOTYPE")
    return CompareAttrs(v.word("comparison_direction"), "TOTALORDER" if kind == "TOTALORDER" else "")


def _dot_general(v: Visit) -> DotGeneralAttrs:
    n = bindings().stablehlo.DotDimensionNumbers(v.attribute("dot_dimension_numbers"))
    return DotGeneralAttrs(
        tuple(n.lhs_batching_dimensions),
        tuple(n.rhs_batching_dimensions),
        tuple(n.lhs_contracting_dimensions),
        tuple(n.rhs_contracting_dimensions),
        _other_dtype(v),
    )


def _dot(v: Visit) -> DotGeneralAttrs:
    return DotGeneralAttrs((), (), (v.operands[0].type.rank - 1,), (0,), _other_dtype(v))


def _other_dtype(v: Visit) -> Any:
    """The result's dtype where it is not the operands'."""
    dtype = v.result.dtype
    return None if dtype == v.operands[0].type.dtype else dtype


def _gather(v: Visit) -> GatherAttrs:
    n = bindings().stablehlo.GatherDimensionNumbers(v.attribute("dimension_numbers"))
    return GatherAttrs(
        tuple(n.offset_dims),
        tuple(n.collapsed_slice_dims),
        tuple(n.operand_batching_dims),
        tuple(n.start_indices_batching_dims),
        tuple(n.start_index_map),
        n.index_vector_dim,
        v.ints("slice_sizes"),
    )


def _broadcast(v: Visit) -> BroadcastInDimAttrs:
    """The old broadcast: new dimensions in front."""
    lead = len(v.ints("broadcast_sizes"))
    return BroadcastInDimAttrs(ResultShape(v.result.shape), tuple(range(lead, v.result.rank)))


def _triangular_solve(v: Visit) -> TriangularSolveAttrs:
    flags = v.value("left_side"), v.value("lower"), v.value("unit_diagonal")
    return TriangularSolveAttrs(*flags, transpose_a=v.word("transpose_a"))


def _batch_norm(v: Visit) -> BatchNormAttrs:
    return BatchNormAttrs(float(v.value("epsilon")), v.value("feature_index"))


def _random_bits(v: Visit) -> RngBitGeneratorAttrs:
    bits = v.results[1]
    assert not isinstance(bits, tuple)
    return RngBitGeneratorAttrs(bits.shape, bits.dtype, v.word("rng_algorithm"))


def _product(name: str, reader: Reader) -> Handler:
    """A product; that of operands of different dtypes (f8 of two kinds, say) is one in a dtype that holds both."""
    plain, op = _plain(name, reader), OPS[name]

    def read(v: Visit) -> Sequence[Bound]:
        given = [x.type.dtype for x in v.operands]
        if len(set(given)) == 1:
            return plain(v)
        wide = _holds_all((*given, v.result.dtype))
        operands = [CONVERT(v.builder, x, dtype=wide) if x.type.dtype != wide else x for x in v.operands]
        attrs: Any = reader(v)
        return v.emit(op, operands, replace(attrs, dtype=None if v.result.dtype == wide else v.result.dtype))

    return read


def _holds_all(dtypes: Sequence[DType]) -> DType:
    """The widest of the most general kind among some dtypes; of floats at least f32, which holds all narrower ones."""
    kinds = [dtype_kind(d) for d in dtypes]
    general = next((k for k in ("complex", "float") if k in kinds), None)
    found = [d for d, k in zip(dtypes, kinds, strict=True) if general is None or k == general]
    return max(reversed([DTYPES["f32"], *found] if general == "float" else found), key=lambda d: d.itemsize)


_SAME = ""  # the op of ours has the same name
_READERS: Mapping[str, tuple[str, Reader]] = {
    "stablehlo.convert": (_SAME, lambda v: ConvertAttrs(v.result.dtype)),
    "stablehlo.bitcast_convert": (_SAME, lambda v: BitcastConvertAttrs(v.result.dtype)),
    "stablehlo.reduce_precision": (
        _SAME,
        lambda v: ReducePrecisionAttrs(v.value("exponent_bits"), v.value("mantissa_bits")),
    ),
    "stablehlo.compare": (_SAME, _compare),
    "stablehlo.iota": (
        _SAME,
        lambda v: IotaAttrs(ResultShape(v.result.shape), v.result.dtype, v.value("iota_dimension")),
    ),
    "stablehlo.broadcast_in_dim": (
        _SAME,
        lambda v: BroadcastInDimAttrs(ResultShape(v.result.shape), v.ints("broadcast_dimensions")),
    ),
    "stablehlo.broadcast": ("broadcast_in_dim", _broadcast),
    "stablehlo.reshape": (_SAME, lambda v: ReshapeAttrs(ResultShape(v.result.shape))),
    "stablehlo.transpose": (_SAME, lambda v: TransposeAttrs(v.ints("permutation"))),
    "stablehlo.dot_general": (_SAME, _dot_general),
    "stablehlo.dot": ("dot_general", _dot),
    "stablehlo.convolution": (_SAME, read_convolution),
    "stablehlo.slice": (
        _SAME,
        lambda v: SliceAttrs(v.ints("start_indices"), v.ints("limit_indices"), v.ints("strides")),
    ),
    "stablehlo.pad": (
        _SAME,
        lambda v: PadAttrs(v.ints("edge_padding_low"), v.ints("edge_padding_high"), v.ints("interior_padding")),
    ),
    "stablehlo.concatenate": (_SAME, lambda v: ConcatenateAttrs(v.value("dimension"))),
    "stablehlo.reverse": (_SAME, lambda v: ReverseAttrs(v.ints("dimensions"))),
    "stablehlo.dynamic_slice": (_SAME, lambda v: DynamicSliceAttrs(ResultShape(v.ints("slice_sizes")))),
    "stablehlo.gather": (_SAME, _gather),
    "stablehlo.fft": (_SAME, lambda v: FftAttrs(v.word("fft_type"), v.ints("fft_length"))),
    "stablehlo.cholesky": (_SAME, lambda v: CholeskyAttrs(v.value("lower", False))),
    "stablehlo.triangular_solve": (_SAME, _triangular_solve),
    "stablehlo.rng_bit_generator": (_SAME, _random_bits),
    "stablehlo.batch_norm_training": (_SAME, _batch_norm),
    "stablehlo.batch_norm_inference": (_SAME, _batch_norm),
    "stablehlo.batch_norm_grad": (_SAME, _batch_norm),
}


def _plain(name: str, reader: Reader) -> Handler:
    op = OPS[name]

    def read(v: Visit) -> tuple[Value, ...]:
        attrs = reader(v)
        return v.emit(op, v.operands, attrs)

    return read


def _unchanged(handler: Handler) -> Handler:
    """Front ends convert to the same dtype and broadcast to the same shape: the value is its operand."""

    def read(v: Visit) -> Any:
        (x,) = v.operands
        if x.type.bare != v.result:
            return handler(v)
        if v.has("broadcast_dimensions") and v.ints("broadcast_dimensions") != tuple(range(x.type.rank)):
            return handler(v)
        return (x,)

    return read


def _tuple(v: Visit) -> tuple[Bound, ...]:
    return (v.bound,)


def _element(v: Visit) -> tuple[Bound, ...]:
    (held,) = v.bound
    assert isinstance(held, tuple)
    return (held[v.value("index")],)


def _dimension_size(v: Visit) -> tuple[Bound, ...]:
    return import_constant.literal(v, v.operands[0].type.shape[v.value("dimension")], v.result.dtype)


def _rng(v: Visit) -> tuple[Bound, ...]:
    """Numbers of a distribution; the seed differs from one application to the next."""
    low, high, _ = v.operands
    seed = v.importer.next_seed()
    return (draw(v.builder, low, high, v.result.shape, v.word("rng_distribution"), seed),)


@lru_cache(maxsize=1)
def handlers() -> Mapping[str, Handler]:
    """How to read each op without regions, by its name in MLIR."""
    nothing, context = Attrs(), bindings().context()
    names = [f"{dialect}.{op.name}" for dialect in ("stablehlo", "chlo") for op in OPS.values() if op.attrs is Attrs]
    known = [name for name in names if context.is_registered_operation(name)]
    table: dict[str, Handler] = {name: _plain(name.partition(".")[2], lambda v: nothing) for name in known}
    table |= {name: _plain(ours or name.partition(".")[2], reader) for name, (ours, reader) in _READERS.items()}
    for name in ("convert", "broadcast_in_dim", "reshape"):
        table[f"stablehlo.{name}"] = _unchanged(table[f"stablehlo.{name}"])
    for name in ("dot", "dot_general"):
        ours, reader = _READERS[f"stablehlo.{name}"]
        table[f"stablehlo.{name}"] = _product(ours or name, reader)
    return table | {
        "stablehlo.tuple": _tuple,
        "stablehlo.get_tuple_element": _element,
        "stablehlo.get_dimension_size": _dimension_size,
        "stablehlo.rng": _rng,
        "stablehlo.constant": import_constant.read_constant,
        "sdy.constant": import_constant.read_constant,
        "chlo.constant": import_constant.read_constant,
        "chlo.constant_like": import_constant.read_constant_like,
    }
