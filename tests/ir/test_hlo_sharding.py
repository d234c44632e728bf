"""XLA's sharding text against a NumPy evaluation of tile assignments, and against XLA's own reader where present."""

import random
import re

import numpy as np
import pytest

from gspmd.ir.errors import ShardingError
from gspmd.ir.hlo_sharding import mesh_of, split_tuple
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import DimSharding, Sharding
from tests.ir.sharding_cases import random_mesh, random_sharding


def _evaluate(text: str, rank: int, devices: int) -> list[tuple[tuple[int, ...], int, int]]:
    """For each device id its tile, its manual subgroup and its unreduced subgroup, as XLA defines the text."""
    body = text[1:-1]
    if body in ("replicated", "manual", "unreduced"):
        none = (0,) * rank
        return [(none, d if body == "manual" else 0, d if body == "unreduced" else 0) for d in range(devices)]
    tile = [int(n) for n in re.search(r"devices=\[([\d,]+)\]", body)[1].split(",")]  # type: ignore[index]
    iota = re.search(r"<=\[([\d,]+)\](?:T\(([\d,]+)\))?", body)
    if iota:
        ids = np.arange(devices).reshape([int(n) for n in iota[1].split(",")])
        if iota[2]:
            ids = ids.transpose([int(n) for n in iota[2].split(",")])
    else:
        ids = np.array([int(n) for n in re.search(r"\]([\d,]+)", body)[1].split(",")])  # type: ignore[index]
    last = re.search(r"last_tile_dims=\{([\w, ]+)\}", body)
    kinds = last[1].split(", ") if last else ["replicated"] * ("last_tile_dim_replicate" in body)
    assert len(tile) == rank + len(kinds)
    out: list[tuple[tuple[int, ...], int, int]] = [((), 0, 0)] * devices
    for position, device in np.ndenumerate(ids.reshape(tile)):
        group = dict(zip(kinds, position[rank:], strict=True))
        out[device] = (tuple(map(int, position[:rank])), group.get("manual", 0), group.get("unreduced", 0))
    return out


def _said(s: Sharding) -> list[tuple[tuple[int, ...], int, int]]:
    mesh = s.mesh
    out: list[tuple[tuple[int, ...], int, int]] = [((), 0, 0)] * mesh.size
    for i in range(mesh.size):
        tile = tuple(mesh.tile_index(i, d.axes) for d in s.dims)
        out[mesh.device(i)] = (tile, mesh.tile_index(i, s.manual), mesh.tile_index(i, s.unreduced))
    return out


def _partition(said: list[tuple[tuple[int, ...], int, int]]) -> list[tuple[tuple[int, ...], int, int]]:
    """The same with subgroups numbered as they come: which devices belong together matters, not their number."""
    manual, unreduced = ({g: i for i, g in enumerate(dict.fromkeys(x[k] for x in said))} for k in (1, 2))
    return [(tile, manual[m], unreduced[u]) for tile, m, u in said]


def _expressible(s: Sharding) -> Sharding:
    return Sharding(s.mesh, s.closed().dims, s.unreduced, s.monoid, (), s.manual)


def test_text_means_what_the_sharding_says_and_reads_back() -> None:
    rng = random.Random(5)
    for _ in range(2000):
        mesh = random_mesh(rng, ordered=True)
        s = random_sharding(rng, mesh, rng.randrange(1, 4))
        text = s.to_hlo()
        assert _partition(_evaluate(text, s.rank, mesh.size)) == _partition(_said(s)), (s, text)
        assert Sharding.from_hlo(text, mesh, s.rank) == _expressible(s), (s, text)


def test_reading_without_a_mesh_keeps_the_tiles() -> None:
    rng = random.Random(6)
    for _ in range(500):
        mesh = random_mesh(rng, ordered=True)
        s = random_sharding(rng, mesh, rng.randrange(1, 4), plain=True)
        if s.used:
            made = Sharding.from_hlo(s.to_hlo())
            tiles = [t for t, _, _ in _said(s)]
            assert [t for t, _, _ in _said(made)] == tiles and made.mesh.size == mesh.size
            assert all(p in made.mesh.whole for p in made.used)


def test_one_mesh_for_many_texts() -> None:
    rng = random.Random(7)
    for _ in range(300):
        mesh = random_mesh(rng)
        shardings = [random_sharding(rng, mesh, rng.randrange(1, 4), plain=True) for _ in range(4)]
        texts = [s.to_hlo() for s in shardings]
        common = mesh_of(texts, mesh.size)
        assert common.size == mesh.size and common.device_order is None
        for s, text in zip(shardings, texts, strict=True):
            assert _said(Sharding.from_hlo(text, common, s.rank)) == _said(s)
    assert mesh_of(["{devices=[2,4]<=[8]}", "{devices=[4,2]<=[4,2]T(0,1)}"]).axes == (("a0", 2), ("a1", 2), ("a2", 2))
    assert mesh_of(["{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}"]).axes == (("a0", 6),)
    assert mesh_of(["{replicated}"], 4).size == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}", "[b, _]"),
        ("{devices=[2,2,2]<=[8]}", "[a, b, c]"),
        ("{devices=[4,2]<=[2,2,2]T(2,0,1)}", "[c+a, b]"),
        ("{devices=[2,4]0,1,4,5,2,3,6,7 last_tile_dim_replicate}", "[b]"),
        ("{devices=[2,4]5,4,1,0,7,6,3,2 last_tile_dim_replicate}", "[b]"),  # order within a replica group is free
        ("{devices=[1,2,4]<=[8] last_tile_dims={manual, replicated}}", "[_]!(a)"),
        ("{devices=[2,2,2]<=[8] last_tile_dims={manual,replicated}}", "[a]!(b)"),
        ("{devices=[2,2,1,2]<=[8] last_tile_dims={manual, manual, replicated}}", "[a]!(b)"),
        ("{devices=[2,2,2]<=[8] last_tile_dims={unreduced, replicated}}", "[a]~add(b)"),
        ("{manual}", "[]!(a,b,c)"),
        ("{replicated}", "[]"),
        ('{devices=[8]<=[8] metadata={op_name="x{y}"}}', "[a+b+c]"),
        ("{devices=[8]<=[8] shard_as 3}", "[a+b+c]"),
    ],
)
def test_known_texts(text: str, expected: str) -> None:
    mesh = Mesh({"a": 2, "b": 2, "c": 2})
    assert Sharding.from_hlo(text, mesh).text() == expected


