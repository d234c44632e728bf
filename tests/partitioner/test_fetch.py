"""fetch: every plan brings what its reading says, for random readings; the fill stands outside the tensor."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from gspmd.ir.axes import Axes, parts
from gspmd.ir.builder import Builder
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.types import TensorType
from gspmd.ops.affine_permute import AffinePermuteAttrs, permute_pairs
from gspmd.ops.fetch import FETCH, FetchAttrs
from gspmd.ops.fetch_expand import emit_fetch
from gspmd.ops.fetch_plan import FetchPlan, PlanKind, Reading, fetch_plan, geometry, plan_of_kind
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker

Rng = np.random.Generator
KINDS: tuple[PlanKind, ...] = get_args(PlanKind)


def random_reading(rng: Rng, mesh: Mesh) -> Reading:
    """A dimension read over the same axes (mostly), other ones, or by a split window."""
    x, y = mesh.axis("x"), mesh.axis("y")
    n, m = int(rng.integers(1, 40)), int(rng.integers(1, 40))
    mul = int(rng.choice([1, 1, 1, 2, 3, -1, -2, 0]))
    div = int(rng.choice([1, 1, 1, 2, 3]))
    add = int(rng.integers(-12, 12)) + (m - 1) * max(-mul, 0)
    axes, to_axes, k_axes = [((x,), (x,), ()), ((x,), (y,), ()), ((y, x), (y, x), ()), ((y,), (x,), (y,))][
        int(rng.choice([0, 0, 0, 1, 2, 3]))
    ]
    k = int(rng.integers(1, 6)) if div == 1 else 1
    chunks = [
        -(-size // parts(a)) + int(rng.choice([0, 0, 0, 1])) for size, a in ((n, axes), (m, to_axes), (k, k_axes))
    ]
    return Reading(
        n, axes, chunks[0], m, to_axes, chunks[1], mul, add, div, k, k_axes, chunks[2], int(rng.choice([1, 2, -1]))
    )


def truth(r: Reading, x: np.ndarray, i: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The buffer of a device, and which of its cells real results read."""
    g = geometry(r)
    low = g.slope * (i * g.scale // g.block) + g.kslope * k + g.base
    values, read = np.full(g.width, np.nan), np.zeros(g.width, bool)
    for o in range(i * r.to_chunk, min((i + 1) * r.to_chunk, r.to_size)):
        for w in range(k * r.k_chunk, min((k + 1) * r.k_chunk, r.k_size)):
            q = r.mul * o + r.kmul * w + r.add
            if q % r.div == 0:
                p = q // r.div
                assert 0 <= p - low < g.width, "the buffer lacks a position that is read"
                read[p - low] = True
                values[p - low] = x[p] if 0 <= p < r.size else np.nan
    return values, read


@pytest.mark.parametrize("seed", range(40))
def test_every_plan_brings_what_is_read(seed: int) -> None:
    """Cells that a real result reads hold the tensor's element, or the fill outside the tensor."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        mesh = Mesh({"x": int(rng.integers(2, 8)), "y": int(rng.integers(1, 4))})
        r = random_reading(rng, mesh)
        fill = (None, 0.0, 2.5)[int(rng.integers(3))]
        x = rng.standard_normal(r.size)
        padded = np.concatenate([x, np.full(r.chunk * parts(r.axes) - r.size, np.nan)])
        for kind in (None, *KINDS):
            plan = None if kind is None else plan_of_kind(r, kind)
            if kind is None or plan is not None:
                _check(mesh, r, fill, x, padded, plan)


def _check(
    mesh: Mesh, r: Reading, fill: float | None, x: np.ndarray, padded: np.ndarray, plan: FetchPlan | None
) -> None:
    b = Builder()
    attrs = FetchAttrs(0, r, fill)
    value = b.param(TensorType("f64", (r.chunk,)))
    out = FETCH.emit(b, (value,), attrs)[0] if plan is None else emit_fetch(b, value, 0, r, fill, plan)
    transport = LockstepTransport(mesh)
    tile = [mesh.tile_index(i, r.axes) * r.chunk for i in range(mesh.size)]
    shards = [padded[t : t + r.chunk] for t in tile]
    (got,) = Walker(transport).run(b.region([out]), [shards])
    for device, buffer in enumerate(got):
        values, read = truth(r, x, mesh.tile_index(device, r.to_axes), mesh.tile_index(device, r.k_axes))
        outside = read & np.isnan(values)
        inside = read & ~outside
        assert np.array_equal(buffer[inside], values[inside]), f"{plan} of {r}"
        assert fill is None or np.all(buffer[outside] == fill), f"fill of {plan} of {r}"


def _axes(n: int) -> Axes:
    return (Axis("x", 1, n),)


def test_cheapest_plan() -> None:
    """What the three plans are for: bytes and collectives do not grow with the devices where they need not."""
    n, axes = 64 * 512, _axes(512)
    half = fetch_plan(Reading(n, axes, 64, n // 2, axes, 32))
    assert (half.kind, half.wire, sum(h.rounds for h in half.hops)) == ("affine", 64, 2)
    turned = fetch_plan(Reading(n, axes, 64, n, axes, 64, mul=-1, add=n - 1))
    assert (turned.kind, turned.wire, sum(h.rounds for h in turned.hops)) == ("affine", 64, 1)
    shifted = fetch_plan(Reading(n, axes, 64, n, axes, 64, add=-1))
    assert (shifted.kind, shifted.wire, len(shifted.hops)) == ("shift", 1, 2)
    assert fetch_plan(Reading(7, _axes(7), 1, 7, _axes(7), 1, k_size=7, k_chunk=7, add=-3, kmul=1)).kind == "gathered"


def test_permute_pairs() -> None:
    """A shift, the same around the ends, and two devices that want one source in two rounds."""
    x = _axes(4)
    assert permute_pairs(AffinePermuteAttrs(x, add=-1)) == ((0, 1), (1, 2), (2, 3))
    assert permute_pairs(AffinePermuteAttrs(x, add=-1, wrap=True)) == ((3, 0), (0, 1), (1, 2), (2, 3))
    assert permute_pairs(AffinePermuteAttrs(x, add=0, div=2)) == ((0, 0), (1, 2))
    assert permute_pairs(AffinePermuteAttrs(x, add=0, div=2, round=1)) == ((0, 1), (1, 3))
    assert permute_pairs(AffinePermuteAttrs(x, add=0, div=2, round=1, count=3)) == ((0, 1),)
