"""Weights from safetensors files, of which every rank reads only its own part.

    weights = safetensors.open("model.safetensors")
    held = gspmd.from_callback(weights.types[name], sharding, lambda index: weights.read(name, index))

The format (https://github.com/huggingface/safetensors#format): the length of a header in 8 bytes, the header as JSON,
`{name: {"dtype", "shape", "data_offsets": [begin, end]}}`, then the tensors' bytes, row-major and little-endian, one
behind the other without holes. A file may come from anyone: all that the header says is checked before it is used.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.dtypes import DTYPES, DType, native
from gspmd.ir.errors import ParseError, UsageError
from gspmd.ir.types import TensorType

_DTYPES: Mapping[str, DType] = {
    "BOOL": DTYPES["bool"],
    "F8_E4M3": DTYPES["f8e4m3fn"],
    "F8_E5M2": DTYPES["f8e5m2"],
    **{name.upper(): DTYPES[name] for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")},
    **{name.upper(): DTYPES[name] for name in ("f16", "bf16", "f32", "f64", "c64")},
}
_PREFIX = 8  # bytes that hold the header's length
_MAX_HEADER = 100_000_000  # bytes, as the format's own library has it
_MAX_RANK = 64  # NumPy's
_MAX_BYTES = 2**63  # NumPy holds no larger array, not even an empty one with such dimensions
_KEYS = frozenset(("dtype", "shape", "data_offsets"))


@dataclass(frozen=True, slots=True)
class SafeTensors:
    """An open file: the types of its tensors by name, the notes of whoever wrote it, and its bytes as mapped memory."""

    path: Path
    types: Mapping[str, TensorType]
    metadata: Mapping[str, str]
    _starts: Mapping[str, int]
    _bytes: NDArray[np.uint8]

    def read(self, name: str, index: tuple[slice, ...] = (), shape: tuple[int, ...] | None = None) -> NDArray[Any]:
        """The part of a tensor that a tuple of slices covers; all of it without one.

        With a shape of as many elements, the index is into the tensor in that shape: weights of all attention heads in
        a row can be read by heads. What is read is a view that cannot be written to, of bytes that come from the disk
        when they are looked at; the file must stay as it is for so long. Raises UsageError for a tensor that is not in
        the file, and for a shape that it cannot have.
        """
        type_ = self._type(name)
        sizes = type_.shape if shape is None else shape
        if prod(sizes) != type_.size or min(sizes, default=0) < 0:
            raise UsageError(
                f"tensor {name!r} of type {type_.text()} cannot be read in shape {sizes}",
                fix=f"give a shape of {type_.size} elements",
            )
        start = self._starts[name]
        found = self._bytes[start : start + type_.nbytes]
        if type_.dtype == np.bool_:  # a byte that is neither 0 nor 1 would be no bool
            return np.asarray(found.reshape(sizes)[index] != 0)
        # The dots make a view of a scalar, which no index at all would copy out.
        return native(found.view(type_.dtype.newbyteorder("<")).reshape(sizes)[*index, ...])

    def _type(self, name: str) -> TensorType:
        if name in self.types:
            return self.types[name]
        close = ", ".join(map(repr, get_close_matches(name, self.types, 3)))
        names = f"use one of its {len(self.types)} names"
        raise UsageError(f"{self.path} has no tensor {name!r}", fix=f"{names}, such as {close}" if close else names)


def open(path: str | Path) -> SafeTensors:
    """Map a file into memory and read its header, nothing else.

    Raises ParseError for a file that is not as the format has it, OSError for one that cannot be read.
    """
    file = Path(path)
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        try:
            header, start = _header(stream.read(_PREFIX), size, stream)
            entries = [(name, *_entry(name, fields)) for name, fields in header.items() if name != "__metadata__"]
            _check_layout([(name, begin, end) for name, _, begin, end in entries], size - start)
            metadata = _metadata(header.get("__metadata__", {}))
        except ParseError as error:
            raise ParseError(f"{file}: {error.message}", rule=error.rule, fix=error.fix) from None
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return SafeTensors(
        file,
        MappingProxyType({name: type_ for name, type_, _, _ in entries}),
        metadata,
        MappingProxyType({name: start + begin for name, _, begin, _ in entries}),
        np.frombuffer(mapped, np.uint8),
    )


def _header(prefix: bytes, size: int, stream: Any) -> tuple[dict[str, Any], int]:
    """The header's fields, and where the data starts."""
    length = int.from_bytes(prefix, "little")
    if size < _PREFIX or length > size - _PREFIX:
        claimed = f"its header should be {length} bytes long" if size >= _PREFIX else "it should have a header"
        raise ParseError(f"the file has {size} bytes, and {claimed}", rule="safetensors.C1", fix=_WHOLE)
    if length > _MAX_HEADER:
        raise ParseError(f"a header of {length} bytes, {_MAX_HEADER} are allowed", rule="safetensors.C1", fix=_WHOLE)
    try:
        found = json.loads(stream.read(length).decode("utf-8"), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the header is no JSON: {error}", rule="safetensors.C2", fix=_WHOLE) from None
    if not isinstance(found, dict):
        raise ParseError("the header is no JSON object", rule="safetensors.C2", fix=_WHOLE)
    return cast("dict[str, Any]", found), _PREFIX + length


_WHOLE = "make sure that it is a safetensors file, and whole"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; raises ParseError if a name is there twice, of which JSON readers would each take another."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ParseError(f"the header has {twice!r} twice", rule="safetensors.C2")
    return found


def _entry(name: str, fields: Any) -> tuple[TensorType, int, int]:
    """A tensor's type, and where its bytes begin and end."""
    if not isinstance(fields, dict) or cast("dict[str, Any]", fields).keys() != _KEYS:
        raise ParseError(f"tensor {name!r} is not described by {', '.join(sorted(_KEYS))}", rule="safetensors.C3")
    described = cast("dict[str, Any]", fields)
    dtype = _DTYPES.get(described["dtype"]) if isinstance(described["dtype"], str) else None
    if dtype is None:
        known = f"use one of {', '.join(sorted(_DTYPES))}"
        raise ParseError(f"tensor {name!r} has dtype {described['dtype']!r}", rule="safetensors.C4", fix=known)
    shape, offsets = _sizes(described["shape"]), _sizes(described["data_offsets"])
    if shape is None or len(shape) > _MAX_RANK or prod(max(n, 1) for n in shape) * dtype.itemsize >= _MAX_BYTES:
        raise ParseError(f"tensor {name!r} has a shape that no array has", rule="safetensors.C5")
    type_ = TensorType(dtype, shape)
    if offsets is None or len(offsets) != 2 or offsets[1] - offsets[0] != type_.nbytes:
        where = "-".join(map(str, offsets)) if offsets and len(offsets) == 2 else "no range"
        text = f"tensor {name!r} of type {type_.text()} has {type_.nbytes} bytes, but its offsets are {where}"
        raise ParseError(text, rule="safetensors.C6")
    return type_, offsets[0], offsets[1]


def _sizes(given: Any) -> tuple[int, ...] | None:
    """A list of natural numbers, or None for anything else; JSON's true is no number, though Python's is."""
    if not isinstance(given, list) or len(cast("list[Any]", given)) > _MAX_RANK:
        return None
    sizes = cast("list[Any]", given)
    return tuple(sizes) if all(type(n) is int and 0 <= n < _MAX_BYTES for n in sizes) else None


def _check_layout(ranges: Sequence[tuple[str, int, int]], size: int) -> None:
    """Raise ParseError unless the tensors fill the data, one behind the other: no overlap, no hole, no end missing."""
    at, before = 0, "the header"
    for name, begin, end in sorted(ranges, key=lambda r: r[1:]):
        if begin != at:
            what = "overlaps" if begin < at else "leaves a hole behind"
            text = f"tensor {name!r} at {begin}-{end} {what} {before}, which ends at {at}"
            raise ParseError(text, rule="safetensors.C7", fix=_WHOLE)
        at, before = end, f"tensor {name!r}"
    if at != size:
        raise ParseError(
            f"the tensors take {at} bytes, the file has {size} for them", rule="safetensors.C8", fix=_WHOLE
        )


def _metadata(given: Any) -> Mapping[str, str]:
    """The notes, texts by name."""
    if not isinstance(given, dict) or not all(isinstance(x, str) for x in cast("dict[str, Any]", given).values()):
        raise ParseError("the notes under '__metadata__' are no texts by name", rule="safetensors.C3")
    return MappingProxyType(cast("dict[str, str]", given))
