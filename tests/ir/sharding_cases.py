"""Random meshes and shardings for the laws, with sub-axes, ragged sizes and empty shards."""

import random
from itertools import pairwise

from gspmd.ir.axes import Axes
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import DimSharding, Sharding

MESHES = [
    {"x": 2},
    {"x": 6},
    {"x": 2, "y": 3},
    {"x": 4, "y": 2},
    {"x": 12},
    {"a": 2, "b": 2, "c": 2},
    {"one": 1, "x": 8},
    {"x": 3, "one": 1, "y": 4},
]


def random_mesh(rng: random.Random, ordered: bool = False) -> Mesh:
    axes = rng.choice(MESHES)
    size = Mesh(axes).size
    order = rng.sample(range(size), size) if ordered and rng.random() < 0.5 else None
    return Mesh(axes, order)


def random_digits(rng: random.Random, mesh: Mesh) -> list[Axis]:
    """The mesh's axes, each cut at a random chain of divisors, in random order."""
    digits: list[Axis] = []
    for name, size in mesh.axes:
        pre = 1
        while pre < size:
            n = rng.choice([d for d in range(2, size // pre + 1) if (size // pre) % d == 0])
            digits.append(Axis(name, pre, n))
            pre *= n
    rng.shuffle(digits)
    return digits


def random_sharding(rng: random.Random, mesh: Mesh, rank: int, plain: bool = False) -> Sharding:
    """A sharding; a plain one has only what decides where elements are: axes of dims."""
    lists: list[list[Axis]] = [[] for _ in range(rank + 3)]
    for digit in random_digits(rng, mesh):
        place = rng.randrange(rank + 4)
        if place < (rank if plain else rank + 3):
            lists[place].append(digit)
    dims = tuple(DimSharding(tuple(axes), not plain and rng.random() < 0.5) for axes in lists[:rank])
    unreduced, replicated, manual = (tuple(axes) for axes in lists[rank:])
    return Sharding(mesh, dims, unreduced, "add" if unreduced else None, replicated, manual)


def all_axis_lists(mesh: Mesh) -> list[Axes]:
    """Every canonical axis list of a small mesh, each digit at most once."""
    pieces = [
        Axis(name, pre, n)
        for name, size in mesh.axes
        for pre in range(1, size + 1)
        for n in range(2, size + 1)
        if size % (pre * n) == 0
    ]
    found: dict[Axes, None] = {}

    def grow(axes: Axes) -> None:
        sharding = Sharding(mesh, (DimSharding(axes),))
        found[sharding.dims[0].axes] = None
        for p in pieces:
            if not any(p.name == q.name and (p.pre * p.size > q.pre and q.pre * q.size > p.pre) for q in axes):
                chain = sorted({1, *(c for q in (*axes, p) if q.name == p.name for c in (q.pre, q.pre * q.size))})
                if all(b % a == 0 for a, b in pairwise(chain)):
                    grow((*axes, p))

    grow(())
    return list(found)
