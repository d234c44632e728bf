"""Programs with collectives of all kinds, each with the shapes that it takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType

MESH = gspmd.Mesh({"data": 2, "model": 2})
TYPES = TensorType("f32", (32, 16)), TensorType("f32", (16, 64)), TensorType("f32", (64, 16))
Function = Callable[[Any, Any, Any], Any]


def gathered(x: Any, w: Any, v: Any) -> Any:
    x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, "data", "model")
    return x @ w


def summed(x: Any, w: Any, v: Any) -> Any:
    x, w, v = (
        gspmd.shard(x, MESH, "data", None),
        gspmd.shard(w, MESH, None, "model"),
        gspmd.shard(v, MESH, "model", None),
    )
    return gnp.tanh(x @ w) @ v + x


def looped(x: Any, w: Any, v: Any) -> Any:
    x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, "model", None)
    return gspmd.fori_loop(0, 3, lambda i, c: gnp.tanh(c @ v) @ w, x @ w)


def branched(x: Any, w: Any, v: Any) -> Any:
    x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, "model", None)
    return gspmd.cond(gnp.sum(x) > 0.0, lambda: gnp.tanh(x @ w), lambda: x @ w * 2.0)


def scanned(x: Any, w: Any, v: Any) -> Any:
    x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, "model", None)
    return gspmd.scan(lambda c, row: (gnp.tanh(c @ w @ v), gnp.sum(c)), x, x)


def moved(x: Any, w: Any, v: Any) -> Any:
    y = gspmd.shard(gnp.exp(gspmd.shard(x, MESH, "data", "model")), MESH, "model", "data")
    return gnp.sort(y, axis=0)


def shifted(x: Any, w: Any, v: Any) -> Any:
    x = gspmd.shard(x, MESH, "data", "model")
    return gnp.roll(x, 1, axis=0) + gnp.cumsum(x, axis=1)


def transformed(x: Any, w: Any, v: Any) -> Any:
    z = gspmd.shard(x, MESH, "data", "model").astype(np.complex64)
    return gnp.fft.fft2(z)


def ragged(x: Any, w: Any, v: Any) -> Any:
    x = gspmd.shard(x[:7], MESH, ("data", "model"), None)
    return gspmd.shard(x * 2.0, MESH, "data", None)


def graded(x: Any, w: Any, v: Any) -> Any:
    return gspmd.value_and_grad(lambda p: gnp.sum(summed(x, *p) ** 2))((w, v))


def manual(x: Any, w: Any, v: Any) -> Any:
    spec = gspmd.PartitionSpec
    part = gspmd.shard_map(
        lambda a: gspmd.all_reduce(gnp.sum(a, axis=0), "data"),
        mesh=MESH,
        in_specs=(spec("data", None),),
        out_specs=spec(None),
    )
    return part(x) @ gspmd.shard(w, MESH, "model", None)


ALL: tuple[Function, ...] = (
    gathered,
    summed,
    looped,
    branched,
    scanned,
    moved,
    shifted,
    transformed,
    ragged,
    graded,
    manual,
)


@cache
def compiled(function: Function) -> gspmd.Compiled:
    """One of the programs, compiled once."""
    return gspmd.compile(function, *TYPES, mesh=MESH)


def arrays(seed: int = 0) -> list[Any]:
    """Arguments for any of them."""
    rng = np.random.default_rng(seed)
    return [(0.1 * rng.standard_normal(t.shape)).astype(np.float32) for t in TYPES]
