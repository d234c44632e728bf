"""MLIR's types as ours, and its attributes as Python values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.interop.stablehlo_text import element_text
from gspmd.ir.dtypes import DTYPES, DType
from gspmd.ir.errors import GspmdError
from gspmd.ir.types import TensorType

Nested = TensorType | tuple["Nested", ...]

_ELEMENTS: dict[str, DType] = {element_text(dtype): dtype for dtype in DTYPES.values()}
_TOKEN = "!stablehlo.token"


class Unsupported(GspmdError):
    """Something that a program of ours cannot say; the importer collects these."""


class Dynamic(Unsupported):
    """A shape that the module does not state; it may follow from those that it does."""


def nested_type(mlir: Any) -> Nested:
    """A tensor's type, or those of a tuple's elements (none for a token); raises Unsupported for all else."""
    if hasattr(mlir, "num_types"):
        return tuple(nested_type(mlir.get_type(i)) for i in range(mlir.num_types))
    if str(mlir) == _TOKEN:
        return ()
    return tensor_type(mlir)


def tensor_type(mlir: Any) -> TensorType:
    """The type of a tensor of static shape."""
    text = str(mlir)
    if not hasattr(mlir, "has_static_shape") or not text.startswith("tensor<"):
        raise Unsupported(f"the type {text} is no tensor of a known shape")
    if not mlir.has_static_shape:
        raise Dynamic(f"the type {text} has a dynamic dimension: shapes must be known")
    if mlir.encoding is not None:
        raise Unsupported(f"the type {text} has bounds or an encoding")
    element = str(mlir.element_type)
    if element not in _ELEMENTS:
        kind = "quantized" if element.startswith("!quant") else "unknown"
        raise Unsupported(f"the element type {element} of {text} is {kind}")
    return TensorType(_ELEMENTS[element], tuple(mlir.shape))


def flat_types(types: Iterable[Nested]) -> tuple[TensorType, ...]:
    """The types of all tensors in some (nested) types."""
    found: list[TensorType] = []
    for t in types:
        found += [t] if isinstance(t, TensorType) else flat_types(t)
    return tuple(found)


def ints(attribute: Any) -> tuple[int, ...]:
    """The numbers of an array attribute."""
    return tuple(int(x) for x in attribute)


def bools(attribute: Any) -> tuple[bool, ...]:
    """The truth values of an array attribute."""
    return tuple(bool(x) for x in attribute)


def matrix(attribute: Any) -> NDArray[np.int64]:
    """A dense attribute of whole numbers."""
    return np.array(attribute, np.int64)


def word(attribute: Any) -> str:
    """The word of an enumeration: `#stablehlo<comparison_direction LT>` is LT."""
    return str(attribute).rstrip(">").rpartition(" ")[2]
