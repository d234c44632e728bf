"""Whole programs on a mesh of axes `a` and `b`: what the tests of MPI and of the stages run.

Each is a function of the mesh that gives a function of arrays and the types of its arguments. Between them they ask for
every collective, halos, ragged and even shards, loops, data-dependent places, and f32, bf16, i32 and bool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gspmd
import gspmd.numpy as gnp
from gspmd import Mesh, TensorType
from gspmd import PartitionSpec as P
from gspmd.ir.dtypes import dtype_kind

Made = tuple[Callable[..., Any], list[TensorType]]
PROGRAMS: dict[str, Callable[[Mesh], Made]] = {}
MESHES = {2: [{"a": 2, "b": 1}], 3: [{"a": 3, "b": 1}], 4: [{"a": 4, "b": 1}, {"a": 2, "b": 2}]}


def f32(*shape: int) -> TensorType:
    return TensorType("f32", shape)


def bf16(*shape: int) -> TensorType:
    return TensorType("bf16", shape)


def i32(*shape: int) -> TensorType:
    return TensorType("i32", shape)


def program(make: Callable[[Mesh], Made]) -> Callable[[Mesh], Made]:
    """Register a program under its name."""
    PROGRAMS[make.__name__] = make
    return make


def arguments(types: list[TensorType]) -> list[np.ndarray]:
    """Arrays without structure, the same everywhere."""
    rng = np.random.default_rng(len(types))
    out: list[np.ndarray] = []
    for t in types:
        below = {"float": 0, "bool": 2}.get(dtype_kind(t.dtype), 7)
        values = rng.integers(0, below, t.shape) if below else rng.standard_normal(t.shape)
        out.append(np.asarray(values).astype(t.dtype))
    return out


@program
def mlp(mesh: Mesh) -> Made:
    def f(x, w1, w2):
        x = gspmd.shard(x, mesh, "a", None)
        hidden = gnp.tanh(x @ gspmd.shard(w1, mesh, None, "b"))
        return hidden @ w2

    return f, [f32(24, 8), f32(8, 12), f32(12, 5)]


@program
def mlp_ragged_bf16(mesh: Mesh) -> Made:
    def f(x, w1, w2):
        return gnp.maximum(gspmd.shard(x, mesh, None, "a") @ w1, 0) @ gspmd.shard(w2, mesh, "b", "a")

    return f, [bf16(7, 11), bf16(11, 13), bf16(13, 5)]


@program
def training_step(mesh: Mesh) -> Made:
    def loss(params, x, y):
        x = gspmd.shard(x, mesh, "a", None)
        hidden = gnp.tanh(x @ gspmd.shard(params["w1"], mesh, None, "b") + params["b1"])
        return gnp.mean((hidden @ params["w2"] - y) ** 2)

    def f(w1, b1, w2, x, y):
        params = {"w1": w1, "b1": b1, "w2": w2}
        value, slopes = gspmd.value_and_grad(loss)(params, x, y)
        return value, {name: params[name] - 0.1 * slope for name, slope in slopes.items()}

    return f, [f32(6, 10), f32(10), f32(10, 3), f32(13, 6), f32(13, 3)]


@program
def row_parallel(mesh: Mesh) -> Made:
    def f(x, w, z):
        y, z = gspmd.shard(x, mesh, None, "a") @ w, gspmd.shard(z, mesh, ("b", "a"), None)
        return gspmd.shard(y, mesh, "a", None), gspmd.shard(z.T @ z, mesh, None, "b")

    return f, [f32(12, 8), f32(8, 6), f32(24, 12)]


@program
def attention(mesh: Mesh) -> Made:
    def f(q, k, v):
        q = gspmd.shard(q, mesh, "a", None, "b", None)
        scores = gnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0
        weights = gnp.exp(scores - gnp.max(scores, axis=-1, keepdims=True))
        weights = weights / gnp.sum(weights, axis=-1, keepdims=True)
        return gnp.einsum("bhqk,bkhd->bqhd", weights, v)

    return f, [f32(4, 6, 2, 4), f32(4, 6, 2, 4), f32(4, 6, 2, 4)]


@program
def reductions(mesh: Mesh) -> Made:
    def f(x, n, flags):
        x = gspmd.shard(x, mesh, "a", "b")
        n = gspmd.shard(n, mesh, ("a", "b"))
        flags = gspmd.shard(flags, mesh, "a", None)
        return {
            "sum": gnp.sum(x, axis=0),
            "mean": gnp.mean(x),
            "max": gnp.max(x, axis=1),
            "min": gnp.min(x),
            "prod": gnp.prod(n % 3 + 1),
            "any": gnp.any(flags, axis=0),
            "all": gnp.all(flags, axis=1),
            "where": gnp.argmax(x, axis=0),
        }

    return f, [f32(10, 9), i32(11), TensorType("bool", (7, 3))]


@program
def resharding(mesh: Mesh) -> Made:
    def f(x):
        first = gspmd.shard(x, mesh, "a", "b") * 2.0
        second = gspmd.shard(first, mesh, "b", "a") + 1.0
        third = gspmd.shard(second, mesh, None, ("b", "a"))
        return third, gspmd.shard(third, mesh, None, None), gspmd.shard(third, mesh, ("a", "b"), None)

    return f, [f32(10, 14)]


@program
def reshapes(mesh: Mesh) -> Made:
    def f(x):
        x = gspmd.shard(x, mesh, "a", "b")
        split = gnp.reshape(x, (4, 3, 10))
        merged = gnp.reshape(x, (120,))
        return split * 2, merged + 1, gnp.transpose(split, (2, 0, 1)), gnp.reshape(x, (5, 24))

    return f, [i32(12, 10)]


@program
def slices_and_pads(mesh: Mesh) -> Made:
    def f(x, y):
        x = gspmd.shard(x, mesh, "a", None)
        return (
            x[1:-2],
            x[::2],
            x[::-1],
            gnp.pad(x, ((2, 1), (0, 3))),
            gnp.concatenate([x, gspmd.shard(y, mesh, "a", None)]),
            gnp.roll(x, 3, axis=0),
        )

    return f, [f32(13, 4), f32(5, 4)]


@program
def stencil(mesh: Mesh) -> Made:
    def f(x):
        x = gspmd.shard(x, mesh, "a", "b")

        def step(x, _):
            up, down = gnp.roll(x, 1, axis=0), gnp.roll(x, -1, axis=0)
            left, right = gnp.roll(x, 1, axis=1), gnp.roll(x, -1, axis=1)
            return x + 0.1 * (up + down + left + right - 4.0 * x), gnp.sum(x)

        return gspmd.scan(step, x, length=3)

    return f, [f32(10, 9)]


@program
def embedding(mesh: Mesh) -> Made:
    def f(table, ids, values):
        table = gspmd.shard(table, mesh, "a", None)
        looked_up = gnp.take(table, gspmd.shard(ids, mesh, "b"), axis=0)
        return looked_up, table.at[ids].add(values), table.at[ids].set(1.0)[:4]

    return f, [f32(7, 6), i32(9), f32(9, 6)]


@program
def dynamic_places(mesh: Mesh) -> Made:
    def f(x, i, y):
        x = gspmd.shard(x, mesh, "a", None)
        return x[i], x.at[i].set(gnp.sum(x, axis=0)), y.at[i % 2].add(x[i + 1])

    return f, [f32(11, 5), i32(), f32(2, 5)]


@program
def while_and_branch(mesh: Mesh) -> Made:
    def f(x, limit):
        x = gspmd.shard(x, mesh, "a", None)

        def more(state):
            i, y = state
            return (i < 5) & (gnp.sum(y * y) < limit)

        def body(state):
            i, y = state
            return i + 1, gspmd.cond(i % 2 == 0, lambda: y * 1.5 + gnp.max(y, axis=0), lambda: y - gnp.mean(y))

        return gspmd.while_loop(more, body, (0, x))

    return f, [f32(7, 4), f32()]


@program
def scan_with_weights(mesh: Mesh) -> Made:
    def f(x, ws):
        ws = gspmd.shard(ws, mesh, None, "a", "b")
        return gspmd.scan(lambda h, w: (gnp.tanh(h @ w), gnp.sum(h, axis=0)), x, ws)

    return f, [f32(6, 10), f32(4, 10, 10)]


@program
def integers(mesh: Mesh) -> Made:
    def f(x, y):
        x = gspmd.shard(x, mesh, "a", None)
        return x @ gspmd.shard(y, mesh, None, "b"), gnp.cumsum(x, axis=0), (x > 3) & (x < 6), x // 2 % 3

    return f, [i32(9, 8), i32(8, 6)]


@program
def half_sums(mesh: Mesh) -> Made:
    def f(x, y):
        x = gspmd.shard(x, mesh, "a", "b")
        return gnp.sum(x, axis=0), gnp.sum(x), x.T @ y, gnp.max(x, axis=1)

    return f, [bf16(17, 6), bf16(17, 3)]


@program
def fewer_rows_than_devices(mesh: Mesh) -> Made:
    def f(x):
        x = gspmd.shard(x, mesh, ("a", "b"), None)
        return x * 2.0, gnp.sum(x, axis=0), gnp.min(x, axis=0), x[::-1], gnp.concatenate([x, x])

    return f, [f32(2, 3)]


@program
def untouched(mesh: Mesh) -> Made:
    def f(x, y):
        x = gspmd.shard(x, mesh, "a")
        return x, y, x, y[:2]

    return f, [f32(5), i32(4)]


@program
def by_hand(mesh: Mesh) -> Made:
    """Every collective in per-device code, over one axis and two."""
    both = ("a", "b")

    def body(x, w):
        rows = gspmd.all_reduce(x @ w, "b")
        apart = gspmd.reduce_scatter(rows, both, 1)
        turned = gspmd.all_to_all(rows, "a", 1, 0)
        sent = gspmd.collective_permute(x, both, [(i, (i + 1) % mesh.size) for i in range(mesh.size)])
        some = gspmd.collective_permute(x, "a", [(1, 0)])
        number = gspmd.axis_index(both) * gspmd.axis_size("a")
        most = gspmd.all_reduce(gnp.max(gspmd.all_gather(x, "a", 1)), both, "max")
        return apart, turned, sent + number, some, most

    out = (P("a", "b"), P(None, "a"), P("a", "b"), P("a", "b"), P())
    return gspmd.shard_map(body, mesh, (P("a", "b"), P("b")), out), [f32(12, 12), f32(12, 12)]


@program
def by_hand_among_automatic(mesh: Mesh) -> Made:
    """Over one axis by hand, over the other by annotations, ragged; a ring in a loop; and the gradient."""

    def body(x, w):
        n = gspmd.axis_size("a")

        def step(held, _):
            return gspmd.collective_permute(held, "a", [(i, (i + 1) % n) for i in range(n)]), gnp.sum(held, axis=0)

        hidden = gspmd.shard(gnp.tanh(x @ w), mesh, None, "b")
        _, sums = gspmd.scan(step, hidden, length=n)
        return gspmd.all_reduce(sums, "a"), gspmd.shard(hidden, mesh, None, "b")

    def loss(x, w):
        y = gspmd.shard(x, mesh, ("a", "b"), None) * 0.5
        sums, hidden = gspmd.shard_map(body, mesh, (P("a"), P()), (P(), P("a")), axes="a")(y, w)
        return gnp.sum(sums * sums) + gnp.mean(hidden)

    return lambda x, w: gspmd.value_and_grad(loss, argnums=(0, 1))(x, w), [f32(12, 7), f32(7, 5)]


@program
def own_ways(mesh: Mesh) -> Made:
    """Devices that take branches, and rounds of loops, of their own."""

    def body(x):
        def grown(y):
            return gspmd.while_loop(lambda z: gnp.sum(abs(z)) < 40.0, lambda z: z * 1.25, y)

        return gspmd.switch(gspmd.axis_index("a"), [grown, lambda y: gspmd.all_reduce(y, "b"), lambda y: -y], x)

    return gspmd.shard_map(body, mesh, P("a", "b"), P("a", "b")), [f32(12, 8)]
