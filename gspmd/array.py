"""`gspmd.Array`: a tensor that lives in shards over a mesh, as programs take and return it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gspmd.ir.dtypes import DType, dtype_kind, dtype_name
from gspmd.ir.errors import ExecutionError, ShardingError
from gspmd.ir.location import user_location
from gspmd.ir.opdef import Array as NumpyArray
from gspmd.ir.opdef import Shards
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.runtime.layout import Index, assemble, distribute, pad_shard, shard_index, sharding_of
from gspmd.runtime.transport import Channel
from gspmd.runtime.world import channel_for


class Array:
    """A tensor in shards. This process holds those of its own devices: all of them without MPI, one under MPI.

    `np.asarray(a)` puts the whole together, which under MPI every rank must do at the same point of the program.
    """

    __slots__ = ("_shards", "channel", "type")
    type: TensorType
    channel: Channel

    def __init__(self, type_: TensorType, shards: Sequence[NumpyArray], channel: Channel) -> None:
        self.type = type_
        self._shards: Shards | None = list(shards)
        self.channel = channel

    @property
    def shards(self) -> Shards:
        """The shards of this process, padded to their common shape; to be read only, as calls may share them.

        Raises ExecutionError if the array was donated to a call.
        """
        if self._shards is None:
            raise ExecutionError(
                f"an array of type {self.type.text()} was donated to an earlier call and is gone",
                rule="call.C4",
                fix="use the results of that call, or do not name the argument in donate=",
            )
        return self._shards

    def donate(self) -> Shards:
        """Hand the shards over to a call; the array is empty from now on."""
        shards, self._shards = self.shards, None
        return shards

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole tensor."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.type.shape)

    @property
    def size(self) -> int:
        """Number of elements of the whole tensor."""
        return self.type.size

    @property
    def sharding(self) -> Sharding:
        """How the tensor is split."""
        return sharding_of(self.type)

    def __repr__(self) -> str:
        return f"gspmd.Array({self.type.text()})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NumpyArray:
        """The whole tensor as a NumPy array; a collective under MPI."""
        if copy is False:
            raise ValueError("a sharded array cannot be seen as a NumPy array without a copy")
        whole = self._whole()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _whole(self) -> NumpyArray:
        mesh = self.sharding.mesh
        if len(self.channel.indices) == mesh.size:
            return assemble(self.shards, self.type)
        if self.sharding.is_replicated:
            return self.shards[0].copy()
        (stacked,) = self.channel.all_gather([s[np.newaxis] for s in self.shards], mesh.whole, 0)
        return assemble(list(stacked), self.type)

    def __float__(self) -> float:
        return float(np.asarray(self).item())

    def __int__(self) -> int:
        return int(np.asarray(self).item())

    def __bool__(self) -> bool:
        return bool(np.asarray(self).item())

    def item(self) -> Any:
        """The only element, as a Python scalar; a collective under MPI."""
        return np.asarray(self).item()

    @property
    def local(self) -> NumpyArray:
        """The real elements of this rank's first shard, without padding; to be read only."""
        index = shard_index(self.type, self.channel.indices[0])
        real = self.shards[0][tuple(slice(0, s.stop - s.start) for s in index)]
        real.flags.writeable = False
        return real


def from_numpy(whole: Any, sharding: Sharding) -> Array:
    """Cut an array that every rank has into shards; each rank keeps a copy of its own."""
    array = np.asarray(whole)
    type_ = _sharded(TensorType(array.dtype, array.shape), sharding)
    channel = channel_for(sharding.mesh)
    return Array(type_, [_own(x, array) for x in distribute(array, type_, channel.indices)], channel)


def from_callback(type_: TensorType, sharding: Sharding, read: Callable[[Index], Any]) -> Array:
    """Make an array without any rank holding the whole: `read(index)` gives the elements of a tuple of slices.

    It is called once for each shard that this rank holds, with the global positions that the shard covers.
    """
    full = _sharded(type_, sharding)
    channel = channel_for(sharding.mesh)
    shards: Shards = []
    for device in channel.indices:
        index = shard_index(full, device)
        given = read(index)
        real = _as_shard(given, full)
        if real.shape != _extent(index):
            raise ExecutionError(f"the callback returned shape {real.shape} for {index}, expected {_extent(index)}")
        shards.append(_own(pad_shard(real, full), given))
    return Array(full, shards, channel)


def from_shards(type_: TensorType, sharding: Sharding, shards: Sequence[Any]) -> Array:
    """Make an array from copies of this rank's own shards, each without padding or already of the local shape."""
    full = _sharded(type_, sharding)
    channel = channel_for(sharding.mesh)
    if len(shards) != len(channel.indices):
        raise ExecutionError(f"this process holds {len(channel.indices)} shards, got {len(shards)}")
    held: Shards = []
    for device, shard in zip(channel.indices, shards, strict=True):
        real, want = _as_shard(shard, full), _extent(shard_index(full, device))
        if real.shape not in (want, full.local.shape):
            raise ExecutionError(f"a shard has shape {real.shape}, expected {want} or {full.local.shape}")
        held.append(_own(pad_shard(real, full), shard))
    return Array(full, held, channel)


def _sharded(type_: TensorType, sharding: Sharding) -> TensorType:
    """The type under a sharding; raises ShardingError if their ranks differ."""
    if sharding.rank != type_.rank:
        raise ShardingError(
            f"a sharding of {sharding.rank} dimensions for an array of {type_.rank}",
            rule="shard.C1",
            loc=user_location(),
            fix="give one entry per dimension: None for one that is not split",
        )
    return type_.with_sharding(sharding)


def _extent(index: Index) -> tuple[int, ...]:
    return tuple(s.stop - s.start for s in index)


def _as_shard(given: Any, full: TensorType) -> NumpyArray:
    """A user's piece in the dtype of the array; raises ExecutionError if that would change its kind of number."""
    piece = np.asarray(given)
    if piece.dtype == full.dtype:
        return piece
    if piece.dtype.kind not in "biufc" or dtype_kind(piece.dtype) != dtype_kind(full.dtype):
        raise ExecutionError(
            f"a shard of an array of {dtype_name(full.dtype)} holds {piece.dtype}",
            fix=f"convert it: x.astype({full.dtype.name!r})",
        )
    return piece.astype(full.dtype)


def _own(shard: NumpyArray, given: Any) -> NumpyArray:
    """The shard in memory that the user cannot write to by way of what was given."""
    return shard.copy() if not isinstance(given, np.ndarray) or np.may_share_memory(shard, given) else shard  # pyright: ignore[reportUnknownArgumentType]
