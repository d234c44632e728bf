"""`gspmd.Array`: a tensor that lives in shards over a mesh, as programs take and return it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gspmd.ir.dtypes import DType
from gspmd.ir.errors import ExecutionError
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

    __slots__ = ("channel", "shards", "type")
    type: TensorType
    shards: Shards
    channel: Channel

    def __init__(self, type_: TensorType, shards: Sequence[NumpyArray], channel: Channel) -> None:
        self.type = type_
        self.shards = list(shards)
        self.channel = channel

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
        """The real elements of this rank's first shard, without padding."""
        index = shard_index(self.type, self.channel.indices[0])
        return self.shards[0][tuple(slice(0, s.stop - s.start) for s in index)]


def from_numpy(whole: Any, sharding: Sharding) -> Array:
    """Cut an array that every rank has into shards; each rank keeps its own."""
    array = np.asarray(whole)
    type_ = TensorType(array.dtype, array.shape, sharding)
    channel = channel_for(sharding.mesh)
    return Array(type_, distribute(array, type_, channel.indices), channel)


def from_callback(type_: TensorType, sharding: Sharding, read: Callable[[Index], Any]) -> Array:
    """Make an array without any rank holding the whole: `read(index)` gives the elements of a tuple of slices.

    It is called once for each shard that this rank holds, with the global positions that the shard covers.
    """
    full = type_.with_sharding(sharding)
    channel = channel_for(sharding.mesh)
    shards: Shards = []
    for device in channel.indices:
        index = shard_index(full, device)
        want = tuple(s.stop - s.start for s in index)
        real = np.asarray(read(index), dtype=full.dtype)
        if real.shape != want:
            raise ExecutionError(f"the callback returned shape {real.shape} for {index}, expected {want}")
        shards.append(pad_shard(real, full))
    return Array(full, shards, channel)


def from_shards(type_: TensorType, sharding: Sharding, shards: Sequence[Any]) -> Array:
    """Make an array from this rank's own shards, each without padding or already of the local shape."""
    full = type_.with_sharding(sharding)
    channel = channel_for(sharding.mesh)
    if len(shards) != len(channel.indices):
        raise ExecutionError(f"this process holds {len(channel.indices)} shards, got {len(shards)}")
    held: Shards = []
    for device, shard in zip(channel.indices, shards, strict=True):
        real = np.asarray(shard, dtype=full.dtype)
        want = tuple(s.stop - s.start for s in shard_index(full, device))
        if real.shape not in (want, full.local.shape):
            raise ExecutionError(f"a shard has shape {real.shape}, expected {want} or {full.local.shape}")
        held.append(pad_shard(real, full))
    return Array(full, held, channel)
