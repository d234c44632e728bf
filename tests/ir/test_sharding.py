"""The algebra of shardings: where elements are, refinement and merge against enumeration of devices, text, errors."""

import itertools
import pickle
import random
import re

import numpy as np
import pytest

from gspmd.ir.axes import Axes
from gspmd.ir.errors import ShardingError
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import DimSharding, Sharding, dim_text, parse_dim, parse_sharding
from tests.ir.sharding_cases import all_axis_lists, random_mesh, random_sharding

MESH = Mesh({"data": 2, "model": 4})


def _coordinates_along(mesh: Mesh, axis: Axis) -> np.ndarray:
    """For each logical device its digit of the piece, by reshaping an array; shares no code with Mesh.digit."""
    outer = [n for n, _ in mesh.axes].index(axis.name)
    sizes = [s for _, s in mesh.axes]
    before, after = int(np.prod(sizes[:outer])), int(np.prod(sizes[outer + 1 :]))
    shape = (before, axis.pre, axis.size, sizes[outer] // (axis.pre * axis.size), after)
    return np.broadcast_to(np.arange(axis.size)[:, None, None], shape).reshape(-1)


def _tiles(sharding: Sharding, dim: int) -> np.ndarray:
    tile = np.zeros(sharding.mesh.size, int)
    for axis in sharding.dims[dim].axes:
        tile = tile * axis.size + _coordinates_along(sharding.mesh, axis)
    return tile


def test_every_element_is_where_splitting_the_padded_array_puts_it() -> None:
    rng = random.Random(11)
    for _ in range(200):
        mesh = random_mesh(rng)
        rank = rng.randrange(1, 4)
        s = random_sharding(rng, mesh, rank)
        shape = tuple(rng.choice([0, 1, 2, 5, 7, 12]) for _ in range(rank))
        x = np.arange(1, np.prod(shape) + 1, dtype=int).reshape(shape)
        counts = [int(_tiles(s, d).max()) + 1 for d in range(rank)]
        local = s.local_shape(shape)
        assert local == tuple(-(-n // c) for n, c in zip(shape, counts, strict=True))
        padded = np.pad(x, [(0, c * n - m) for c, n, m in zip(counts, local, shape, strict=True)])
        for device in range(mesh.size):
            tiles = [s.mesh.tile_index(device, dim.axes) for dim in s.dims]
            assert tiles == [int(_tiles(s, d)[device]) for d in range(rank)]
            shard = padded[tuple(slice(t * n, (t + 1) * n) for t, n in zip(tiles, local, strict=True))]
            assert shard.shape == local
            bounds = [s.shard_bounds(d, n, t) for d, (n, t) in enumerate(zip(shape, tiles, strict=True))]
            inside = np.zeros(local, bool)
            inside[tuple(slice(hi - lo) for lo, hi in bounds)] = True
            assert np.array_equal(shard != 0, inside)


def test_chunk_bounds_and_normal() -> None:
    s = parse_sharding("[data/5, model]", MESH)
    assert s.local_shape((7, 4)) == (5, 1)
    assert [s.shard_bounds(0, 7, t) for t in range(2)] == [(0, 5), (5, 7)]
    assert [s.shard_bounds(1, 5, t) for t in range(4)] == [(0, 2), (2, 4), (4, 5), (5, 5)]
    assert s.normal((7, 4)) == s
    assert s.normal((9, 4)) == Sharding.of(MESH, "data", "model")
    with pytest.raises(ShardingError, match="cannot hold a dimension of size 11") as info:
        s.local_shape((11, 4))
    assert info.value.rule == "sharding.C6"


def _spans(s: Sharding, dim: int, n: int) -> list[tuple[int, int]]:
    """The span of the buffer of each device along a dimension, not clamped to the tensor."""
    d = s.dims[dim]
    c = -(-n // d.parts) if d.chunk is None else d.chunk
    return [(int(t) * c, int(t) * c + c) for t in _tiles(s, dim)]


def _nested(fine: Sharding, coarse: Sharding, n: int) -> bool:
    """Whether each device's buffer of `fine` lies in its buffer of `coarse` and covers it with its fellows."""
    if not coarse.used:
        return True
    spans = zip(_spans(fine, 0, n), _spans(coarse, 0, n), strict=True)
    return all(low <= lo and hi <= high for (lo, hi), (low, high) in spans)


@pytest.mark.parametrize("axes", [{"x": 12}, {"x": 4, "y": 2}, {"x": 2, "y": 3}], ids=str)
def test_refines_iff_every_buffer_lies_in_the_coarser_one(axes: dict[str, int]) -> None:
    mesh = Mesh(axes)
    shardings = [Sharding(mesh, (DimSharding(a),)) for a in all_axis_lists(mesh)]
    yes = 0
    for n in (1, 2, 5, 8, 12, 24):
        for fine, coarse in itertools.product(shardings, shardings):
            assert fine.refines(coarse, (n,)) == _nested(fine, coarse, n), (fine, coarse, n)
            yes += fine.refines(coarse, (n,))
    assert yes > 6 * len(shardings)


def test_chunks_take_part_in_refinement() -> None:
    mesh = Mesh({"x": 2, "y": 2})
    coarse, fine = Sharding.of(mesh, "x"), Sharding.of(mesh, ("x", "y"))
    assert not fine.refines(coarse, (5,))  # 4 shards of 2 do not nest in 2 shards of 3
    wide = parse_sharding("[x/4]", mesh)
    assert fine.refines(wide, (5,)) and fine.merge(wide, (5,)) == fine
    assert coarse.merge(fine, (5,)) is None
    assert coarse.merge(fine, (8,)) == fine
    assert (
        coarse.merge(parse_sharding("[x/3]", mesh), (5,)) == coarse == parse_sharding("[x/3]", mesh).merge(coarse, (5,))
    )


def _plain(axes: tuple[Axes, ...], mesh: Mesh) -> Sharding | None:
    try:
        return Sharding(mesh, tuple(DimSharding(a) for a in axes))
    except ShardingError:
        return None


@pytest.mark.parametrize("axes", [{"x": 4}, {"x": 2, "y": 2}, {"x": 6}], ids=str)
def test_merge_is_the_least_common_refinement(axes: dict[str, int]) -> None:
    mesh = Mesh(axes)
    pairs = itertools.product(all_axis_lists(mesh), repeat=2)
    every = [s for p in pairs if (s := _plain(p, mesh)) is not None]
    found = 0
    for shape in ((8, 12), (6, 5)):
        finer = {(f, c): f.refines(c, shape) for f in every for c in every}
        for a, b in itertools.product(every, every):
            merged = a.merge(b, shape)
            common = [s for s in every if finer[s, a] and finer[s, b]]
            least = [s for s in common if all(finer[t, s] for t in common)]
            if merged is None:
                # What has no merge has no least refinement that is made of the two's own splits.
                assert not any(all(d in (p, q) for d, p, q in zip(s.dims, a.dims, b.dims, strict=True)) for s in common)
            else:
                found += 1
                assert least == [merged]
    assert found > len(every)


def test_merge_laws() -> None:
    rng = random.Random(13)
    merged = 0
    for _ in range(6000):
        mesh = random_mesh(rng)
        rank = rng.randrange(1, 3)
        shape = tuple(rng.choice([1, 5, 8, 12, 24]) for _ in range(rank))
        a, b, c = (random_sharding(rng, mesh, rank) for _ in range(3))
        assert a.merge(a, shape) == a and a.refines(a, shape)
        ab = a.merge(b, shape)
        assert ab == b.merge(a, shape)
        assert a.refines(b, shape) == (ab is not None and ab.opened() == a.opened())
        if ab is None:
            continue
        merged += 1
        assert ab.refines(a, shape) and ab.refines(b, shape)
        assert ab.merge(a, shape) == ab
        assert [d.open for d in ab.dims] == [p.open and q.open for p, q in zip(a.dims, b.dims, strict=True)]
        bc = b.merge(c, shape)
        left, right = ab.merge(c, shape), None if bc is None else a.merge(bc, shape)
        if left is not None and right is not None:
            assert left == right
    assert merged > 500


def test_merge_respects_axes_that_are_spoken_for() -> None:
    data = Sharding.of(MESH, "data", None)
    shape = (8, 8)
    assert data.merge(Sharding.of(MESH, None, "data"), shape) is None
    assert data.merge(Sharding.of(MESH, None, "model", replicated="data"), shape) is None
    assert data.merge(Sharding.of(MESH, None, None, unreduced="data"), shape) is None
    partial = Sharding.of(MESH, None, None, unreduced="model")
    assert data.merge(partial, shape) == Sharding.of(MESH, "data", None, unreduced="model")
    assert partial.merge(Sharding.of(MESH, None, None, unreduced="model", monoid="max"), shape) is None
    assert data.merge(Sharding.of(Mesh({"data": 2}), None, None), shape) is None


def test_text_round_trip() -> None:
    rng = random.Random(17)
    for _ in range(500):
        mesh = random_mesh(rng)
        s = random_sharding(rng, mesh, rng.randrange(4))
        if rng.random() < 0.5:
            s = s.with_dims(tuple(DimSharding(d.axes, d.open, rng.choice([None, 7])) for d in s.dims))
        again = parse_sharding(s.text(), mesh)
        assert again == s and hash(again) == hash(s)
        assert pickle.loads(pickle.dumps(s)) == s
        assert s.dims == tuple(parse_dim(dim_text(mesh, d), mesh) for d in s.dims)


def test_texts() -> None:
    s = Sharding.of(MESH, "data", None, "?", ("model:(1)2?",), unreduced="model:(2)2")
    assert s.text() == "[data, _, _?, model:(1)2?]~add(model:(2)2)"
    assert s.text((8, 3, 5, 6)) == "[8@data, 3, 5@?, 6@model:(1)2?]~add(model:(2)2)"
    assert Sharding.of(MESH, None, replicated="data", manual="model").text() == "[_]^(data)!(model)"
    assert Sharding.of(MESH, ("data", "model")).text() == "[data+model]"
    assert Sharding.of(MESH).text() == "[]"


def test_construction_is_canonical() -> None:
    mesh = Mesh({"x": 8, "one": 1, "y": 2})
    whole = Sharding.of(mesh, ("x", "y"))
    assert Sharding.of(mesh, ("x:(1)2", "one", "x:(2)4", "y")) == whole
    assert Sharding.of(mesh, None, unreduced=("y", "x:(2)4", "x:(1)2")) == Sharding.of(mesh, None, unreduced=("x", "y"))
    assert Sharding(mesh, (DimSharding((), False, 5),)) == Sharding.replicate(mesh, 1)
    assert Sharding.of(mesh, None, monoid="max").monoid is None
    assert Sharding(mesh, (DimSharding(),), (), "max").monoid is None
    assert whole.used == (mesh.axis("x"), mesh.axis("y"))
    with pytest.raises(AttributeError):
        whole.monoid = "max"  # type: ignore[misc]


def test_small_accessors() -> None:
    s = Sharding.of(MESH, "data?", "?", unreduced="model", monoid="max")
    assert s.rank == 2 and s.is_open and not s.is_replicated and not s.closed().is_open
    assert s.opened() is s and s.closed().opened() == s
    assert s.reduced() == Sharding.of(MESH, "data?", "?")
    assert s.reduced().with_unreduced(s.unreduced, "max") == s
    assert Sharding.replicate(MESH, 3, open=True) == Sharding.of(MESH, "?", "?", "?")
    assert Sharding.of(MESH, "?", replicated="data").is_replicated
    assert not Sharding.of(MESH, None, unreduced="data").is_replicated


@pytest.mark.parametrize(
    ("make", "rule", "words"),
    [
        (lambda: Sharding.of(MESH, "data", "data"), "sharding.C2", "dim 0 uses data, dim 1 uses data"),
        (lambda: Sharding.of(MESH, ("data", "data")), "sharding.C2", "dim 0 uses data, dim 0 uses data"),
        (lambda: Sharding.of(MESH, "model:(1)2", "model"), "sharding.C2", "model:(1)2, dim 1 uses model"),
        (lambda: Sharding.of(MESH, "data", unreduced="data"), "sharding.C2", "unreduced uses data"),
        (lambda: Sharding.of(MESH, "data", replicated="data"), "sharding.C2", "replicated uses data"),
        (lambda: Sharding.of(MESH, "data", manual="data"), "sharding.C2", "manual uses data"),
        (lambda: Sharding.of(Mesh({"x": 12}), "x:(1)2", "x:(3)4"), "sharding.C3", "x:(3)4"),
        (lambda: Sharding.of(MESH, "batch"), "mesh.C4", "no axis 'batch'"),
        (lambda: Sharding.of(MESH, "model:(2)4"), "mesh.C5", "2*4 must divide 4"),
        (lambda: Sharding(MESH, (DimSharding((Axis("data", 1, 3),)),)), "mesh.C5", "size 2"),
        (lambda: Sharding(MESH, (), (MESH.axis("data"),)), "sharding.C4", "without a monoid"),
        (
            lambda: Sharding.of(MESH, "data").local_shape((2, 2)),
            "sharding.C5",
            "has 1 dimensions, but the shape (2, 2)",
        ),
        (lambda: Sharding.of(MESH, "data").merge(Sharding.of(MESH), (2,)), "sharding.C5", "has 0 dimensions"),
        (lambda: Sharding.of(MESH, "data").text((2, 2)), "sharding.C5", "has 2"),
        (lambda: parse_sharding("data", MESH), "sharding.C1", "'data'"),
        (lambda: parse_sharding("[data]~add", MESH), "sharding.C1", "'~add'"),
        (lambda: parse_sharding("[data?/3]", MESH), "sharding.C1", "'data?/3'"),
    ],
)
def test_errors_name_the_rule_and_the_facts(make, rule: str, words: str) -> None:
    with pytest.raises(ShardingError, match=re.escape(words)) as info:
        make()
    assert info.value.rule == rule
