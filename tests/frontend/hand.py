"""Per-device code done by hand: the arrays of all devices of a mesh in NumPy, by their coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.ir.mesh import Mesh
from gspmd.kernels.finite import limits

Array = NDArray[Any]
Device = tuple[int, ...]
Parts = dict[Device, Array]
Entry = str | tuple[str, ...] | None
_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def random(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Values without structure, the same for the same seed."""
    rng, held = np.random.default_rng(seed), DTYPES[dtype]
    kind = dtype_kind(held)
    if kind in ("float", "complex"):
        found = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind == "complex" else 0)
        return np.asarray(found).astype(held)
    low, high = limits(held)
    return np.asarray(
        rng.integers(int(low), int(high), shape, np.uint64 if low == 0 else np.int64, endpoint=True)
    ).astype(held)


class Hand:
    """What collectives do, from their definitions. Axes are listed major to minor."""

    def __init__(self, mesh: Mesh) -> None:
        self.sizes = dict(mesh.axes)

    @property
    def devices(self) -> list[Device]:
        """The coordinates of all devices."""
        return list(product(*map(range, self.sizes.values())))

    def number(self, device: Device, axes: Sequence[str]) -> int:
        """A device's number along axes."""
        held, out = dict(zip(self.sizes, device, strict=True)), 0
        for axis in axes:
            out = out * self.sizes[axis] + held[axis]
        return out

    def group(self, device: Device, axes: Sequence[str]) -> list[Device]:
        """The devices that differ from one only along axes, by number."""
        names = list(self.sizes)
        found: Iterator[Device] = (
            d for d in self.devices if all(a in axes or d[i] == device[i] for i, a in enumerate(names))
        )
        return sorted(found, key=lambda d: self.number(d, axes))

    def cut(self, x: Array, spec: Sequence[Entry]) -> Parts:
        """Everybody's part of an array."""
        out: Parts = {}
        for device in self.devices:
            part = x
            for dim, entry in enumerate(spec):
                axes = _listed(entry)
                count = int(np.prod([self.sizes[a] for a in axes], dtype=int))
                part = np.split(part, count, axis=dim)[self.number(device, axes)]
            out[device] = part
        return out

    def join(self, parts: Parts, spec: Sequence[Entry]) -> Array:
        """The array of which these are parts; where devices differ in what they hold alike the first one's counts."""
        whole = {d: x for d, x in parts.items() if self._leads(d, spec)}
        for dim in reversed(range(len(spec))):
            axes = _listed(spec[dim])
            firsts = [d for d in whole if self.number(d, axes) == 0]
            whole = {d: np.concatenate([whole[e] for e in self.group(d, axes)], axis=dim) for d in firsts}
        (out,) = whole.values()
        return out

    def _leads(self, device: Device, spec: Sequence[Entry]) -> bool:
        used = {a for entry in spec for a in _listed(entry)}
        return all(a in used or i == 0 for a, i in zip(self.sizes, device, strict=True))

    # -- collectives ----------------------------------------------------------------------------------------------

    def all_gather(self, x: Parts, axes: Sequence[str], dim: int) -> Parts:
        """All parts of the group, one after the other."""
        return {d: np.concatenate([x[e] for e in self.group(d, axes)], axis=dim) for d in x}

    def all_reduce(self, x: Parts, axes: Sequence[str], op: str) -> Parts:
        """All parts of the group, combined one after the other; narrow floats are rounded once."""
        out: Parts = {}
        for d in x:
            first, *rest = (_wide(x[e]) for e in self.group(d, axes))
            for other in rest:
                first = _COMBINE[op](first, other)
            out[d] = first.astype(x[d].dtype)
        return out

    def reduce_scatter(self, x: Parts, axes: Sequence[str], dim: int, op: str) -> Parts:
        """One part of the combination for each device of the group."""
        total = self.all_reduce(x, axes, op)
        return {d: np.split(total[d], len(self.group(d, axes)), axis=dim)[self.number(d, axes)] for d in x}

    def all_to_all(self, x: Parts, axes: Sequence[str], split: int, concat: int) -> Parts:
        """From each device of the group the part that is meant for this one."""
        return {
            d: np.concatenate(
                [
                    np.split(x[e], len(self.group(d, axes)), axis=split)[self.number(d, axes)]
                    for e in self.group(d, axes)
                ],
                axis=concat,
            )
            for d in x
        }

    def permute(self, x: Parts, axes: Sequence[str], pairs: Sequence[tuple[int, int]]) -> Parts:
        """What was sent here, or zeros."""
        source = {to: start for start, to in pairs}
        out: Parts = {}
        for d in x:
            start = source.get(self.number(d, axes))
            out[d] = np.zeros_like(x[d]) if start is None else x[self.group(d, axes)[start]]
        return out


def _listed(entry: Entry) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else entry


def _wide(x: Array) -> Array:
    if "int" in x.dtype.name:
        return x.astype(np.int8 if x.dtype.kind == "V" else x.dtype)
    return x.astype(np.float32) if x.dtype.itemsize <= 2 and x.dtype.kind in "fV" else x
