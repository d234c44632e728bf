"""Lists of devices as mesh axes: every list of axis pieces is found again from its groups, anything else is refused."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from gspmd.ir.axes import Axes, canonical
from gspmd.ir.device_groups import axes_of_groups
from gspmd.ir.mesh import Axis, Mesh

MESH = Mesh({"a": 2, "b": 4, "c": 3})
ATOMS = (Axis("a", 1, 2), Axis("b", 1, 2), Axis("b", 2, 2), Axis("c", 1, 3))
LISTS = sorted({canonical(p) for k in range(1, 5) for p in permutations(ATOMS, k)}, key=str)


def groups_of(axes: Axes) -> list[tuple[int, ...]]:
    """The groups of devices along the axes."""
    return [MESH.group(i, axes) for i in range(MESH.size) if MESH.tile_index(i, axes) == 0]


@pytest.mark.parametrize("axes", LISTS, ids=str)
def test_axes_are_found_from_their_groups(axes: Axes) -> None:
    assert axes_of_groups(MESH, groups_of(axes)) == axes
    assert axes_of_groups(MESH, groups_of(axes)[::-1]) == axes


@pytest.mark.parametrize(
    "groups",
    [
        [[0, 1]],
        [],
        [[i, i] for i in range(24)],
        [[0, 5, *range(1, 5), *range(6, 24)]],
        [[*range(1, 24), 0]],
        [[i, 23 - i] for i in range(12)],
    ],
)
def test_groups_that_are_no_product_of_axes(groups: list[list[int]]) -> None:
    assert axes_of_groups(MESH, groups) is None


@pytest.mark.parametrize("mesh", [Mesh({"a": 2, "b": 6, "c": 4}), Mesh({"x": 24}), Mesh({"p": 3, "q": 3})], ids=str)
def test_pieces_of_any_size_are_found_by_their_groups(mesh: Mesh) -> None:
    """Whatever pieces, at most one an axis, in whatever order: what is found has the same groups, members in order."""
    rng = np.random.default_rng(0)
    pieces = [
        Axis(name, pre, size)
        for name, total in mesh.axes
        for pre in range(1, total)
        for size in range(2, total // pre + 1)
        if total % (pre * size) == 0
    ]
    for _ in range(40):
        axes: Axes = ()
        for k in rng.permutation(len(pieces)):
            if rng.integers(3) and all(a.name != pieces[k].name for a in axes):
                axes = (*axes, pieces[k])
        groups = sorted({mesh.group(d, axes) for d in range(mesh.size)})
        found = axes_of_groups(mesh, groups)
        assert found is not None, axes
        assert [mesh.group(g[0], found) for g in groups] == groups
