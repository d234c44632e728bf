"""`gspmd.Array`: a tensor that lives in shards over a mesh, as programs take and return it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gspmd.ir.dtypes import DTYPES, DType, dtype_kind, dtype_name, is_integer, native
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

    `np.asarray(a)` puts the whole together, which under MPI every rank must do at the same point of the program. An
    array does not compute: jitted functions do, and NumPy does with the whole.
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
        """The shards of this process, padded to their common shape: views that cannot be written to.

        Raises ExecutionError if the array was donated to a call.
        """
        return [_read_only(x) for x in self.buffers]

    @property
    def buffers(self) -> Shards:
        """The memory of the shards, for calls, which only read it; raises ExecutionError if the array was donated."""
        if self._shards is None:
            raise ExecutionError(
                f"an array of type {self.type.text()} was donated to an earlier call and is gone",
                rule="call.C4",
                fix="use the results of that call, or do not name the argument in donate=",
            )
        return self._shards

    def donate(self) -> Shards:
        """Hand the shards over to a call; the array is empty from now on."""
        shards, self._shards = self.buffers, None
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
            return assemble(self.buffers, self.type)
        if self.sharding.is_replicated:
            return self.buffers[0].copy()
        self.channel.place = user_location()
        (stacked,) = self.channel.read(self.buffers)
        return assemble(list(stacked), self.type)

    def __copy__(self) -> Array:
        """Another array of the same memory, which is not donated with this one."""
        return Array(self.type, self.buffers, self.channel)

    def __deepcopy__(self, memo: object) -> Array:
        """An array with memory of its own."""
        return Array(self.type, [x.copy() for x in self.buffers], self.channel)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled are the shards of this process; they can be read by one that holds the same devices."""
        return _restored, (self.type, self.buffers, self.channel.indices)

    def __getitem__(self, index: object) -> NoReturn:
        raise TypeError(f"a gspmd.Array is not indexed outside of jitted functions{_INSTEAD}")

    def __float__(self) -> float:
        return float(np.asarray(self).item())

    def __int__(self) -> int:
        return int(np.asarray(self).item())

    def __bool__(self) -> bool:
        return bool(np.asarray(self).item())

    def __format__(self, spec: str) -> str:
        """A scalar as a number, `f"{loss:.3f}"`; any array as its type where no form is asked for."""
        return format(self.item(), spec) if spec and not self.shape else super().__format__(spec)

    def item(self) -> Any:
        """The only element, as a Python scalar; a collective under MPI."""
        return np.asarray(self).item()

    if not TYPE_CHECKING:  # a type checker would take every name for one that is there

        def __getattr__(self, name: str) -> NoReturn:
            """What NumPy's arrays have and this one has not: `x.T`, `x.sum()`."""
            raise AttributeError(
                f"a gspmd.Array has no {name} outside of jitted functions{_INSTEAD}", name=name, obj=self
            )

    @property
    def local(self) -> NumpyArray:
        """The real elements of this rank's first shard, without padding; to be read only."""
        index = shard_index(self.type, self.channel.indices[0])
        return _read_only(self.buffers[0][(*(slice(0, s.stop - s.start) for s in index), ...)])


_INSTEAD = ": use np.asarray(array), or compute within a function decorated with @gspmd.jit"


def _refuse(self: Array, other: object = None) -> Any:
    """An operator on a held array; NumPy's arrays and traced values take it up themselves.

    Comparisons are among them: equality as objects would tell that arrays of equal numbers differ.
    """
    if other is None or (isinstance(other, (int, float, complex, Array)) and not isinstance(other, np.generic)):
        raise TypeError(f"a gspmd.Array does not compute outside of jitted functions{_INSTEAD}")
    return NotImplemented


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(Array, f"__{_name}__", _refuse)
    setattr(Array, f"__r{_name}__", _refuse)
for _name in ("__neg__", "__pos__", "__abs__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Array, _name, _refuse)


def _restored(type_: TensorType, shards: Shards, indices: tuple[int, ...]) -> Array:
    """An array from its pickle; raises ExecutionError in a process that holds other devices than the one it is from."""
    channel = channel_for(sharding_of(type_).mesh)
    if channel.indices != indices:
        raise ExecutionError(
            f"a pickled array holds shards of devices {list(indices)}, this process those of {list(channel.indices)}",
            rule="call.C5",
            fix="keep np.asarray(array) instead: every process can read the whole",
        )
    return Array(type_, shards, channel)


def _read_only(array: NumpyArray) -> NumpyArray:
    view = array.view()
    view.flags.writeable = False
    return view


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
    """A user's piece in the dtype of the array; raises ExecutionError if that changes its kind or an integer."""
    piece = native(np.asarray(given))
    if piece.dtype == full.dtype:
        return piece
    if piece.dtype not in DTYPES.values() or dtype_kind(piece.dtype) != dtype_kind(full.dtype):
        raise ExecutionError(
            f"a shard of an array of {dtype_name(full.dtype)} holds {piece.dtype}",
            fix=f"convert it: x.astype({full.dtype.name!r})",
        )
    converted = piece.astype(full.dtype)
    if is_integer(full.dtype) and not np.array_equal(converted, piece):
        raise ExecutionError(f"a shard of an array of {dtype_name(full.dtype)} holds an integer that does not fit")
    return converted


def _own(shard: NumpyArray, given: Any) -> NumpyArray:
    """The shard in memory that the user cannot write to by way of what was given."""
    return shard.copy() if not isinstance(given, np.ndarray) or np.may_share_memory(shard, given) else shard  # pyright: ignore[reportUnknownArgumentType]
