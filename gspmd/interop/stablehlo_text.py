"""Pieces of StableHLO's MLIR text: types, constants, and the attributes of ops that need no regions of their own.

Follows the StableHLO specification and the dialects' generic form, `"stablehlo.add"(%0, %1) : (...) -> ...`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DType, dtype_kind, dtype_name
from gspmd.ir.types import TensorType
from gspmd.ops.dot import DotGeneralAttrs
from gspmd.ops.elementwise.arithmetic import CompareAttrs
from gspmd.ops.elementwise.conversion import ReducePrecisionAttrs
from gspmd.ops.indexing import GatherAttrs, ScatterAttrs
from gspmd.ops.layout import BroadcastInDimAttrs, TransposeAttrs
from gspmd.ops.literal import ConstantAttrs, IotaAttrs
from gspmd.ops.moving import ConcatenateAttrs, PadAttrs, ReverseAttrs, SliceAttrs
from gspmd.ops.slicing import DynamicSliceAttrs

_ELEMENTS = {"bool": "i1", "f8e4m3fn": "f8E4M3FN", "f8e5m2": "f8E5M2", "c64": "complex<f32>", "c128": "complex<f64>"}
# Longer constants are written as hexadecimal bytes.
_MOST_DECIMALS = 16


def element_text(dtype: DType) -> str:
    """An element type: `f32`, `i1`, `ui8`, `complex<f32>`."""
    name = dtype_name(dtype)
    return _ELEMENTS.get(name, f"u{name.replace('u', 'i')}" if dtype_kind(dtype) == "uint" else name)


def type_text(type_: TensorType) -> str:
    """A type without its sharding: `tensor<4x6xf32>`."""
    return f"tensor<{''.join(f'{n}x' for n in type_.shape)}{element_text(type_.dtype)}>"


def constant_text(array: np.ndarray[Any, Any]) -> str:
    """An array as a dense attribute, exact in every bit: `dense<[1.0, 2.0]> : tensor<2xf32>`."""
    type_ = type_text(TensorType(array.dtype, array.shape))
    if array.size == 0:
        return f"dense<> : {type_}"
    sub_byte = array.dtype.itemsize == 1 and dtype_name(array.dtype)[1:] in ("2", "4")
    if array.size > 1 and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
        array = array.reshape(-1)[0]
    if array.size <= _MOST_DECIMALS or array.dtype == np.bool_ or sub_byte:
        return f"dense<{_nested(array)}> : {type_}"
    return f'dense<"0x{array.tobytes().hex().upper()}"> : {type_}'


def _nested(array: Any) -> str:
    if array.ndim:
        return f"[{', '.join(map(_nested, array))}]"
    if array.dtype.kind == "c":
        return f"({_nested(array.real)}, {_nested(array.imag)})"
    kind = dtype_kind(array.dtype)
    if kind == "bool":
        return "true" if array else "false"
    if kind in ("int", "uint"):
        return str(int(array))
    if not np.isfinite(array.astype(np.float64)):
        return f"0x{array.tobytes()[::-1].hex().upper()}"
    mantissa, e, exponent = repr(float(array)).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"


def integers(values: Iterable[int]) -> str:
    """An array attribute: `array<i64: 1, 2>`."""
    listed = ", ".join(map(str, values))
    return f"array<i64: {listed}>" if listed else "array<i64>"


def _listed(**fields: Iterable[int] | int) -> str:
    """The fields of a dimension-numbers attribute; empty lists are left out."""
    shown = {k: str(v) if isinstance(v, int) else f"[{', '.join(map(str, v))}]" for k, v in fields.items()}
    return ", ".join(f"{k} = {v}" for k, v in shown.items() if v != "[]")


def _compare(attrs: CompareAttrs, types: tuple[TensorType, ...]) -> dict[str, str]:
    kinds = {"bool": "UNSIGNED", "uint": "UNSIGNED", "int": "SIGNED", "float": "FLOAT", "complex": "FLOAT"}
    compared = attrs.compare_type or kinds[dtype_kind(types[0].dtype)]
    return {
        "comparison_direction": f"#stablehlo<comparison_direction {attrs.direction}>",
        "compare_type": f"#stablehlo<comparison_type {compared}>",
    }


def _dot(attrs: DotGeneralAttrs, types: tuple[TensorType, ...]) -> dict[str, str]:
    numbers = _listed(
        lhs_batching_dimensions=attrs.lhs_batch,
        rhs_batching_dimensions=attrs.rhs_batch,
        lhs_contracting_dimensions=attrs.lhs_contract,
        rhs_contracting_dimensions=attrs.rhs_contract,
    )
    return {"dot_dimension_numbers": f"#stablehlo.dot<{numbers}>"}


def _gather(attrs: GatherAttrs, types: tuple[TensorType, ...]) -> dict[str, str]:
    numbers = _listed(
        offset_dims=attrs.offset_dims,
        collapsed_slice_dims=attrs.collapsed_slice_dims,
        operand_batching_dims=attrs.operand_batching_dims,
        start_indices_batching_dims=attrs.indices_batching_dims,
        start_index_map=attrs.start_index_map,
        index_vector_dim=attrs.index_vector_dim,
    )
    return {"dimension_numbers": f"#stablehlo.gather<{numbers}>", "slice_sizes": integers(attrs.slice_sizes)}


def _scatter(attrs: ScatterAttrs, types: tuple[TensorType, ...]) -> dict[str, str]:
    numbers = _listed(
        update_window_dims=attrs.update_window_dims,
        inserted_window_dims=attrs.inserted_window_dims,
        input_batching_dims=attrs.input_batching_dims,
        scatter_indices_batching_dims=attrs.scatter_indices_batching_dims,
        scatter_dims_to_operand_dims=attrs.scatter_dims_to_operand_dims,
        index_vector_dim=attrs.index_vector_dim,
    )
    return {"scatter_dimension_numbers": f"#stablehlo.scatter<{numbers}>"}


_WRITERS: Mapping[type[Attrs], Callable[[Any, tuple[TensorType, ...]], dict[str, str]]] = {
    CompareAttrs: _compare,
    DotGeneralAttrs: _dot,
    GatherAttrs: _gather,
    ScatterAttrs: _scatter,
    ConstantAttrs: lambda a, _: {"value": constant_text(a.value.array)},
    IotaAttrs: lambda a, _: {"iota_dimension": f"{a.dimension} : i64"},
    BroadcastInDimAttrs: lambda a, _: {"broadcast_dimensions": integers(a.dims)},
    TransposeAttrs: lambda a, _: {"permutation": integers(a.permutation)},
    SliceAttrs: lambda a, _: {
        "start_indices": integers(a.start),
        "limit_indices": integers(a.limit),
        "strides": integers(a.stride),
    },
    PadAttrs: lambda a, _: {
        "edge_padding_low": integers(a.low),
        "edge_padding_high": integers(a.high),
        "interior_padding": integers(a.interior),
    },
    ConcatenateAttrs: lambda a, _: {"dimension": f"{a.dimension} : i64"},
    ReverseAttrs: lambda a, _: {"dimensions": integers(a.dims)},
    DynamicSliceAttrs: lambda a, _: {"slice_sizes": integers(a.sizes)},
    ReducePrecisionAttrs: lambda a, _: {
        "exponent_bits": f"{a.exponent_bits} : i32",
        "mantissa_bits": f"{a.mantissa_bits} : i32",
    },
}


def attributes_of(attrs: Attrs, types: tuple[TensorType, ...]) -> dict[str, str]:
    """The attributes of an op in StableHLO's names, given its operands' types; empty if it needs none."""
    writer = _WRITERS.get(type(attrs))
    return {} if writer is None else writer(attrs, types)
