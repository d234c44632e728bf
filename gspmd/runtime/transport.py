"""How shards move between devices: what the graph walker asks of a transport, and the transport in one process.

A collective runs over a list of axis pieces: devices that differ only in those digits form a group, and a device's
number in its group is its tile index over the list. Contributions are combined in that order, by the caller's function,
whatever the transport, so that all transports give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from gspmd.ir.axes import Axes, parts
from gspmd.ir.errors import ExecutionError
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array, Combine, Shards, Transport

Pairs = tuple[tuple[int, int], ...]


class Channel(Transport, Protocol):
    """A transport, and what the job as a whole needs: one program on all ranks, arrays read by all.

    `indices` are the logical devices whose shards this process holds; lists of shards, in and out, follow it. A result
    may share memory with its argument only where the group has one member. A `Combine` is elementwise and keeps dtype:
    it is called on flat pieces of the shards. The walker writes the user's line of its op to `place`, for reports.
    """

    place: Location | None

    def begin(self) -> None:
        """Note that a program begins to run: ranks that read an array must have come equally far."""
        ...

    def read(self, xs: Shards) -> Shards:
        """The shards of all devices of the mesh along a new first dimension, in the order of logical devices.

        It is the user's own step (np.asarray), so it is checked: raises one ExecutionError on all ranks if they read at
        different points of the program.
        """
        ...

    def same(self, token: bytes, what: str = "program") -> None:
        """Raise one ExecutionError on all ranks, naming those that differ, unless all have the same token."""
        ...


@lru_cache(maxsize=4096)
def groups(mesh: Mesh, axes: Axes) -> tuple[tuple[int, ...], ...]:
    """The groups of logical devices over the axes, each in order of tile index, in order of their first devices."""
    firsts = (i for i in range(mesh.size) if mesh.tile_index(i, axes) == 0)
    return tuple(mesh.group(i, axes) for i in firsts)


@lru_cache(maxsize=4096)
def sources(pairs: Pairs, size: int) -> tuple[int, ...]:
    """For each member of a group of `size`, whom it receives from in a permute; -1 for nobody.

    Raises ExecutionError if a pair names no member, or two pairs the same destination.
    """
    out = [-1] * size
    for source, destination in pairs:
        if not (0 <= source < size and 0 <= destination < size):
            raise ExecutionError(f"pair ({source}, {destination}) is outside a group of {size}", rule="permute.C1")
        if out[destination] >= 0:
            raise ExecutionError(f"member {destination} would receive twice: pairs {pairs}", rule="permute.C2")
        out[destination] = source
    return tuple(out)


def check_split(x: Array, dim: int, group: int) -> None:
    """Raise ExecutionError unless the dimension divides evenly among a group: the caller pads."""
    if x.shape[dim] % group:
        raise ExecutionError(
            f"a shard of shape {x.shape} cannot be split {group} ways along dim {dim}", rule="split.C1"
        )


def _joined(parts: Sequence[Array], dim: int) -> Array:
    """Shards in a row, laid out in memory as what arrives from elsewhere is: kernels round differently on others."""
    shape = list(parts[0].shape)
    shape[dim] = sum(x.shape[dim] for x in parts)
    return np.concatenate(parts, axis=dim, out=np.empty(shape, parts[0].dtype))


class LockstepTransport:
    """All shards in one process, moved by NumPy: the meaning of the collectives.

    With `indices` only those devices' shards, which is what a branch or loop has that the others do not come to. There
    a group has to be together: raises ExecutionError where, as processes of their own, devices would wait for ever.
    """

    def __init__(self, mesh: Mesh, indices: Sequence[int] | None = None) -> None:
        self.mesh = mesh
        self.indices = tuple(range(mesh.size)) if indices is None else tuple(indices)
        self.place: Location | None = None
        self._groups: dict[Axes, tuple[tuple[int, ...], ...]] = {}

    def groups(self, axes: Axes) -> tuple[tuple[int, ...], ...]:
        """The groups over the axes, by their members' places in lists of shards."""
        found = self._groups.get(axes)
        if found is None:
            found = self._groups[axes] = tuple(self._together(groups(self.mesh, axes)))
        return found

    def _together(self, groups: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        place = {device: p for p, device in enumerate(self.indices)}
        for group in groups:
            here = tuple(place[i] for i in group if i in place)
            if here and len(here) < len(group):
                waiting, elsewhere = ([i for i in group if (i in place) == there] for there in (True, False))
                raise ExecutionError(
                    f"devices {waiting} would wait for ever to exchange data with {elsewhere}, which do not come here: "
                    "they disagree on the value that decides a branch or loop",
                    rule="collective.C4",
                    fix="let all devices that exchange data take the same branch, and loop as often",
                )
            if here:
                yield here

    def all_gather(self, xs: Shards, axes: Axes, dim: int) -> Shards:
        """Give every member the concatenation along `dim` of its group's shards."""
        out = list(xs)
        for group in self.groups(axes):
            if len(group) > 1:
                shards = [xs[i] for i in group]
                for i in group:
                    out[i] = _joined(shards, dim)
        return out

    def all_reduce(self, xs: Shards, axes: Axes, combine: Combine) -> Shards:
        """Give every member the combination of its group's shards."""
        out = list(xs)
        for group in self.groups(axes):
            if len(group) > 1:
                total = self._combined([xs[i] for i in group], combine)
                for i in group:
                    out[i] = total.copy()
        return out

    def reduce_scatter(self, xs: Shards, axes: Axes, dim: int, combine: Combine) -> Shards:
        """Combine each group's shards and give member j the j-th part along `dim`."""
        out = list(xs)
        for group in self.groups(axes):
            if len(group) > 1:
                check_split(xs[group[0]], dim, len(group))
                total = self._combined([xs[i] for i in group], combine)
                for i, part in zip(group, np.split(total, len(group), axis=dim), strict=True):
                    out[i] = part.copy()
        return out

    def all_to_all(self, xs: Shards, axes: Axes, split_dim: int, concat_dim: int) -> Shards:
        """Give member j the j-th part along `split_dim` of every shard, concatenated along `concat_dim`."""
        out = list(xs)
        for group in self.groups(axes):
            if len(group) > 1:
                check_split(xs[group[0]], split_dim, len(group))
                split = [np.split(xs[i], len(group), axis=split_dim) for i in group]
                for j, i in enumerate(group):
                    out[i] = _joined([s[j] for s in split], concat_dim)
        return out

    def permute(self, xs: Shards, axes: Axes, pairs: Pairs) -> Shards:
        """Move shards from sources to destinations within each group; who receives nothing gets zeros."""
        origin = sources(pairs, parts(axes))
        out = list(xs)
        for group in self.groups(axes):
            for j, i in enumerate(group):
                out[i] = xs[group[origin[j]]].copy() if origin[j] >= 0 else np.zeros(xs[i].shape, xs[i].dtype)
        return out

    def begin(self) -> None:
        """Nobody else to keep up with."""

    def read(self, xs: Shards) -> Shards:
        """All shards are here."""
        return [np.stack(xs)]

    def same(self, token: bytes, what: str = "program") -> None:
        """Nothing to compare: one process built it."""

    @staticmethod
    def _combined(shards: Shards, combine: Combine) -> Array:
        # Flat and contiguous, as a transport between processes does it.
        flat = combine([np.ascontiguousarray(x).reshape(-1) for x in shards])
        return flat.reshape(shards[0].shape)