def test_tuples() -> None:
    text = "{{devices=[2,1]<=[2]}, /*index=1*/{replicated}, {devices=[1,2]<=[2] last_tile_dims={replicated}}}"
    assert len(split_tuple(text)) == 3 and split_tuple("{}") == ()
    mesh = mesh_of(split_tuple(text))
    shardings = [Sharding.from_hlo(t, mesh, rank) for t, rank in zip(split_tuple(text), (2, 3, 1), strict=True)]
    assert [s.text() for s in shardings] == ["[a0, _]", "[_, _, _]", "[_]"]


def test_a_sharding_on_one_device_is_replicated_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="maximal device=1"):
        assert Sharding.from_hlo("{maximal device=1}", Mesh({"x": 2}), 2) == Sharding.replicate(Mesh({"x": 2}), 2)


def test_an_irregular_list_becomes_the_device_order() -> None:
    ring = "{devices=[4]0,1,3,2}"
    mesh = mesh_of([ring, "{devices=[2,2]0,1,3,2 last_tile_dim_replicate}"], 4)
    assert mesh.device_order == (0, 1, 3, 2)
    s = Sharding.from_hlo(ring, mesh)
    assert s.to_hlo() == ring and Sharding.from_hlo("{devices=[4]1,0,2,3}").mesh.device_order == (1, 0, 2, 3)
    # The coarse list alone would not tell the order inside its groups; the finer one is tried first.
    assert mesh_of(["{devices=[2,2]0,3,1,2 last_tile_dim_replicate}", "{devices=[4]3,0,1,2}"]).device_order == (
        3,
        0,
        1,
        2,
    )


@pytest.mark.parametrize(
    ("make", "rule", "words"),
    [
        (lambda m: Sharding.from_hlo("{devices=[3,2]<=[6]}", m), "hlo.C5", "cuts axis 'y' of size 3"),
        (lambda m: Sharding.from_hlo("{devices=[4,3]<=[2,6]T(1,0)}"), "hlo.C5", "is 4, which cuts the digits [6, 2]"),
        (lambda m: Sharding.from_hlo("{devices=[6]0,1,3,2,4,5}", m), "hlo.C4", "no mixed-radix listing"),
        (
            lambda m: Sharding.from_hlo("{devices=[4]<=[4]}", m),
            "hlo.C3",
            "assigns 4 devices, but the mesh [x=2, y=3] has 6",
        ),
        (lambda m: Sharding.from_hlo("{devices=[6]<=[6]}", m, 2), "hlo.C2", "the tensor has 2"),
        (lambda m: mesh_of(["{devices=[4]<=[4]}", "{devices=[6]<=[6]}"]), "hlo.C3", "{devices=[4]<=[4]} assigns 4"),
        (lambda m: mesh_of(["{devices=[6]<=[6]}"], 4), "hlo.C3", "4 are expected"),
        (
            lambda m: mesh_of(["{devices=[4]0,1,3,2}", "{devices=[4]<=[4]}", "{devices=[4]0,2,3,1}"]),
            "hlo.C6",
            "0,1,3,2",
        ),
        (lambda m: Sharding.from_hlo("devices=[6]<=[6]", m), "hlo.C1", "braces"),
        (lambda m: Sharding.from_hlo("{devices=[6]<=[4]}", m), "hlo.C1", "iota of 4"),
        (lambda m: Sharding.from_hlo("{devices=[2]0,0}", m), "hlo.C1", "each of 0..1 once"),
        (lambda m: Sharding.from_hlo("{devices=[6,1]<=[6] last_tile_dims={shared}}", m), "hlo.C1", "last_tile_dims"),
        (lambda m: Sharding.from_hlo("{sharded}", m), "hlo.C1", "maximal device=k"),
        (lambda m: split_tuple("{{replicated}, x}"), "hlo.C1", "tuple"),
        (lambda m: Sharding(m, (DimSharding((m.axis("x"),), False, 5),)).to_hlo(), "hlo.C8", "[x/5]"),
        (lambda m: Sharding.of(m, None, unreduced="x", monoid="max").to_hlo(), "hlo.C8", "max"),
    ],
)
def test_errors_say_what_is_in_the_way(make, rule: str, words: str) -> None:
    with pytest.raises(ShardingError, match=re.escape(words)) as info:
        make(Mesh({"x": 2, "y": 3}))
    assert info.value.rule == rule


def test_xla_reads_our_text_as_its_own() -> None:
    xla = pytest.importorskip("jax._src.lib").xla_client
    rng = random.Random(8)
    for _ in range(500):
        mesh = random_mesh(rng, ordered=True)
        text = random_sharding(rng, mesh, rng.randrange(1, 4)).to_hlo()
        assert str(xla.HloSharding.from_string(text)) == text
