"""The transport between processes: one rank, one shard, collectives by MPI.

Arrays travel as bytes, so that every dtype does. Contributions are combined here and not by MPI, in group order: an
all-reduce exchanges pieces, combines its own and gathers the results, which gives the bits of the lockstep transport.
Waiting is left to MPI's blocking calls, after a meeting where ranks share cores; the watchdog looks after waits that do
not end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from gspmd.ir.axes import Axes, parts
from gspmd.ir.errors import ExecutionError
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array, Combine, Shards
from gspmd.runtime.job import Job, start
from gspmd.runtime.transport import Pairs, check_split, sources

if TYPE_CHECKING:
    from mpi4py import MPI

# While all contributions together have at most so many bytes, every member gets all and combines them itself: more
# bytes than in pieces, but one round of messages instead of two.
_SMALL = 256 << 10
# The most that a scratch buffer keeps between calls.
_KEPT = 256 << 20
_INT_MAX = 2**31 - 1

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Group:
    """This rank's group over some axes: its communicator, whose ranks are the tile indices."""

    comm: MPI.Comm
    size: int
    rank: int


class _Scratch:
    """A buffer that grows and is used again: fresh pages cost more than the copy into them."""

    def __init__(self) -> None:
        self.buffer = np.empty(0, np.uint8)

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array in the buffer, valid until the next call."""
        count = prod(shape) * dtype.itemsize
        if count > _KEPT:
            return np.empty(shape, dtype)
        if count > self.buffer.nbytes:
            self.buffer = np.empty(count, np.uint8)
        return self.buffer[:count].view(dtype).reshape(shape)


def _watched(
    method: Callable[Concatenate[MpiTransport, P], R],
) -> Callable[Concatenate[MpiTransport, P], R]:
    """Tell the watchdog when the call begins and ends."""
    name = method.__name__

    @wraps(method)
    def call(self: MpiTransport, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self.job.watchdog.enter(name, self.place)
        try:
            return method(self, *args, **kwargs)
        finally:
            self.job.watchdog.leave()

    return call


class MpiTransport:
    """Collectives between the ranks of the job: rank r is physical device r of the mesh.

    Every rank must make the same calls in the same order. Raises ExecutionError if the mesh has not as many devices as
    the job has ranks.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.job: Job = start()
        if self.job.size != mesh.size:
            raise ExecutionError(
                f"the mesh {mesh.text()} has {mesh.size} devices, but the job has {self.job.size} ranks",
                fix=f"start {mesh.size} ranks, or change the mesh",
            )
        self.mesh = mesh
        index = self.job.rank if mesh.device_order is None else mesh.device_order.index(self.job.rank)
        self.indices: tuple[int, ...] = (index,)
        self.place: Location | None = None
        self._groups: dict[Axes, Group] = {}
        self._sent = _Scratch()
        self._received = _Scratch()

    def begin(self) -> None:
        """A program begins to run."""
        self.job.calls += 1

    @_watched
    def all_gather(self, xs: Shards, axes: Axes, dim: int) -> Shards:
        """Concatenate along `dim` the shards of the group."""
        (x,) = xs
        group = self._group(axes)
        if group.size == 1:
            return xs
        blocks = self._receiving((group.size, *x.shape), x.dtype, dim)
        self._gather(group, x, blocks)
        return [_concatenated(blocks, dim)]

    @_watched
    def all_reduce(self, xs: Shards, axes: Axes, combine: Combine) -> Shards:
        """Combine the shards of the group."""
        (x,) = xs
        group = self._group(axes)
        if group.size == 1:
            return xs
        if group.size == 2:
            return [self._reduce_pair(group, x, combine)]
        if x.nbytes * group.size <= _SMALL or x.size < group.size:
            rows = self._received.take((group.size, x.size), x.dtype)
            self._gather(group, x, rows)
            return [_own(combine(list(rows)), rows).reshape(x.shape)]
        return [self._reduce_pieces(group, x, combine)]

    @_watched
    def reduce_scatter(self, xs: Shards, axes: Axes, dim: int, combine: Combine) -> Shards:
        """Combine the shards of the group and keep this rank's part along `dim`."""
        (x,) = xs
        group = self._group(axes)
        if group.size == 1:
            return xs
        check_split(x, dim, group.size)
        blocks = self._split(x, dim, group.size)
        rows = self._received.take((group.size, x.size // group.size), x.dtype)
        self._exchange(group, blocks, rows)
        return [_own(combine(list(rows)), rows).reshape(blocks.shape[1:])]

    @_watched
    def all_to_all(self, xs: Shards, axes: Axes, split_dim: int, concat_dim: int) -> Shards:
        """Send part j along `split_dim` to member j; concatenate along `concat_dim` what comes."""
        (x,) = xs
        group = self._group(axes)
        if group.size == 1:
            return xs
        check_split(x, split_dim, group.size)
        blocks = self._split(x, split_dim, group.size)
        received = self._receiving(blocks.shape, x.dtype, concat_dim)
        self._exchange(group, blocks, received)
        return [_concatenated(received, concat_dim)]

    @_watched
    def permute(self, xs: Shards, axes: Axes, pairs: Pairs) -> Shards:
        """Send to this rank's destinations and receive from its source, if it has one; else zeros."""
        (x,) = xs
        group = self._group(axes)
        origin = sources(pairs, group.size)
        source, me = origin[group.rank], group.rank
        if source < 0:
            out = np.zeros(x.shape, x.dtype)
        elif source == me:
            out = x.copy()
        else:
            out = np.empty(x.shape, x.dtype)
        flat = _bytes(x)
        self._check_count(flat.nbytes)
        requests = [group.comm.Irecv([_bytes(out), self.job.byte], source)] if source not in (-1, me) else []
        for member, its_source in enumerate(origin):
            if its_source == me and member != me:
                requests.append(group.comm.Isend([flat, self.job.byte], member))
        if requests:
            self.job.wait_all(requests)
        return [out]

    @_watched
    def read(self, xs: Shards) -> Shards:
        """The shards of all ranks along a new first dimension, after a check that all read at the same point."""
        (x,) = xs
        mine = np.array([self.job.calls, x.nbytes], np.int64)
        every = np.empty((self.job.size, 2), np.int64)
        self.job.reading = True
        self.job.meet(self.job.reads)
        self.job.reads.Allgather([_bytes(mine), self.job.byte], [_bytes(every), self.job.byte])
        self.job.reading = False
        differ = [r for r in range(self.job.size) if (every[r] != every[0]).any()]
        if differ:
            raise ExecutionError(
                "an array is read (np.asarray, float, print) on every rank or on none, at one point of the program: "
                f"rank 0 reads one after {every[0, 0]} calls, rank {differ[0]} after {every[differ[0], 0]}",
                rule="array.C1",
                loc=self.place,
                fix="call np.asarray on every rank, then print on one (if gspmd.world().rank == 0: ...)",
            )
        self._check_count(x.nbytes * self.job.size)
        out = np.empty((self.job.size, *x.shape), x.dtype)
        self.job.reads.Allgather([_bytes(np.ascontiguousarray(x)), self.job.byte], [_bytes(out), self.job.byte])
        order = self.mesh.device_order
        return [out if order is None else out[list(order)]]

    @_watched
    def same(self, token: bytes, what: str = "program") -> None:
        """Raise one ExecutionError on all ranks, naming those that differ, unless all have the same token."""
        mine = np.frombuffer(hashlib.blake2b(token, digest_size=16).digest(), np.uint8)
        every = np.empty((self.job.size, 16), np.uint8)
        self.job.meet(self.job.comm)
        self.job.comm.Allgather([mine, self.job.byte], [every, self.job.byte])
        differ = [str(r) for r in range(self.job.size) if (every[r] != every[0]).any()]
        if differ:
            names = ", ".join(differ[:8]) + (", ..." if len(differ) > 8 else "")
            raise ExecutionError(
                f"every rank must have the same {what}: {'rank' if len(differ) == 1 else 'ranks'} {names} "
                f"{'differs' if len(differ) == 1 else 'differ'} from rank 0",
                fix="let nothing that shapes it depend on the rank, a random value or the time",
            )

    def _group(self, axes: Axes) -> Group:
        """The group over the axes, all its members being here; its communicator is made at first use, by all ranks."""
        group = self._groups.get(axes)
        if group is None:
            index = self.indices[0]
            members = self.mesh.group(index, axes)
            tile = self.mesh.tile_index(index, axes)
            order = None if self.mesh.device_order is None else tuple(self.mesh.device_order)
            group = Group(self.job.split((self.mesh.axes, order, axes), members[0], tile), parts(axes), tile)
            self._groups[axes] = group
        if group.size > 1:
            self.job.meet(group.comm)
        return group

    def _receiving(self, shape: tuple[int, ...], dtype: np.dtype[Any], dim: int) -> Array:
        """Where to receive blocks [group, *block] to be joined along `dim`: the result itself if it can be."""
        return np.empty(shape, dtype) if _in_place(shape[1:], dim) else self._received.take(shape, dtype)

    def _split(self, x: Array, dim: int, parts: int) -> Array:
        """The parts of x along `dim` as a contiguous array [parts, *part]; x itself if they lie so already."""
        shape = (*x.shape[:dim], parts, x.shape[dim] // parts, *x.shape[dim + 1 :])
        if _in_place(x.shape, dim) and x.flags.c_contiguous:
            return x.reshape(parts, *shape[:dim], *shape[dim + 1 :])
        split = np.moveaxis(x.reshape(shape), dim, 0)
        packed = self._sent.take(split.shape, x.dtype)
        np.copyto(packed, split)
        return packed

    def _gather(self, group: Group, x: Array, blocks: Array) -> None:
        self._check_count(blocks.nbytes)
        group.comm.Allgather([_bytes(x), self.job.byte], [_bytes(blocks), self.job.byte])

    def _exchange(self, group: Group, blocks: Array, received: Array) -> None:
        self._check_count(blocks.nbytes)
        group.comm.Alltoall([_bytes(blocks), self.job.byte], [_bytes(received), self.job.byte])

    def _reduce_pair(self, group: Group, x: Array, combine: Combine) -> Array:
        """All-reduce of two members, who swap their shards: as many bytes as in pieces, half the rounds."""
        self._check_count(x.nbytes)
        mine, peer = np.ascontiguousarray(x).reshape(-1), 1 - group.rank
        theirs = self._received.take((x.size,), x.dtype)
        byte = self.job.byte
        group.comm.Sendrecv([mine.view(np.uint8), byte], peer, 0, [theirs.view(np.uint8), byte], peer, 0)
        result = combine([mine, theirs] if group.rank == 0 else [theirs, mine])
        return _own(_own(result, mine), theirs).reshape(x.shape)

    def _reduce_pieces(self, group: Group, x: Array, combine: Combine) -> Array:
        """All-reduce in two rounds: each member combines one piece of the flat array, and all gather the pieces.

        Pieces have equal sizes, the last ones padded with zeros: MPI's ragged exchanges are many times slower.
        """
        size, width = group.size, -(-x.size // group.size)
        sent = np.ascontiguousarray(x).reshape(-1)
        if x.size % size:
            padded = self._sent.take((size * width,), x.dtype)
            padded[: x.size] = sent
            padded[x.size :] = 0
            sent = padded
        rows = self._received.take((size, width), x.dtype)
        self._exchange(group, sent, rows)
        out = np.empty(size * width, x.dtype)
        self._gather(group, combine(list(rows)), out)
        return out[: x.size].reshape(x.shape)

    def _check_count(self, count: int) -> None:
        if count > _INT_MAX and not self.job.large_counts:
            raise ExecutionError(
                f"a collective of {count} bytes needs an MPI-4 library: this one counts up to {_INT_MAX}",
                fix="use a newer MPI (pip install gspmd[mpi]), or split the tensor over more devices",
            )


def _own(result: Array, buffer: Array) -> Array:
    """The result of a combine, in memory of its own: a combine may return one of its arguments."""
    return result.copy() if np.may_share_memory(result, buffer) else result


def _bytes(x: Array) -> Array:
    """The array's memory as bytes; a copy if it is not contiguous."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _in_place(block: tuple[int, ...], dim: int) -> bool:
    """Whether blocks one after the other in memory are already joined along `dim`."""
    return all(n == 1 for n in block[:dim])


def _concatenated(blocks: Array, dim: int) -> Array:
    """Blocks [group, *block] as one array, joined along `dim` of the block; a view of those received in place."""
    size, *block = blocks.shape
    shape = (*block[:dim], size * block[dim], *block[dim + 1 :])
    if _in_place(tuple(block), dim):
        return blocks.reshape(shape)
    out = np.empty(shape, blocks.dtype)
    np.copyto(out.reshape(*block[:dim], size, *block[dim:]), np.moveaxis(blocks, 0, dim))
    return out
