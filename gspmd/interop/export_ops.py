"""The ops that need no region: one line each, as `import_ops` reads them.

An entry maps one of our ops to its attributes in StableHLO's names, given our attributes and the operands' types; the
op has the same name there, in the dialect CHLO if `_CHLO` lists it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gspmd.interop.export_window import convolution
from gspmd.interop.export_writer import Emitter, Writer
from gspmd.interop.stablehlo_text import constant_text, float_text, integers, listed, truth, word
from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import Types
from gspmd.ir.types import TensorType
from gspmd.ops.dot import DotGeneralAttrs
from gspmd.ops.elementwise.arithmetic import CompareAttrs
from gspmd.ops.elementwise.conversion import ReducePrecisionAttrs
from gspmd.ops.indexing import GatherAttrs
from gspmd.ops.layout import BroadcastInDimAttrs, TransposeAttrs
from gspmd.ops.linalg import CholeskyAttrs, TriangularSolveAttrs
from gspmd.ops.literal import ConstantAttrs, IotaAttrs
from gspmd.ops.moving import ConcatenateAttrs, PadAttrs, ReverseAttrs, SliceAttrs
from gspmd.ops.normalization import BatchNormAttrs
from gspmd.ops.random import RngBitGeneratorAttrs
from gspmd.ops.slicing import DynamicSliceAttrs
from gspmd.ops.sorting import TopKAttrs
from gspmd.ops.spectral import FftAttrs

# Ops whose attributes are none, or are all in their types.
_BARE = (
    *("negate", "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "select", "clamp"),
    *("and", "or", "xor", "not", "popcnt", "count_leading_zeros", "shift_left", "shift_right_arithmetic"),
    *("shift_right_logical", "convert", "bitcast_convert", "complex", "real", "imag", "abs", "sign", "ceil", "floor"),
    *("round_nearest_afz", "round_nearest_even", "is_finite", "cbrt", "cosine", "sine", "tan", "tanh", "exponential"),
    *("exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sqrt", "power", "atan2", "reshape"),
    *("dynamic_update_slice", "optimization_barrier", "erf", "erfc", "erf_inv", "sinh", "cosh", "asin", "acos"),
    *("atan", "asinh", "acosh", "atanh", "lgamma", "digamma", "polygamma", "zeta", "bessel_i1e", "is_inf"),
    *("is_pos_inf", "is_neg_inf", "next_after", "mulhi"),
)
# Ops of the companion dialect, which XLA takes as well.
_CHLO = frozenset(
    (
        *("erf", "erfc", "erf_inv", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "lgamma"),
        *("digamma", "polygamma", "zeta", "bessel_i1e", "is_inf", "is_pos_inf", "is_neg_inf", "next_after", "conj"),
        *("mulhi", "top_k"),
    )
)


def _compare(attrs: CompareAttrs, types: Types) -> dict[str, str]:
    kinds = {"bool": "UNSIGNED", "uint": "UNSIGNED", "int": "SIGNED", "float": "FLOAT", "complex": "FLOAT"}
    compared = attrs.compare_type or kinds[dtype_kind(types[0].dtype)]
    return {
        "comparison_direction": word("comparison_direction", attrs.direction),
        "compare_type": word("comparison_type", compared),
    }


def _dot_general(attrs: DotGeneralAttrs, types: Types) -> dict[str, str]:
    numbers = listed(
        lhs_batching_dimensions=attrs.lhs_batch,
        rhs_batching_dimensions=attrs.rhs_batch,
        lhs_contracting_dimensions=attrs.lhs_contract,
        rhs_contracting_dimensions=attrs.rhs_contract,
    )
    return {"dot_dimension_numbers": f"#stablehlo.dot<{numbers}>"}


def _gather(attrs: GatherAttrs, types: Types) -> dict[str, str]:
    numbers = listed(
        offset_dims=attrs.offset_dims,
        collapsed_slice_dims=attrs.collapsed_slice_dims,
        operand_batching_dims=attrs.operand_batching_dims,
        start_indices_batching_dims=attrs.indices_batching_dims,
        start_index_map=attrs.start_index_map,
        index_vector_dim=attrs.index_vector_dim,
    )
    return {"dimension_numbers": f"#stablehlo.gather<{numbers}>", "slice_sizes": integers(attrs.slice_sizes)}


def _slice(attrs: SliceAttrs, types: Types) -> dict[str, str]:
    return {
        "start_indices": integers(attrs.start),
        "limit_indices": integers(attrs.limit),
        "strides": integers(attrs.stride),
    }


def _pad(attrs: PadAttrs, types: Types) -> dict[str, str]:
    return {
        "edge_padding_low": integers(attrs.low),
        "edge_padding_high": integers(attrs.high),
        "interior_padding": integers(attrs.interior),
    }


def _reduce_precision(attrs: ReducePrecisionAttrs, types: Types) -> dict[str, str]:
    return {"exponent_bits": f"{attrs.exponent_bits} : i32", "mantissa_bits": f"{attrs.mantissa_bits} : i32"}


def _triangular_solve(attrs: TriangularSolveAttrs, types: Types) -> dict[str, str]:
    return {
        "left_side": truth(attrs.left_side),
        "lower": truth(attrs.lower),
        "unit_diagonal": truth(attrs.unit_diagonal),
        "transpose_a": word("transpose", attrs.transpose_a),
    }


def _batch_norm(attrs: BatchNormAttrs, types: Types) -> dict[str, str]:
    return {"epsilon": f"{float_text(attrs.epsilon)} : f32", "feature_index": f"{attrs.feature} : i64"}


def _fft(attrs: FftAttrs, types: Types) -> dict[str, str]:
    return {"fft_type": word("fft_type", attrs.kind), "fft_length": integers(attrs.length)}


def _constant(attrs: ConstantAttrs, types: Types) -> dict[str, str]:
    return {"value": constant_text(attrs.value.array)}


def _iota(attrs: IotaAttrs, types: Types) -> dict[str, str]:
    return {"iota_dimension": f"{attrs.dimension} : i64"}


def _broadcast_in_dim(attrs: BroadcastInDimAttrs, types: Types) -> dict[str, str]:
    return {"broadcast_dimensions": integers(attrs.dims)}


def _transpose(attrs: TransposeAttrs, types: Types) -> dict[str, str]:
    return {"permutation": integers(attrs.permutation)}


def _concatenate(attrs: ConcatenateAttrs, types: Types) -> dict[str, str]:
    return {"dimension": f"{attrs.dimension} : i64"}


def _reverse(attrs: ReverseAttrs, types: Types) -> dict[str, str]:
    return {"dimensions": integers(attrs.dims)}


def _dynamic_slice(attrs: DynamicSliceAttrs, types: Types) -> dict[str, str]:
    return {"slice_sizes": integers(attrs.sizes)}


def _cholesky(attrs: CholeskyAttrs, types: Types) -> dict[str, str]:
    return {"lower": truth(attrs.lower)}


def _top_k(attrs: TopKAttrs, types: Types) -> dict[str, str]:
    return {"k": f"{attrs.k} : i64"}


def _nothing(attrs: Attrs, types: Types) -> dict[str, str]:
    return {}


_ATTRIBUTES: Mapping[str, Callable[[Any, Types], dict[str, str]]] = {
    **dict.fromkeys(_BARE, _nothing),
    "reduce_precision": _reduce_precision,
    "compare": _compare,
    "constant": _constant,
    "iota": _iota,
    "broadcast_in_dim": _broadcast_in_dim,
    "transpose": _transpose,
    "dot_general": _dot_general,
    "convolution": convolution,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "reverse": _reverse,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "fft": _fft,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "batch_norm_training": _batch_norm,
    "batch_norm_inference": _batch_norm,
    "batch_norm_grad": _batch_norm,
    "top_k": _top_k,
}


def plain(writer: Writer, node: Node) -> None:
    """An op that is there under our name."""
    name = node.op.name
    attributes = _ATTRIBUTES[name](node.attrs, tuple([v.type for v in node.operands]))
    writer.op(f"{'chlo' if name in _CHLO else 'stablehlo'}.{name}", node.operands, node.results, attributes)


def _random_numbers(writer: Writer, node: Node) -> None:
    """XLA hands out unsigned bits, whatever is asked for: signed ones are the same bits."""
    (state,), (after, bits) = node.operands, node.results
    drawn = Value(TensorType(f"u{8 * bits.type.dtype.itemsize}", bits.type.shape))
    attrs = node.attrs
    assert isinstance(attrs, RngBitGeneratorAttrs)
    attributes = {"rng_algorithm": word("rng_algorithm", attrs.algorithm)}
    if dtype_kind(bits.type.dtype) == "uint":
        drawn = bits
    writer.op("stablehlo.rng_bit_generator", (state,), (after, drawn), attributes)
    if drawn is not bits:
        writer.op("stablehlo.bitcast_convert", (drawn,), (bits,))


def _square(writer: Writer, node: Node) -> None:
    """A product: CHLO squares no integers."""
    (x,) = node.operands
    writer.op("stablehlo.multiply", (x, x), node.results)


def _conj(writer: Writer, node: Node) -> None:
    """A real number is its own conjugate, which CHLO does not say."""
    (x,) = node.operands
    if x.type.dtype.kind == "c":
        writer.op("chlo.conj", (x,), node.results)
    else:
        writer.alias(node.results, (x,))


EMITTERS: Mapping[str, Emitter] = {
    **dict.fromkeys(_ATTRIBUTES, plain),
    "rng_bit_generator": _random_numbers,
    "square": _square,
    "conj": _conj,
}
