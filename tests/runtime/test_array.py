"""`gspmd.Array`: made in pieces, put together, and never the user's own memory."""

from __future__ import annotations

import numpy as np
import pytest

import gspmd
from gspmd.ir.errors import ExecutionError, ShardingError

mesh = gspmd.Mesh({"a": 3, "b": 2})
WHOLE = np.arange(35, dtype=np.int32).reshape(7, 5)
TYPE = gspmd.TensorType("i32", (7, 5))
ENTRIES = [(None, None), ("a", None), (None, "a"), ("b", "a"), (("a", "b"), None), (("b", "a"), None)]


@pytest.mark.parametrize("entries", ENTRIES, ids=str)
def test_every_way_to_make_one_gives_it_back(entries: tuple) -> None:
    sharding = gspmd.Sharding.of(mesh, *entries)
    x = gspmd.shard(WHOLE, mesh, *entries)
    assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((7, 5), np.int32, 2, 35, 7)
    assert x.sharding == sharding and len(x.shards) == 6
    assert np.array_equal(np.asarray(x), WHOLE)
    called = gspmd.from_callback(TYPE, sharding, lambda index: WHOLE[index])
    assert np.array_equal(np.asarray(called), WHOLE)
    again = gspmd.from_shards(TYPE, sharding, x.shards)
    assert np.array_equal(np.asarray(again), WHOLE)


def test_moving_between_all_shardings_is_the_identity() -> None:
    for source in ENTRIES:
        x = gspmd.shard(WHOLE, mesh, *source)
        for target in ENTRIES:
            assert np.array_equal(np.asarray(gspmd.shard(x, mesh, *target)), WHOLE), (source, target)


def test_what_the_user_holds_is_not_shared() -> None:
    given = WHOLE.copy()
    rows = gspmd.Sharding.of(mesh, "b", None)
    pieces = [given[:4], given[4:]] * 3
    made = [
        gspmd.shard(given, mesh, None, None),
        gspmd.from_callback(TYPE, gspmd.Sharding.of(mesh, None, None), lambda index: given[index]),
        gspmd.from_shards(TYPE, rows, pieces),
    ]
    given[:] = -1
    for x in made:
        assert np.array_equal(np.asarray(x), WHOLE)
        whole = np.asarray(x)
        whole[:] = -2
        assert np.array_equal(np.asarray(x), WHOLE)
        moved = gspmd.shard(x, mesh, None, "b")
        for view in (x.local, x.shards[0], moved.shards[0]):
            with pytest.raises(ValueError, match="read-only"):
                view[0] = 5
        assert not any(np.shares_memory(a, b) for a in x.shards for b in moved.shards)


def test_scalars_and_dtypes() -> None:
    x = gspmd.shard(np.float32(2.5), mesh)
    assert (float(x), int(x), bool(x), x.item()) == (2.5, 2, True, 2.5)
    assert x.local.shape == () and x.local == 2.5 and not x.local.flags.writeable
    assert np.asarray(x, np.float64).dtype == np.float64
    big = gspmd.shard(np.arange(3, dtype=">f4"), mesh, "a")
    assert big.dtype == np.float32 and np.asarray(big).tolist() == [0, 1, 2]
    assert np.asarray(gspmd.from_callback(big.type, big.sharding, lambda i: np.arange(3, dtype=">f4")[i])).sum() == 3
    assert gspmd.shard(np.zeros(3), mesh, "a").dtype == np.float32
    with pytest.raises(TypeError, match="without dimensions"):
        len(x)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, copy=False)
    assert repr(gspmd.shard(WHOLE, mesh, "a", None)) == "gspmd.Array(i32[7@a, 5])"


def test_mistakes() -> None:
    rows = gspmd.Sharding.of(mesh, "a", None)
    with pytest.raises(ExecutionError, match=r"callback returned shape \(7, 5\).*expected \(3, 5\)"):
        gspmd.from_callback(TYPE, rows, lambda index: WHOLE)
    with pytest.raises(ExecutionError, match="holds 6 shards, got 1"):
        gspmd.from_shards(TYPE, rows, [WHOLE])
    with pytest.raises(ExecutionError, match=r"a shard has shape \(7, 5\), expected \(3, 5\)"):
        gspmd.from_shards(TYPE, rows, [WHOLE] * 6)
    with pytest.raises(ExecutionError, match=r"an array of i32 holds float64\n  fix: convert it"):
        gspmd.from_callback(TYPE, rows, lambda index: WHOLE[index] + 0.5)
    with pytest.raises(ExecutionError, match="holds an integer that does not fit"):
        gspmd.from_callback(gspmd.TensorType("i8", (7, 5)), rows, lambda index: WHOLE[index] + 100)
    with pytest.raises(ShardingError, match="1 dimensions for an array of 2"):
        gspmd.from_callback(TYPE, gspmd.Sharding.of(mesh, "a"), lambda index: WHOLE[index])
    for entries, message in (
        (("c", None), "no axis 'c'"),
        (("a", "a"), "an axis once"),
        (("a",), "1 entries for a value of 2"),
    ):
        with pytest.raises(ShardingError, match=rf"{message}[\s\S]*test_array.py:\d+"):
            gspmd.shard(WHOLE, mesh, *entries)
