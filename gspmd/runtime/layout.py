"""How a whole array is cut into shards and put together again: for the simulator, MPI and checkpoints alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gspmd.ir.errors import ExecutionError, UsageError
from gspmd.ir.opdef import Array, Shards
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType

Index = tuple[slice, ...]


def sharding_of(type_: TensorType) -> Sharding:
    """The sharding of a global type of a signature; raises UsageError where a text of a local stage left it out."""
    if type_.sharding is None:
        raise UsageError(
            f"the signature has {type_.text()} without a sharding, which a program at a local stage needs",
            fix="write it as f32[8@data, 4], or f32[8, 4]@_ for a value that is whole on every device",
        )
    return type_.sharding


def shard_index(type_: TensorType, device: int) -> Index:
    """The part of the whole array that a logical device's shard holds (empty slices for an empty shard)."""
    sharding = sharding_of(type_)
    return tuple(
        slice(*sharding.shard_bounds(d, n, sharding.mesh.tile_index(device, dim.axes)))
        for d, (n, dim) in enumerate(zip(type_.shape, sharding.dims, strict=True))
    )


def cut_shard(whole: Array, type_: TensorType, device: int, fill: object = 0) -> Array:
    """One device's shard of a whole array, padded with `fill` to the common local shape; a view where that is whole."""
    return pad_shard(whole[shard_index(type_, device)], type_, fill)


def pad_shard(real: Array, type_: TensorType, fill: object = 0) -> Array:
    """A shard's real elements in a buffer of the local shape."""
    local = type_.local.shape
    if real.shape == local:
        return np.ascontiguousarray(real).reshape(local)
    buffer = np.full(local, fill, type_.dtype)
    buffer[tuple(slice(0, n) for n in real.shape)] = real
    return buffer


def distribute(whole: Array, type_: TensorType, indices: Sequence[int], fill: object = 0) -> Shards:
    """The shards of a whole array for the given logical devices; cells beyond the tensor's end hold `fill`."""
    if whole.shape != type_.shape or whole.dtype != type_.dtype:
        raise ExecutionError(f"expected an array of type {type_.text()}, got {whole.dtype}{list(whole.shape)}")
    return [cut_shard(whole, type_, i, fill) for i in indices]


def assemble(shards: Sequence[Array], type_: TensorType) -> Array:
    """The whole array from the shards of all logical devices, in order; of replicas the first is taken."""
    whole = np.empty(type_.shape, type_.dtype)
    seen: set[tuple[tuple[int, int], ...]] = set()
    for device, shard in enumerate(shards):
        index = shard_index(type_, device)
        key = tuple((s.start, s.stop) for s in index)
        if key not in seen:
            seen.add(key)
            whole[index] = shard[tuple(slice(0, s.stop - s.start) for s in index)]
    return whole
