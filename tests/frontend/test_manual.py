"""Per-device code: each collective against its definition in NumPy, and shard_map among everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gspmd
import gspmd.numpy as gnp
from gspmd import PartitionSpec as P
from gspmd.frontend.tree import flatten
from gspmd.ir.dtypes import DTYPES
from gspmd.kernels.closeness import compare
from tests.frontend.hand import Entry, Hand, Parts, random

Array = NDArray[Any]
MESH = gspmd.Mesh({"a": 2, "b": 3, "c": 2})
HAND = Hand(MESH)
AXES = [("a",), ("b",), ("a", "b"), ("c", "a"), ("b", "a", "c")]
SPEC: tuple[Entry, ...] = ("a", ("c", "b"))


def run(function: Callable[..., Any], *arrays: Array, check: bool = True) -> list[Array]:
    """The results on one device, which all stages must give too."""
    types = [gspmd.TensorType(x.dtype, x.shape) for x in arrays]
    module = gspmd.trace(function, *types)
    if check:
        gspmd.compile(module).check(*arrays)
    return [np.asarray(x) for x in flatten(module.run(*arrays))[0]]


def same(found: Array, wanted: Array) -> None:
    outcome = compare(found, wanted, exact=True)
    assert outcome, outcome.message


def spec(entries: Sequence[Entry]) -> P:
    return P(*entries)


def against_hand(mine: Callable[[Any], Any], by_hand: Callable[[Parts], Parts], x: Array) -> None:
    """A collective on parts of an array, all results put side by side, so that every device's counts."""
    side: tuple[Entry, ...] = ("a", ("b", "c"))
    (found,) = run(gspmd.shard_map(mine, MESH, spec(SPEC), spec(side)), x)
    same(found, HAND.join(by_hand(HAND.cut(x, SPEC)), side))


# -- collectives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("dim", [0, -1])
def test_all_gather(axes: tuple[str, ...], dim: int) -> None:
    against_hand(
        lambda p: gspmd.all_gather(p, axes, dim), lambda p: HAND.all_gather(p, axes, dim % 2), random("f32", 4, 18)
    )


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_all_reduce(axes: tuple[str, ...]) -> None:
    against_hand(lambda p: gspmd.all_reduce(p, axes), lambda p: HAND.all_reduce(p, axes, "add"), random("f32", 4, 18))


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("dim", [0, -1])
def test_reduce_scatter(axes: tuple[str, ...], dim: int) -> None:
    x = random("f32", 24, 72)
    against_hand(
        lambda p: gspmd.reduce_scatter(p, axes, dim), lambda p: HAND.reduce_scatter(p, axes, dim % 2, "add"), x
    )


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize(("split", "concat"), [(0, 1), (-1, 0), (1, 1), (0, -2)])
def test_all_to_all(axes: tuple[str, ...], split: int, concat: int) -> None:
    against_hand(
        lambda p: gspmd.all_to_all(p, axes, split, concat),
        lambda p: HAND.all_to_all(p, axes, split % 2, concat % 2),
        random("f32", 24, 72),
    )


PAIRS = [
    (("a",), [(0, 1), (1, 0)]),
    (("b",), [(0, 2), (2, 1)]),
    (("b",), [(k, (k + 1) % 3) for k in range(3)]),
    (("c", "b"), [(5, 0), (0, 5), (2, 2)]),
    (("b", "a"), [(k, (k * 5 + 1) % 6) for k in range(6)]),
    (("a", "b", "c"), []),
]


@pytest.mark.parametrize(("axes", "pairs"), PAIRS, ids=str)
def test_collective_permute(axes: tuple[str, ...], pairs: list[tuple[int, int]]) -> None:
    against_hand(
        lambda p: gspmd.collective_permute(p, axes, pairs), lambda p: HAND.permute(p, axes, pairs), random("f32", 4, 18)
    )


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_axis_index(axes: tuple[str, ...]) -> None:
    against_hand(
        lambda p: p + gspmd.axis_index(axes) * gspmd.axis_size(axes),
        lambda p: {d: (x + HAND.number(d, axes) * len(HAND.group(d, axes))).astype("i4") for d, x in p.items()},
        random("i32", 4, 18),
    )


NUMBERS = [n for n in DTYPES if n not in ("bool", "c64", "c128")]
COMBINED = [
    *((n, op) for n in NUMBERS for op in ("add", "mul", "max", "min")),
    *((n, op) for n in DTYPES if n[0] in "iu" or n == "bool" for op in ("and", "or", "xor")),
    *((n, op) for n in ("c64", "c128") for op in ("add", "mul")),
    *(("bool", op) for op in ("max", "min")),
]


