"""XLA's sharding text in terms of mesh axes, and back.

A tile assignment is a mixed-radix listing of device ids. It is first read as an axis list over ONE flat axis of all
devices (a digit of the device id is a piece of that axis), cut by the tile counts, and then laid onto the mesh's axes.
Not every text fits every mesh; the errors say which fact is in the way. This file knows axis lists, not `Sharding`,
whose methods `to_hlo` and `from_hlo` are the way in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.axes import Axes, as_set, canonical, cut, difference, parts
from gspmd.ir.errors import ShardingError
from gspmd.ir.hlo_text import HloTiling, parse_hlo, split_tuple
from gspmd.ir.location import warn
from gspmd.ir.mesh import Axis, Mesh

__all__ = ["AxisTiling", "mesh_of", "split_tuple", "to_axes", "to_text"]

_FLAT = "devices"  # the name of the one axis of all devices


@dataclass(frozen=True, slots=True)
class AxisTiling:
    """What XLA's text can say about a tensor, in mesh axes: those of each dimension, unreduced ones, manual ones."""

    dims: tuple[Axes, ...]
    unreduced: Axes = ()
    manual: Axes = ()


def to_text(mesh: Mesh, tiling: AxisTiling) -> str:
    """Print a tiling as XLA does: an iota where the mesh has no device order, else a list of devices."""
    used = [a for axes in tiling.dims for a in axes]
    groups = [("manual", tiling.manual), ("unreduced", tiling.unreduced)]
    taken = (*used, *tiling.manual, *tiling.unreduced)
    groups.append(("replicated", as_set(difference(mesh.whole, taken), mesh.axis_names)))  # in the order of XLA
    groups = [(kind, axes) for kind, axes in groups if axes]
    if not used and len(groups) <= 1:
        return "{" + (groups[0][0] if groups else "replicated") + "}"
    order = (*used, *(a for _, axes in groups for a in axes))
    tile = [parts(axes) for axes in (*tiling.dims, *(axes for _, axes in groups))]
    kinds = [kind for kind, _ in groups]
    last = ""
    if kinds == ["replicated"]:
        last = " last_tile_dim_replicate"
    elif kinds:
        last = f" last_tile_dims={{{', '.join(kinds)}}}"
    replicas = parts(groups[-1][1]) if kinds[-1:] == ["replicated"] else 1
    return f"{{devices=[{','.join(map(str, tile))}]{_device_text(mesh, order, replicas)}{last}}}"


