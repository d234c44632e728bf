"""Pieces of StableHLO's MLIR text: types, constants, and the attributes of the generic form.

Follows the StableHLO specification and MLIR's language reference: `"stablehlo.add"(%0, %1) : (...) -> ...`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gspmd.ir.dtypes import DType, dtype_kind, dtype_name
from gspmd.ir.types import TensorType
from gspmd.kernels.finite import bit_width

# How composites that stand for ops of ours are called, and the one attribute that they have: ours, as text.
PREFIX = "gspmd."
ATTRIBUTES = "attributes"

_ELEMENTS = {"bool": "i1", "c64": "complex<f32>", "c128": "complex<f64>"}
# Longer constants are written as hexadecimal bytes.
_MOST_DECIMALS = 16


def element_text(dtype: DType) -> str:
    """An element type: `f32`, `i1`, `ui8`, `complex<f32>`."""
    name = dtype_name(dtype)
    if dtype_kind(dtype) == "float" and dtype.itemsize == 1:
        return f"f{name[1:].upper()}"
    return _ELEMENTS.get(name, f"u{name.replace('u', 'i')}" if dtype_kind(dtype) == "uint" else name)


def type_text(type_: TensorType) -> str:
    """A type without its sharding: `tensor<4x6xf32>`."""
    return f"tensor<{''.join(f'{n}x' for n in type_.shape)}{element_text(type_.dtype)}>"


def types_text(types: Iterable[TensorType]) -> str:
    """Types in a row, in parentheses."""
    return f"({', '.join(map(type_text, types))})"


def constant_text(array: np.ndarray[Any, Any]) -> str:
    """An array as a dense attribute, exact in every bit: `dense<[1.0, 2.0]> : tensor<2xf32>`."""
    type_ = type_text(TensorType(array.dtype, array.shape))
    if array.size == 0:
        return f"dense<> : {type_}"
    if array.size > 1 and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
        array = array.reshape(-1)[0]
    if array.size <= _MOST_DECIMALS or bit_width(array.dtype) < 8:
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
    return float_text(float(array))


def float_text(number: float) -> str:
    """A finite number, which MLIR wants with a point: `1.0e-05`."""
    mantissa, e, exponent = repr(number).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"


def integers(values: Iterable[int]) -> str:
    """An array attribute: `array<i64: 1, 2>`."""
    listed = ", ".join(map(str, values))
    return f"array<i64: {listed}>" if listed else "array<i64>"


def truths(values: Iterable[bool]) -> str:
    """An array attribute: `array<i1: true, false>`."""
    listed = ", ".join(map(truth, values))
    return f"array<i1: {listed}>" if listed else "array<i1>"


def truth(value: bool) -> str:
    """`true` or `false`."""
    return "true" if value else "false"


def table(rows: Sequence[Sequence[int]], width: int) -> str:
    """Rows of whole numbers as a dense attribute of rank 2: replica groups, padding."""
    return constant_text(np.array(rows, np.int64).reshape(len(rows), width))


def word(kind: str, name: str) -> str:
    """A word of one of StableHLO's enumerations: `#stablehlo<fft_type RFFT>`."""
    return f"#stablehlo<{kind} {name}>"


def quoted(text: str) -> str:
    """A string attribute."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def listed(**fields: Iterable[int] | int) -> str:
    """The fields of a dimension-numbers attribute; empty lists are left out."""
    shown = {k: str(v) if isinstance(v, int) else f"[{', '.join(map(str, v))}]" for k, v in fields.items()}
    return ", ".join(f"{k} = {v}" for k, v in shown.items() if v != "[]")