@pytest.mark.parametrize(("dtype", "op"), COMBINED)
def test_monoids(dtype: str, op: str) -> None:
    """Every dtype, by all devices of a group in order; narrow floats are rounded once."""
    x = random(dtype, 4, 18)

    def both(p: Any) -> Any:
        total = gspmd.all_reduce(p, ("b", "a"), op)
        return total, gspmd.reduce_scatter(p, "b", 1, op)

    with np.errstate(all="ignore"):
        parts = HAND.cut(x, (None, "b"))
        wanted = HAND.all_reduce(parts, ("b", "a"), op), HAND.reduce_scatter(parts, ("b",), 1, op)
    found = run(gspmd.shard_map(both, MESH, P(None, "b"), (P(), P(None, "b"))), x)
    same(found[0], HAND.join(wanted[0], ()))
    same(found[1], HAND.join(wanted[1], (None, "b")))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_moves(dtype: str) -> None:
    x = random(dtype, 4, 12)

    def body(p: Any) -> Any:
        moved = gspmd.collective_permute(gspmd.all_to_all(p, "a", 1, 0), "b", [(0, 1), (1, 2)])
        return gspmd.all_gather(moved, "b", -1)

    parts = HAND.cut(x, ("a", "b"))
    moved = HAND.permute(HAND.all_to_all(parts, ("a",), 1, 0), ("b",), [(0, 1), (1, 2)])
    wanted = HAND.join(HAND.all_gather(moved, ("b",), 1), (None, ("a", "b")))
    same(run(gspmd.shard_map(body, MESH, P("a", "b"), P(None, ("a", "b"))), x)[0], wanted)


def test_nestings() -> None:
    """Arguments, results and the operands of all_reduce and collective_permute may be nestings; a spec covers below."""
    x, y, z = random("f32", 4, 6), random("i32", 6), random("f32", 2, 2)

    def body(first: Any, second: Any) -> Any:
        sums = gspmd.all_reduce({"x": first["x"], "y": [first["y"]]}, "b")
        sent = gspmd.collective_permute((first["x"], second), "b", [(0, 1)])
        return {"sums": sums, "sent": sent}

    outs = {"sums": {"x": P("a"), "y": [P()]}, "sent": (P("a", "b"), P("b"))}
    mapped = gspmd.shard_map(body, MESH, ({"x": P("a", "b"), "y": P("b")}, P()), outs)
    found = run(lambda x, y, z: mapped({"x": x, "y": y}, z), x, y, z)
    of_x, of_y, of_z = (HAND.cut(v, s) for v, s in ((x, ("a", "b")), (y, ("b",)), (z, ())))
    wanted = [
        HAND.join(HAND.permute(of_x, ("b",), [(0, 1)]), ("a", "b")),
        HAND.join(HAND.permute(of_z, ("b",), [(0, 1)]), ("b",)),
        HAND.join(HAND.all_reduce(of_x, ("b",), "add"), ("a",)),
        HAND.join(HAND.all_reduce(of_y, ("b",), "add"), ()),
    ]
    for f, w in zip(found, wanted, strict=True):
        same(f, w)


def test_a_result_that_is_not_replicated_is_the_first_devices() -> None:
    x = random("f32", 4, 6)
    (found,) = run(gspmd.shard_map(lambda p: p * 1.0, MESH, P("a", "b"), P()), x)
    same(found, x[:2, :2])


# -- among everything else ---------------------------------------------------------------------------------------------


def test_what_a_function_captures_is_replicated() -> None:
    x, w, s = random("f32", 4, 6), random("f32", 3, 5), random("f32")

    def main(x: Any, w: Any, s: Any) -> Any:
        twice = w + w
        mapped = gspmd.shard_map(lambda p: gspmd.all_reduce(p @ twice * s, "c"), MESH, P("a", "c"), P("a"))
        return mapped(x) + twice[0]

    (found,) = run(main, x, w, s)
    twice = w + w
    wanted = (x[:, :3] @ twice * s + x[:, 3:] @ twice * s) + twice[0]
    outcome = compare(found, wanted, terms=6)
    assert outcome, outcome.message


def test_loops_and_branches_inside() -> None:
    """A ring in a scan, a while that ends by a sum over devices, a branch that they all take."""
    x = random("f32", 6, 4)
    ring = [(k, (k + 1) % 3) for k in range(3)]

    def body(p: Any) -> Any:
        def step(carry: Any, k: Any) -> Any:
            held, total = carry
            return (gspmd.collective_permute(held, "b", ring), total + held * k), gspmd.axis_index("b")

        (held, total), numbers = gspmd.scan(step, (p, p * 0.0), gnp.arange(3).astype("f32"))

        def more(state: Any) -> Any:
            return gspmd.all_reduce(gnp.sum(abs(state)), "b") < 1000.0

        grown = gspmd.while_loop(more, lambda s: s * 2.0, p)
        chosen = gspmd.cond(
            gspmd.all_reduce(p[0, 0], "b", "max") > 0, lambda: gspmd.all_gather(p, "b").sum(0), lambda: p.sum(0)
        )
        return held, total, numbers, grown, chosen

    outs = (P("b"), P("b"), P("b"), P("b"), P())
    found = run(gspmd.shard_map(body, MESH, P("b"), outs), x)
    parts = np.split(x, 3)
    same(found[0], x)
    same(
        found[1],
        np.concatenate(
            [parts[i] * 0.0 + parts[i - 1] * np.float32(1) + parts[i - 2] * np.float32(2) for i in range(3)]
        ),
    )
    same(found[2], np.repeat(np.arange(3, dtype=np.int32), 3))
    grown = x
    while sum(float(np.sum(np.abs(q))) for q in np.split(grown, 3)) < 1000.0:
        grown = grown * 2
    same(found[3], grown)


