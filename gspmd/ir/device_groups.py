"""Lists of devices as mesh axes: replica groups of StableHLO, and shardings that were written on another mesh.

Groups are those of a list of axis pieces if their members count through devices in a mixed radix, each digit of which
is a piece of an axis (StableHLO's specification, "process grid").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gspmd.ir.axes import Axes, canonical
from gspmd.ir.dim_sharding import DimSharding
from gspmd.ir.errors import ShardingError
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import Sharding

Grid = Sequence[Sequence[int]]


def axes_of_groups(mesh: Mesh, groups: Grid) -> Axes | None:
    """The axes, major to minor, whose groups these are, members in order; None if there are none.

    Groups hold logical devices of the mesh, each once.
    """
    digits = _digits(groups[0]) if groups else None
    pieces = None if digits is None else _pieces(mesh, digits)
    if pieces is None:
        return None
    axes = canonical(pieces)
    found = {tuple(g) for g in groups}
    return axes if found == {mesh.group(g[0], axes) for g in groups} and _covers(mesh, groups) else None


def on_mesh(sharding: Sharding, mesh: Mesh) -> Sharding:
    """The same sharding said on another mesh of the same devices; an axis may become pieces of several.

    Raises ShardingError if the meshes have other devices, or an axis is no product of pieces of the mesh's axes.
    """
    if sharding.mesh == mesh:
        return sharding

    def moved(axes: Axes) -> Axes:
        return canonical(piece for axis in axes for piece in _moved(axis, sharding.mesh, mesh))

    dims = tuple(DimSharding(moved(d.axes), d.open, d.chunk, d.priority) for d in sharding.dims)
    sets = (moved(s) for s in (sharding.unreduced, sharding.replicated, sharding.manual))
    unreduced, replicated, manual = sets
    return Sharding(mesh, dims, unreduced, sharding.monoid, replicated, manual)


@lru_cache(maxsize=1 << 10)
def _moved(axis: Axis, source: Mesh, target: Mesh) -> Axes:
    """An axis of one mesh as pieces of another's, device by device."""
    held = {target.device(i): i for i in range(target.size)}
    if held.keys() != {source.device(i) for i in range(source.size)}:
        raise ShardingError(
            f"the meshes {source.text()} and {target.text()} in one program have different devices",
            rule="mesh.C7",
            fix="list the same devices in both meshes; leave an axis unsplit where it is not wanted",
        )
    firsts = (i for i in range(source.size) if source.digit(i, axis) == 0)
    groups = [[held[source.device(d)] for d in source.group(i, (axis,))] for i in firsts]
    axes = axes_of_groups(target, groups)
    if axes is None:
        raise ShardingError(
            f"the axis {source.axis_text(axis)} of the mesh {source.text()} is no product of pieces of the axes of "
            f"{target.text()}, the program's mesh",
            rule="mesh.C8",
            fix="list the devices of both meshes so that each axis of one is made of axes of the other",
        )
    return axes


def _covers(mesh: Mesh, groups: Grid) -> bool:
    return sorted(d for g in groups for d in g) == list(range(mesh.size))


def _digits(group: Sequence[int]) -> list[tuple[int, int]] | None:
    """(stride, size) of each digit of a group's counting, minor to major."""
    out: list[tuple[int, int]] = []
    done, n = 1, len(group)
    while done < n:
        stride = group[done] - group[0]
        size = 1
        while size * done < n and group[size * done] - group[0] == size * stride:
            size += 1
        while (n // done) % size:
            size -= 1
        if stride <= 0 or size < 2:
            return None
        out.append((stride, size))
        done *= size
    return out


def _pieces(mesh: Mesh, digits: Sequence[tuple[int, int]]) -> list[Axis] | None:
    """The pieces of axes, major to minor, that the digits are."""
    pieces: list[Axis] = []
    for stride, size in digits:
        while size > 1:
            piece = _piece(mesh, stride, size)
            if piece is None:
                return None
            pieces.append(piece)
            stride, size = stride * piece.size, size // piece.size
    return pieces[::-1]


def _piece(mesh: Mesh, stride: int, size: int) -> Axis | None:
    """The longest piece of one axis whose minor end has the stride, and whose size divides `size`."""
    for axis in mesh.whole:
        apart = mesh.stride(axis)
        step, odd = divmod(stride, apart)
        if odd or not 1 <= step < axis.size or axis.size % step:
            continue
        room = axis.size // step
        taken = room if size % room == 0 else size
        if room % taken == 0:
            return Axis(axis.name, room // taken, taken)
    return None
