"""Meshes and axis lists: coordinates, digits, text, and the arithmetic of prefixes against enumeration."""

import copy
import itertools
import pickle
import random
import re

import numpy as np
import pytest

from gspmd.ir import axes as ax
from gspmd.ir.errors import ShardingError
from gspmd.ir.mesh import Axis, Mesh, parse_mesh
from tests.ir.sharding_cases import MESHES, all_axis_lists, random_digits, random_mesh


@pytest.mark.parametrize("axes", MESHES, ids=str)
def test_coordinates_are_those_of_a_row_major_array(axes: dict[str, int]) -> None:
    mesh = Mesh(axes)
    shape = tuple(axes.values())
    for i in range(mesh.size):
        assert mesh.coordinates(i) == tuple(map(int, np.unravel_index(i, shape)))
        assert mesh.index(mesh.coordinates(i)) == i
        assert tuple(mesh.digit(i, mesh.axis(n)) for n in axes) == mesh.coordinates(i)


def test_a_digit_is_an_index_into_the_reshaped_axis() -> None:
    mesh = Mesh({"x": 2, "y": 12, "z": 3})
    for pre, size in [(1, 12), (1, 3), (3, 2), (6, 2), (2, 3), (2, 6)]:
        axis = mesh.axis(f"y:({pre}){size}")
        grid = np.arange(72).reshape(2, pre, size, 12 // (pre * size), 3)
        for i in range(72):
            assert mesh.digit(i, axis) == np.argwhere(grid == i)[0][2]
        assert mesh.stride(axis) == grid[0, 0, 1, 0, 0] - grid[0, 0, 0, 0, 0]


def test_tile_index_and_group_enumerate_all_digits() -> None:
    rng = random.Random(1)
    for _ in range(100):
        mesh = random_mesh(rng)
        axes = tuple(random_digits(rng, mesh)[: rng.randrange(4)])
        for i in range(mesh.size):
            group = mesh.group(i, axes)
            assert [mesh.tile_index(d, axes) for d in group] == list(range(ax.parts(axes)))
            assert group[mesh.tile_index(i, axes)] == i
        whole = tuple(random_digits(rng, mesh))
        assert sorted(mesh.tile_index(i, whole) for i in range(mesh.size)) == list(range(mesh.size))


def test_names_and_identity_orders_do_not_matter_to_equality() -> None:
    a = Mesh({"x": 2, "y": 3}, name="a")
    assert a == Mesh([("x", 2), ("y", 3)], range(6), "b")
    assert hash(a) == hash(Mesh({"x": 2, "y": 3}, name="b"))
    assert a != Mesh({"y": 3, "x": 2})
    ordered = Mesh({"x": 2, "y": 3}, [1, 0, 2, 3, 4, 5])
    assert ordered != a
    assert [ordered.device(i) for i in range(3)] == [1, 0, 2]
    with pytest.raises(AttributeError):
        a.name = "c"  # type: ignore[misc]


def test_text_round_trip_and_copies() -> None:
    rng = random.Random(2)
    for _ in range(50):
        mesh = random_mesh(rng, ordered=True)
        assert parse_mesh(mesh.text()) == mesh
        for other in (pickle.loads(pickle.dumps(mesh)), copy.deepcopy(mesh)):
            assert other == mesh and hash(other) == hash(mesh)
        for digit in random_digits(rng, mesh):
            assert mesh.axis(mesh.axis_text(digit)) == digit
            assert pickle.loads(pickle.dumps(digit)) == digit
    assert Mesh({"data": 2, "model": 4}).text() == "[data=2, model=4]"
    assert Mesh({"x": 2}, [1, 0]).text() == "[x=2] devices=[1,0]"
    assert Mesh({}).size == 1
    assert Mesh(data=2, model=4) == Mesh({"data": 2, "model": 4}) == Mesh({"data": 2}, model=4)
    assert Mesh(x=2, device_order=[1, 0]) == Mesh({"x": 2}, [1, 0])


@pytest.mark.parametrize(
    ("make", "rule", "words"),
    [
        (lambda: Mesh({"x": 0}), "mesh.C2", "size 0"),
        (lambda: Mesh(x=0), "mesh.C2", "size 0"),
        (lambda: Mesh({"x": 2}, x=2), "mesh.C1", "twice"),
        (lambda: Mesh(name=2), "mesh.C1", "is a text, got 2"),  # type: ignore[arg-type]
        (lambda: Mesh({"a b": 2}), "mesh.C1", "'a b'"),
        (lambda: Mesh({"_": 2}), "mesh.C1", "'_'"),
        (lambda: Mesh([("x", 2), ("x", 3)]), "mesh.C1", "twice"),
        (lambda: Mesh(4), "mesh.C2", "got 4"),  # type: ignore[arg-type]
        (lambda: Mesh((2, 2), ("a", "b")), "mesh.C2", "got (2, 2)"),  # type: ignore[arg-type]
        (lambda: Mesh({"x": 2.5}), "mesh.C2", "whole number"),  # type: ignore[dict-item]
        (lambda: Mesh({0: 2}), "mesh.C1", "0 cannot name"),  # type: ignore[dict-item]
        (lambda: Mesh({"x": 2}, [0, 0]), "mesh.C3", "permutation"),
        (lambda: Mesh({"x": 2}, [0, 1, 2]), "mesh.C3", "2 devices"),
        (lambda: Mesh({"data": 2, "model": 4}).axis("batch"), "mesh.C4", "[data=2, model=4] has no axis 'batch'"),
        (lambda: Mesh({"x": 4}).axis("x:(2)4"), "mesh.C5", "2*4 must divide 4"),
        (lambda: Mesh({"x": 4}).axis("x:2"), "mesh.C4", "'x:2'"),
        (lambda: Mesh({"x": 4}).coordinates(4), "mesh.C6", "device 4"),
        (lambda: Mesh({"x": 4}).index((4,)), "mesh.C6", "(4,)"),
    ],
)
def test_errors_name_the_rule_and_the_facts(make, rule: str, words: str) -> None:
    with pytest.raises(ShardingError, match=re.escape(words)) as info:
        make()
    assert info.value.rule == rule


def _projection(mesh: Mesh, axes: ax.Axes) -> list[int]:
    return [mesh.tile_index(i, axes) for i in range(mesh.size)]


def _is_prefix(mesh: Mesh, a: ax.Axes, b: ax.Axes) -> bool:
    """By enumeration: the tile index along a is that along b without its minor part."""
    q, r = divmod(ax.parts(b), ax.parts(a))
    return r == 0 and all(i == j // q for i, j in zip(_projection(mesh, a), _projection(mesh, b), strict=True))


@pytest.mark.parametrize("axes", [{"x": 12}, {"x": 4, "y": 2}, {"x": 2, "y": 3}], ids=str)
def test_prefixes_against_enumeration(axes: dict[str, int]) -> None:
    mesh = Mesh(axes)
    lists = all_axis_lists(mesh)
    prefix = {(a, b): _is_prefix(mesh, a, b) for a in lists for b in lists}
    for a, b in prefix:
        assert ax.is_prefix(a, b) == prefix[a, b], (a, b)
        shared = [c for c in lists if prefix[c, a] and prefix[c, b]]
        assert ax.common_prefix(a, b) == max(shared, key=ax.parts), (a, b)
        if prefix[a, b]:
            assert ax.canonical((*a, *ax.without_prefix(b, a))) == b


@pytest.mark.parametrize("axes", [{"x": 12}, {"x": 4, "y": 2}], ids=str)
def test_cut_takes_the_prefix_of_that_many_parts(axes: dict[str, int]) -> None:
    mesh = Mesh(axes)
    lists = all_axis_lists(mesh)
    for b in lists:
        for n in range(1, mesh.size + 1):
            wanted = [a for a in lists if ax.parts(a) == n and _is_prefix(mesh, a, b)]
            got = ax.cut(b, n)
            assert (got is None) == (not wanted), (b, n)
            if got is not None:
                assert ax.canonical(got[0]) == wanted[0]
                assert ax.canonical((*got[0], *got[1])) == b


def test_free_prefix_is_the_longest_that_overlaps_nothing() -> None:
    mesh = Mesh({"x": 8, "y": 2})
    lists = all_axis_lists(mesh)
    rng = random.Random(3)
    for _ in range(1500):
        a, used = rng.choice(lists), rng.choice(lists)
        free = [c for c in lists if ax.is_prefix(c, a) and not ax.overlaps(c, used)]
        assert ax.free_prefix(a, used) == max(free, key=ax.parts), (a, used)


def test_overlap_means_that_the_digits_are_not_independent() -> None:
    mesh = Mesh({"x": 12})
    pieces = [Axis("x", p, n) for p in range(1, 13) for n in range(2, 13) if 12 % (p * n) == 0]
    for p, q in itertools.product(pieces, pieces):
        pairs = {(mesh.digit(i, p), mesh.digit(i, q)) for i in range(12)}
        counts = [sum((mesh.digit(i, p), mesh.digit(i, q)) == c for i in range(12)) for c in pairs]
        independent = len(pairs) == p.size * q.size and len(set(counts)) == 1
        # Digits such as (1)3 and (6)2 of 12 are independent; (1)4 and (2)2 are not; chains decide for the rest.
        chained = any(b.pre % (a.pre * a.size) == 0 for a, b in ((p, q), (q, p)))
        assert ax.overlap(p, q) == (not chained)
        assert independent or not chained


def test_sets_of_digits() -> None:
    mesh = Mesh({"x": 8, "y": 3})
    x, y = mesh.axis("x"), mesh.axis("y")
    high, low, mid = mesh.axis("x:(1)2"), mesh.axis("x:(2)4"), mesh.axis("x:(2)2")
    assert ax.difference((x, y), (high,)) == (low, y)
    assert ax.difference((x, y), (mid,)) == (high, mesh.axis("x:(4)2"), y)
    assert ax.intersection((y, x), (mid,)) == (mid,)
    assert ax.union((mid,), (y, x)) == (mid, y, high, mesh.axis("x:(4)2"))
    assert ax.union((Axis("x", 2, 3),), (Axis("x", 3, 2),)) is None
    assert ax.as_set((y, low, high), mesh.axis_names) == (x, y)
    assert ax.contains((low, high), x) and not ax.contains((low,), x) and ax.contains((x,), mid)
    assert ax.atoms((x,), ax.cut_points((mid,))) == (high, mid, mesh.axis("x:(4)2"))
    assert ax.canonical((high, low, Axis("one", 1, 1))) == (x,)
