"""Random meshes and random shardings on them: several axes a dimension, pieces of axes, open and closed, priorities."""

from __future__ import annotations

import numpy as np

from gspmd.ir.errors import GspmdError
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import DimSharding, Sharding

Rng = np.random.Generator
_SMALL = 8
_NAMES = ("x", "y", "z")


def one_in(rng: Rng, n: int) -> bool:
    """True once in n times."""
    return int(rng.integers(n)) == 0


def random_mesh(rng: Rng, devices: int = 24) -> Mesh:
    """One to three axes, on at most 8 devices, or in one case of ten on more; some axes idle or of size 1."""
    most = devices if one_in(rng, 10) else min(_SMALL, devices)
    sizes: list[int] = []
    left = most
    for _ in range(int(rng.choice([1, 2, 2, 2, 3]))):
        options = range(1 if one_in(rng, 6) else 2, left + 1)
        if not options:
            break
        sizes.append(int(rng.choice(options)))
        left //= sizes[-1]
    sizes = [int(n) for n in rng.permutation(sizes)]
    count = int(np.prod(sizes))
    order = rng.permutation(count) if one_in(rng, 10) else None
    return Mesh(zip(_NAMES, sizes, strict=False), order)


def random_sharding(rng: Rng, mesh: Mesh, rank: int, shape: tuple[int, ...] = ()) -> Sharding:
    """Axes and pieces of axes dealt to dimensions; some dimensions open, some heard late; some axes kept out."""
    dims: list[list[Axis]] = [[] for _ in range(rank)]
    kept: list[Axis] = []
    for i in rng.permutation(len(mesh.axes)):
        name, size = mesh.axes[i]
        for axis in _pieces(rng, name, size):
            choice = int(rng.integers(10))
            if rank and choice < 7:
                dims[int(rng.integers(rank))].append(axis)
            elif choice == 7:
                kept.append(axis)
    late = one_in(rng, 5)
    made = tuple(
        DimSharding(tuple(d), bool(rng.integers(2)), None, int(rng.integers(3)) if late and (d or rank) else 0)
        for d in dims
    )
    try:
        return Sharding(mesh, made, replicated=tuple(kept))
    except GspmdError:  # pieces of one axis that lie wrongly together
        return Sharding.replicate(mesh, rank).opened()


def _pieces(rng: Rng, name: str, size: int) -> list[Axis]:
    """The axis whole, or in two pieces, in either order."""
    cuts = [a for a in range(2, size) if size % a == 0]
    if not cuts or not one_in(rng, 5):
        return [Axis(name, 1, size)]
    a = int(rng.choice(cuts))
    pieces = [Axis(name, 1, a), Axis(name, a, size // a)]
    return pieces if rng.integers(2) else pieces[::-1]