def test_inside_of_loops_and_branches() -> None:
    x, w = random("f32", 4, 6), random("f32", 6, 6)
    mapped = gspmd.shard_map(
        lambda p, q: gspmd.reduce_scatter(p @ q, "b", 1), MESH, (P("a", "b"), P("b")), P("a", "b"), axes=("a", "b")
    )

    def main(x: Any, w: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            h = gnp.tanh(mapped(h, w) * 0.5)
            return h, h.sum()

        last, sums = gspmd.scan(step, x, length=3)
        return gspmd.cond(sums[0] > 0, lambda: mapped(last, w), lambda: last), sums

    found = run(main, x, w)
    h, sums = x, []
    for _ in range(3):
        h = np.tanh(h @ w * np.float32(0.5))
        sums.append(h.sum())
    for f, wanted in zip(found, (h @ w if sums[0] > 0 else h, np.array(sums)), strict=True):
        outcome = compare(f, wanted, np.full(f.shape, 30.0), terms=300)
        assert outcome, outcome.message


def test_nested() -> None:
    """Over b within a, and what was captured from two levels out."""
    x, s = random("f32", 4, 6), random("f32", 2)

    def main(x: Any, s: Any) -> Any:
        def outer(p: Any) -> Any:
            def inner(q: Any) -> Any:
                both = gspmd.all_reduce(q, ("a", "b"))
                return both * s[0] + gspmd.axis_index("a") * 10 + gspmd.axis_index("b")

            nested = gspmd.shard_map(inner, MESH, P(None, "b"), P(None, "b"), axes=("b",))
            return gspmd.all_gather(nested(p), "a"), nested(p).sum(1)

        return gspmd.shard_map(outer, MESH, P("a"), (P(), P("a")), axes=("a",))(x)

    found = run(main, x, s)
    total = np.add.reduce([p for row in np.split(x, 2) for p in np.split(row, 3, axis=1)])
    rows = [np.concatenate([total * s[0] + np.float32(10 * i + j) for j in range(3)], axis=1) for i in range(2)]
    for f, wanted in zip(found, (np.concatenate(rows), np.concatenate([r.sum(1) for r in rows])), strict=True):
        outcome = compare(f, wanted, np.full(wanted.shape, 200.0), terms=12)
        assert outcome, outcome.message


@pytest.mark.parametrize("size", [6, 5])
def test_other_axes_stay_automatic(size: int) -> None:
    """Annotations of free axes inside, even and ragged; the compiler's own collectives beside the user's."""
    x, w = random("f32", 4, size), random("f32", size, 5)

    def body(p: Any, q: Any) -> Any:
        hidden = gspmd.shard(p, MESH, None, "b") @ gspmd.shard(q, MESH, "b", None)
        total = gspmd.all_reduce(gnp.tanh(hidden), "a")
        return gspmd.shard(total, MESH, "c", None), gspmd.all_gather(hidden, "a")

    def main(x: Any, w: Any) -> Any:
        mapped = gspmd.shard_map(body, MESH, (P("a"), P()), (P(), P()), axes=("a",))
        total, rows = mapped(gspmd.shard(x, MESH, ("a", "c"), None), w)
        return total.sum(0), rows * 2.0

    found = run(main, x, w)
    hidden = x @ w
    total = np.add.reduce([np.tanh(h) for h in np.split(hidden, 2)])
    for f, wanted in zip(found, (total.sum(0), hidden * 2), strict=True):
        outcome = compare(f, wanted, np.full(wanted.shape, 20.0), terms=12)
        assert outcome, outcome.message


def test_devices_are_numbered_by_the_mesh_not_by_the_machine() -> None:
    mesh = gspmd.Mesh({"a": 2, "b": 2}, [2, 0, 3, 1])
    x = random("f32", 4, 4)

    def body(p: Any) -> Any:
        return gspmd.all_gather(p, ("b", "a"), 1) + gspmd.axis_index(("a", "b"))

    (found,) = run(gspmd.shard_map(body, mesh, P("a", "b"), P(("a", "b"))), x)
    hand = Hand(mesh)
    parts = hand.all_gather(hand.cut(x, ("a", "b")), ("b", "a"), 1)
    numbered = {d: p + np.float32(hand.number(d, ("a", "b"))) for d, p in parts.items()}
    same(found, hand.join(numbered, (("a", "b"),)))


def test_specs() -> None:
    assert P("a", None) == P("a", None) != P("a") and len({P("a"), P("a")}) == 1
    assert repr(P("a", None, ("b", "c"))) == "PartitionSpec('a', None, ('b', 'c'))"


def test_a_mapped_function_keeps_its_name_and_those_of_its_parameters() -> None:
    def doubled(weights: Any) -> Any:
        return weights * 2

    text = gspmd.trace(gspmd.shard_map(doubled, gspmd.Mesh({"d": 2}), P("d"), P("d")), np.ones(4, "f4")).text()
    assert "func @doubled(%weights:" in text