def _device_text(mesh: Mesh, order: Axes, replicas: int) -> str:
    """The devices listed by the digits in `order`, which name every digit of the mesh once, major to minor.

    An explicit list is ascending within each group of `replicas`, as XLA writes it.
    """
    if mesh.device_order is not None:
        index = np.zeros((), np.int64)
        for a in order:
            index = index[..., None] + mesh.stride(a) * np.arange(a.size)
        ids = np.sort(np.array(mesh.device_order)[index].reshape(-1, replicas), axis=1)
        return ",".join(map(str, ids.ravel()))
    flat = canonical(Axis(_FLAT, mesh.size // (mesh.stride(a) * a.size), a.size) for a in order)
    shape = sorted(flat, key=lambda p: p.pre)
    perm = [shape.index(p) for p in flat]
    transpose = "" if perm == sorted(perm) else f"T({','.join(map(str, perm))})"
    return f"<=[{','.join(str(p.size) for p in shape)}]{transpose}"


def to_axes(text: str, mesh: Mesh, rank: int | None = None) -> AxisTiling:
    """Read XLA's text on a mesh; raises ShardingError, saying why, if the mesh's axes cannot express it.

    A sharding on one device ("maximal") becomes replicated, with a warning. `rank` is that of the tensor: the text
    `{replicated}` does not tell it, and 0 is taken if it is None.
    """
    parsed = parse_hlo(text)
    if parsed.kind == "maximal":
        warn(f"the sharding {text} puts a tensor on one device; it is taken as replicated")
    if parsed.kind != "tiled":
        dims: tuple[Axes, ...] = ((),) * (rank or 0)
        unreduced = mesh.whole if parsed.kind == "unreduced" else ()
        return AxisTiling(dims, unreduced, mesh.whole if parsed.kind == "manual" else ())
    if rank is not None and rank != parsed.rank:
        raise ShardingError(f"{text} splits {parsed.rank} dimensions, but the tensor has {rank}", rule="hlo.C2")
    if parsed.count != mesh.size:
        raise ShardingError(
            f"{text} assigns {parsed.count} devices, but the mesh {mesh.text()} has {mesh.size}",
            rule="hlo.C3",
            fix="compile for as many devices as the annotations name",
        )
    lists = tuple(_on_mesh(text, axes, mesh) for axes in _flat_lists(text, parsed, mesh.device_order))
    groups: dict[str, Axes] = {}
    for kind, axes in zip(parsed.subgroups, lists[parsed.rank :], strict=True):
        groups[kind] = groups.get(kind, ()) + axes
    return AxisTiling(lists[: parsed.rank], groups.get("unreduced", ()), groups.get("manual", ()))


def _on_mesh(text: str, flat: Axes, mesh: Mesh) -> Axes:
    """A list of pieces of the flat axis as pieces of the mesh's axes."""
    out: list[Axis] = []
    for p in flat:
        high = mesh.size // p.pre
        low = high // p.size
        for name, size in mesh.axes:
            start = mesh.stride(Axis(name, 1, size))
            end = start * size
            lo, hi = max(low, start), min(high, end)
            if hi <= lo:
                continue
            if hi % lo or end % hi or lo % start:
                raise ShardingError(
                    f"{text} splits {p.size} ways at a device stride of {low}, which cuts axis {name!r} of size {size} "
                    f"(stride {start}) of the mesh {mesh.text()} at no divisor",
                    rule="hlo.C5",
                    fix="leave the mesh out, or give one whose axes are finer or flat",
                )
            out.append(Axis(name, end // hi, hi // lo))
    return canonical(out)


@lru_cache(maxsize=4096)
def _flat_lists(text: str, parsed: HloTiling, order: tuple[int, ...] | None) -> tuple[Axes, ...]:
    """The axis list of each dimension and subgroup over the flat axis, device ids translated by a device order."""
    digits = _flat_digits(parsed, order)
    if digits is None:
        under = "" if order is None else f" under the device order {_short(order)}"
        raise ShardingError(
            f"the device list of {text} is no mixed-radix listing{under}, so no axes describe it",
            rule="hlo.C4",
            fix="use a mesh whose device order is this list: leave the mesh out, or pass device_order",
        )
    lists: list[Axes] = []
    rest = digits
    for i, count in enumerate(parsed.tile):
        pieces = cut(rest, count)
        if pieces is None:
            raise ShardingError(
                f"entry {i} of the tile counts in {text} is {count}, which cuts the digits "
                f"{[p.size for p in digits]} of the device id at no divisor",
                rule="hlo.C5",
            )
        lists.append(pieces[0])
        rest = pieces[1]
    return tuple(lists)


@lru_cache(maxsize=4096)
def _flat_digits(parsed: HloTiling, order: tuple[int, ...] | None) -> Axes | None:
    """The digits of the listing of devices, major to minor, as pieces of the flat axis; None if it has none."""
    if parsed.devices is None and order is None:
        pre = [prod(parsed.iota[:i]) for i in range(len(parsed.iota))]
        return canonical(Axis(_FLAT, pre[i], parsed.iota[i]) for i in parsed.perm)
    return _listing_digits(parsed.device_list(order))


def _listing_digits(devices: NDArray[np.int64]) -> Axes | None:
    """The digits by which a permutation of 0..n-1 is a mixed-radix listing, or None; found from minor to major."""
    n = len(devices)
    if devices[0] != 0:
        return None
    digits: list[Axis] = []
    block = 1
    while block < n:
        stride = int(devices[block])
        rows = devices.reshape(-1, block)
        wanted = rows[0] + stride * np.arange(len(rows))[:, None]
        same = np.all(rows == wanted, axis=1)
        size = len(rows) if same.all() else int(np.argmin(same))
        if size == 1 or n % (block * size) or n % (stride * size):
            return None
        digits.append(Axis(_FLAT, n // (stride * size), size))
        block *= size
    return canonical(reversed(digits))


def mesh_of(texts: Sequence[str], devices: int | None = None, name: str = "mesh") -> Mesh:
    """The mesh for an import: axes a0, a1, ... that many texts share, the common refinement of all their strides.

    Where strides do not refine each other ({2,3} and {3,2} on 6 devices) one axis covers both, used in pieces. A device
    list that is no mixed-radix listing becomes the mesh's device order if all texts agree under it. Raises
    ShardingError if the numbers of devices differ (`devices` is the expected one) or no order fits all.
    """
    tiled = [(t, parsed) for t in dict.fromkeys(texts) if (parsed := parse_hlo(t)).kind == "tiled"]
    if not tiled:
        return Mesh({"a0": devices} if devices and devices > 1 else {}, name=name)
    n = tiled[0][1].count if devices is None else devices
    for text, parsed in tiled:
        if parsed.count != n:
            expected = f"{n} are expected" if devices is not None else f"{tiled[0][0]} assigns {n}"
            raise ShardingError(f"{text} assigns {parsed.count} devices, but {expected}", rule="hlo.C3")
    order = _common_order(tiled)
    points = {1, n}
    for text, parsed in tiled:
        for axes in _flat_lists(text, parsed, order):
            points.update(p for a in axes for p in (a.pre, a.pre * a.size))
    chain = sorted(p for p in points if all(p % q == 0 or q % p == 0 for q in points))
    return Mesh({f"a{i}": hi // lo for i, (lo, hi) in enumerate(pairwise(chain))}, order, name)


def _common_order(tiled: Sequence[tuple[str, HloTiling]]) -> tuple[int, ...] | None:
    """A device order under which every text is a mixed-radix listing: the identity (None), or one of the lists."""
    odd = next(((t, p) for t, p in tiled if _flat_digits(p, None) is None), None)
    if odd is None:
        return None
    clash = odd[0]
    for order in _orders(p for _, p in tiled):
        misfit = next((t for t, p in tiled if _flat_digits(p, order) is None), None)
        if misfit is None:
            return order
        clash = misfit if misfit != odd[0] else clash
    raise ShardingError(
        f"no one order of the devices fits both {odd[0]} and {clash}",
        rule="hlo.C6",
        fix="build all shardings of a program from one mesh",
    )


def _orders(tilings: Iterable[HloTiling]) -> list[tuple[int, ...]]:
    """The distinct explicit device lists that are no mixed-radix listing.

    Those with the smallest replica groups come first: they say most about the order, and mostly the first one fits.
    """
    odd = [p for p in tilings if p.devices is not None and _flat_digits(p, None) is None]
    odd.sort(key=lambda p: prod(p.tile[p.rank :]))
    return list(dict.fromkeys(tuple(map(int, p.device_list())) for p in odd))


def _short(order: Sequence[int]) -> str:
    return f"[{','.join(map(str, order[:12]))}{',...' if len(order) > 12 else ''}]"
