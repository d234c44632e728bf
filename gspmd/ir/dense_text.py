"""Constant arrays as text: `dense<[[1.0, 2.0]] : f32[1,2]>`, `dense<0.0 : f32[4,6]>`, `dense<"0x..." : ...>`.

Numbers are written in full only where reading them back gives the same bytes; anything else (large arrays, NaNs with a
payload) is written as its bytes in row-major order, little-endian, one byte an element for types below a byte.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.attrs import Dense
from gspmd.ir.dtypes import DTYPES, DType, dtype_kind, dtype_name
from gspmd.ir.lexer import Scanner

Array = NDArray[Any]

_MAX_ELEMENTS = 64  # written out one by one
_MAX_SPLAT_BYTES = 1 << 28  # a short text must not ask for more memory than this
_TYPE = re.compile(r"([a-z]\w*)\[([\d,\s]*)\]")
_HEX = re.compile(r'"0x([0-9a-fA-F]*)"')
_NUMBER = re.compile(r"-?(?:inf|nan|\d[\d.]*(?:[eE][+-]?\d+)?)|true|false")
_COMPLEX = re.compile(r"\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)")


def dense_text(dense: Dense) -> str:
    """The attribute as text, exact to the byte."""
    return _scalar_text(dense) if dense.array.size == 1 else _text(dense.array)


@lru_cache(maxsize=1 << 12)
def _scalar_text(dense: Dense) -> str:
    """Single numbers are many and repeat; larger arrays must not be kept alive here."""
    return _text(dense.array)


def _text(array: NDArray[Any]) -> str:
    type_ = f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]"
    words = _words(array)
    if words is None:
        words = f'"0x{_little(array).tobytes().hex()}"'
    return f"dense<{words} : {type_}>"


def read_dense(scanner: Scanner) -> Dense:
    """Read what `dense_text` prints; ParseError if it is not of that form."""
    scanner.expect("dense")
    scanner.expect("<")
    start = scanner.pos
    hexed = scanner.match(_HEX)
    items: list[str] = []
    shape: tuple[int, ...] | None = None
    if hexed is None:
        shape = _read_nested(scanner, items)
    scanner.expect(":")
    dtype, wanted = _read_type(scanner)
    scanner.expect(">")
    try:
        if hexed is not None:
            return Dense(_from_bytes(bytes.fromhex(hexed[1]), dtype, wanted))
        if shape == ():
            return Dense(_splat(items[0], dtype, wanted))
        if shape != wanted and not (0 in wanted and not items):
            scanner.fail(f"the elements have shape {list(shape or ())}, the type says {list(wanted)}", start)
        return Dense(_numbers(items, dtype).reshape(wanted))
    except (ValueError, OverflowError, MemoryError, TypeError) as error:
        scanner.fail(f"bad constant of type {dtype_name(dtype)}{list(wanted)}: {error}", start)


def _words(array: Array) -> str | None:
    """The elements spelled out, or None if they are too many or would not be read back to the same bytes."""
    flat = array.reshape(-1)
    if array.size and _is_splat(flat) and array.nbytes <= _MAX_SPLAT_BYTES:
        word = _word(flat[0], array.dtype)
        return word if _same(_numbers([word], array.dtype), flat[:1]) else None
    if array.size > _MAX_ELEMENTS:
        return None
    words = [_word(x, array.dtype) for x in flat]
    return _nest(words, array.shape) if _same(_numbers(words, array.dtype), flat) else None


def _is_splat(flat: Array) -> bool:
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    return bool((raw == raw[0]).all())


def _same(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


def _word(element: Any, dtype: DType) -> str:
    kind = dtype_kind(dtype)
    if kind == "bool":
        return "true" if element else "false"
    if kind in ("int", "uint"):
        return str(int(element))
    if kind == "complex":
        return f"({_float_word(element.real)},{_float_word(element.imag)})"
    return _float_word(element)


def _float_word(element: Any) -> str:
    text = str(element)  # the shortest text that gives the element back in its own precision
    return text if "." in text or "e" in text or "n" in text else f"{text}.0"


def _nest(words: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return words[0]
    step = len(words) // shape[0] if shape[0] else 0
    return f"[{', '.join(_nest(words[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0]))}]"


def _numbers(words: list[str], dtype: DType) -> Array:
    """The words as a flat array; ValueError for a word that is no element of the dtype."""
    kind = dtype_kind(dtype)
    if kind == "bool":
        if any(w not in ("true", "false") for w in words):
            raise ValueError("elements must be true or false")
        return np.array([w == "true" for w in words], dtype)
    if kind in ("int", "uint"):
        return _integers([int(w) for w in words], dtype)
    if kind == "complex":
        parts = np.array([[float(p) for p in w.strip("()").split(",")] for w in words], np.float64).reshape(-1, 2)
        return np.ascontiguousarray(parts).view(np.complex128).reshape(-1).astype(dtype)
    return np.array([float(w) for w in words], np.float64).astype(dtype)


def _integers(values: list[int], dtype: DType) -> Array:
    array = np.array(values, object).astype(np.uint64 if dtype_kind(dtype) == "uint" else np.int64).astype(dtype)
    if [int(x) for x in array] != values:
        raise ValueError("an element is out of range")
    return array


def _splat(word: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    (value,) = _numbers([word], dtype)
    _check_size(dtype, shape)
    return np.full(shape, value, dtype)


def _from_bytes(data: bytes, dtype: DType, shape: tuple[int, ...]) -> Array:
    count = 1
    for n in shape:
        count *= n
    if len(data) != count * dtype.itemsize:
        raise ValueError(f"{len(data)} bytes given, {count * dtype.itemsize} needed")
    return _little(np.frombuffer(data, dtype).reshape(shape))


def _little(array: Array) -> Array:
    """The array with its bytes in little-endian order, or back."""
    return array if sys.byteorder == "little" else array.byteswap()


def _check_size(dtype: DType, shape: tuple[int, ...]) -> None:
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size > _MAX_SPLAT_BYTES:
        raise ValueError(f"{size} bytes are too many for a constant; broadcast a scalar instead")


def _read_type(scanner: Scanner) -> tuple[DType, tuple[int, ...]]:
    match = scanner.need(_TYPE, "an element type and a shape, such as f32[2,2]")
    if match[1] not in DTYPES:
        scanner.fail(f"unknown element type {match[1]!r}; known: {', '.join(DTYPES)}", match.start())
    sizes = [n.strip() for n in match[2].split(",")] if match[2].strip() else []
    if any(not n.isdecimal() or len(n) > 18 for n in sizes):
        scanner.fail(f"bad shape [{match[2]}]", match.start())
    return DTYPES[match[1]], tuple(map(int, sizes))


def _read_nested(scanner: Scanner, items: list[str]) -> tuple[int, ...]:
    """Collect the words of a nested list; returns its shape, () for a single word."""
    if not scanner.take("["):
        pair = scanner.match(_COMPLEX) if scanner.peek("(") else None
        items.append(pair[0] if pair else scanner.need(_NUMBER, "a number, true, false or [")[0])
        return ()
    scanner.enter()
    shapes: list[tuple[int, ...]] = []
    while not scanner.take("]"):
        if shapes:
            scanner.expect(",")
        start = scanner.pos
        shapes.append(_read_nested(scanner, items))
        if shapes[-1] != shapes[0]:
            scanner.fail("the rows of a constant must have the same length", start)
    scanner.leave()
    return (len(shapes), *(shapes[0] if shapes else ()))
