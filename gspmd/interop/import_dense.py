"""Constants of MLIR as NumPy arrays.

jaxlib hands out most element types as buffers. For the others (bf16, f8, i4, complex, resources) the printed form is
read, which MLIR makes exact: decimals that read back to the same bits, hexadecimal bits, or all bytes in hexadecimal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.dtypes import DType, dtype_kind, dtype_name
from gspmd.ir.errors import ParseError
from gspmd.ir.types import TensorType

_BUFFERS = frozenset(("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"))
_TOKEN = re.compile(r"\(\s*([^,()\s]+)\s*,\s*([^,()\s]+)\s*\)|([^\[\],()\s]+)")
_BLOB = re.compile(r'("[^"\n]*"|[\w.$-]+):\s*"0x([0-9A-Fa-f]*)"')
_ALIGNMENT = 4  # bytes before the data of a resource


def is_splat(attribute: Any) -> bool:
    """Whether the printed constant repeats one element."""
    return bool(getattr(attribute, "is_splat", False))


def splat_element(op: Any, name: str, attribute: Any, type_: TensorType) -> NDArray[Any]:
    """The one element of a constant that repeats it, as a scalar array."""
    return _printed(_dense_text(op, name, attribute), type_.dtype, ())


def dense_array(
    op: Any, name: str, attribute: Any, type_: TensorType, resources: Callable[[], Mapping[str, str]] | None = None
) -> NDArray[Any]:
    """The array of an op's dense attribute (None if jaxlib cannot cast it: then it is read off the op's text)."""
    if attribute is not None and dtype_name(type_.dtype) in _BUFFERS and hasattr(attribute, "is_splat"):
        return np.array(attribute, type_.dtype).reshape(type_.shape)
    text = _dense_text(op, name, attribute)
    if text.startswith("dense_resource<"):
        return _resource(text, type_, resources() if resources is not None else {})
    return _printed(text, type_.dtype, type_.shape)


def _dense_text(op: Any, name: str, attribute: Any) -> str:
    if attribute is not None:
        return str(attribute)
    text = op.get_asm(print_generic_op_form=True, use_local_scope=True)
    return text[text.index(f"{name} = dense") + len(name) + 3 :]


def _printed(text: str, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """`dense<...> : type` as an array."""
    start, end = text.find("dense<"), text.rfind("> : tensor")
    if start < 0 or end < 0:
        raise ParseError(f"cannot read the constant {text[:80]}")
    body = text[start + len("dense<") : end].strip()
    if body.startswith('"0x'):
        return _from_bytes(bytes.fromhex(body[3:-1]), dtype, shape)
    tokens = [m.groups() for m in _TOKEN.finditer(body)]
    flat = np.array([_element(t, dtype) for t in tokens], dtype)
    return _shaped(flat, shape)


def _from_bytes(data: bytes, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    if dtype_name(dtype) in ("i2", "i4", "u2", "u4"):
        flat = np.frombuffer(data, np.int8 if dtype_kind(dtype) == "int" else np.uint8).astype(dtype)
    else:
        flat = np.frombuffer(data, dtype)
    return _shaped(flat, shape)


def _shaped(flat: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The elements in their shape; one element stands for all."""
    return np.broadcast_to(flat.reshape(()), shape).copy() if flat.size == 1 != prod(shape) else flat.reshape(shape)


def _element(token: tuple[Any, ...], dtype: DType) -> Any:
    real, imaginary, plain = token
    if plain is None:
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return complex(_number(real, part), _number(imaginary, part))
    return _number(plain, dtype)


def _number(text: str, dtype: DType) -> Any:
    kind = dtype_kind(dtype)
    if kind == "bool":
        return text in ("true", "1", "-1")
    if kind in ("int", "uint"):
        return int(text, 0)
    if text.startswith("0x"):
        return np.frombuffer(int(text, 16).to_bytes(dtype.itemsize, "little"), dtype)[0]
    return np.array(float(text)).astype(dtype)[()]


def blobs(text: str) -> dict[str, str]:
    """The resources that MLIR prints behind a module, in hexadecimal, by name."""
    return {m[1].strip('"'): m[2] for m in _BLOB.finditer(text)}


def _resource(text: str, type_: TensorType, resources: Mapping[str, str]) -> NDArray[Any]:
    name = text[len("dense_resource<") : text.index("> : tensor")].strip('"')
    found = resources.get(name)
    if found is None:
        raise ParseError(f"the resource {name} that a constant names is not in the file")
    data = bytes.fromhex(found)[_ALIGNMENT:]
    if len(data) != type_.size * type_.dtype.itemsize:
        raise ParseError(f"the resource {name} has {len(data)} bytes, {type_.text()} needs {type_.size} elements")
    return _from_bytes(data, type_.dtype, type_.shape)
