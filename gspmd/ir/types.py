"""The type of a value: element type, shape, and how it is split over the mesh."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import Any

from gspmd.ir.dtypes import DType, as_dtype, dtype_name
from gspmd.ir.errors import InvalidTypeError
from gspmd.ir.location import user_location
from gspmd.ir.sharding import Sharding


class TensorType:
    """An immutable tensor type: `TensorType("f32", (256, 1024))`, with a sharding once it has one.

    `dtype` is a NumPy dtype (`ml_dtypes`' for bf16 and the like), `shape` is in elements: the whole tensor up to the
    `collectives` stage, one device's shard from the `local` stage on (where `sharding` is None).
    """

    __slots__ = ("_hash", "dtype", "shape", "sharding")
    dtype: DType
    shape: tuple[int, ...]
    sharding: Sharding | None

    def __init__(self, dtype: Any, shape: Sequence[int], sharding: Sharding | None = None) -> None:
        """Build and check a type; raises InvalidTypeError, at the user's line, for one that cannot be."""
        put = object.__setattr__
        try:
            put(self, "dtype", as_dtype(dtype))
            put(self, "shape", _checked_shape(shape, sharding))
        except InvalidTypeError as error:
            raise error.at(user_location()) from None
        put(self, "sharding", sharding)
        put(self, "_hash", hash((self.dtype, self.shape, sharding)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a TensorType is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (dtype_name(self.dtype), self.shape, self.sharding)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TensorType) or self._hash != other._hash:
            return False
        return self.dtype == other.dtype and self.shape == other.shape and self.sharding == other.sharding

    def __repr__(self) -> str:
        return self.text()

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; sub-byte types count a byte an element, as they are stored."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def bare(self) -> TensorType:
        """The same type without its sharding."""
        return self if self.sharding is None else _with_sharding(self, None)

    @property
    def placed(self) -> Sharding:
        """The sharding, which every global type has from stage `propagated` on."""
        assert self.sharding is not None, f"{self.text()} has no sharding"
        return self.sharding

    @property
    def local(self) -> TensorType:
        """The type of one device's shard (without a sharding); the type itself when it has no sharding."""
        return self if self.sharding is None else _local(self)

    def with_sharding(self, sharding: Sharding | None) -> TensorType:
        """The same dtype and shape under another sharding."""
        return self if sharding == self.sharding else _with_sharding(self, sharding)

    def with_shape(self, shape: Sequence[int]) -> TensorType:
        """The same dtype with another shape and no sharding."""
        return TensorType(self.dtype, shape)

    def text(self) -> str:
        """As in the IR's text: `f32[256@data, 1024]`; a sharding that has nothing to show ends in `@_`: `f32[4]@_`."""
        name = dtype_name(self.dtype)
        if self.sharding is None:
            return f"{name}[{', '.join(map(str, self.shape))}]"
        dims = self.sharding.text(self.shape)
        return f"{name}{dims}" if "@" in dims or dims[-1] != "]" else f"{name}{dims}@_"


def _checked_shape(shape: Any, sharding: Sharding | None) -> tuple[int, ...]:
    try:
        sizes = tuple(shape)
        wrong = any(n < 0 for n in map(index, sizes))
    except TypeError:
        raise InvalidTypeError(f"{shape!r} is no shape", fix="give a tuple of sizes, as (256, 1024)") from None
    if wrong:
        raise InvalidTypeError(f"a dimension cannot be negative: shape {sizes}")
    if sharding is not None and sharding.rank != len(sizes):
        raise InvalidTypeError(f"a sharding of rank {sharding.rank} on a tensor of rank {len(sizes)}")
    return sizes


# Passes ask these of every value: equal answers are one object, which makes later comparisons short.
@lru_cache(maxsize=1 << 16)
def _with_sharding(type_: TensorType, sharding: Sharding | None) -> TensorType:
    return TensorType(type_.dtype, type_.shape, sharding)


@lru_cache(maxsize=1 << 16)
def _local(type_: TensorType) -> TensorType:
    assert type_.sharding is not None
    return TensorType(type_.dtype, type_.sharding.local_shape(type_.shape))
