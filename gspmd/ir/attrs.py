"""Attributes: an op's parameters, as frozen dataclasses whose fields are the printed syntax.

A field may be an int, float, bool, str, a (nested) tuple of those, a dtype, a `Dense` array, a `Sharding`, axes, or one
of the shared types that localisation rewrites without knowing the op: `ResultShape`, `Window` and `Groups`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Attrs:
    """The attributes of an op that has none; the base of all others."""


class ResultShape(tuple[int, ...]):
    """The shape of the op's result, kept in its attributes because the operands do not tell it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class WindowDim:
    """How a window moves along one dimension (StableHLO convolution, reduce_window); `low`/`high` may be negative."""

    size: int = 1
    stride: int = 1
    base_dilation: int = 1
    window_dilation: int = 1
    low: int = 0
    high: int = 0
    reversed: bool = False


class Window(tuple[WindowDim, ...]):
    """A window, one `WindowDim` a dimension that it moves along."""

    __slots__ = ()


class Groups(int):
    """Into how many groups an op divides dimensions: the size of the major factor of dimensions that have several."""

    __slots__ = ()


_SMALL = 256  # bytes that are sooner copied than looked at through a view


class Dense:
    """An immutable array as an attribute; equal when dtype, shape and bytes are."""

    __slots__ = ("_hash", "array")
    array: NDArray[Any]

    def __init__(self, array: Any) -> None:
        held = np.array(array, copy=True, order="C")
        held.setflags(write=False)
        object.__setattr__(self, "array", held)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Dense attribute is immutable")

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # all bytes are read when the hash is asked for first
            array = self.array
            said = array.tobytes() if array.nbytes <= _SMALL else zlib.crc32(self._bytes().data)
            found = hash((array.dtype.str, array.shape, said))
            object.__setattr__(self, "_hash", found)
            return found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Dense):
            return False
        mine, theirs = self.array, other.array
        if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
            return False
        if mine.nbytes <= _SMALL:
            return mine.tobytes() == theirs.tobytes()
        return np.array_equal(self._bytes(), other._bytes())

    def _bytes(self) -> NDArray[np.uint8]:
        return self.array.reshape(-1).view(np.uint8)

    def __repr__(self) -> str:
        return f"Dense({self.array.dtype}{list(self.array.shape)})"
