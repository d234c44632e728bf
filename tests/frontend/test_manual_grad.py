"""Gradients of per-device code: in f64 against finite differences, and through all stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gspmd
import gspmd.numpy as gnp
from gspmd import PartitionSpec as P
from gspmd.frontend.tree import flatten
from gspmd.ir.errors import GspmdError
from gspmd.kernels.closeness import compare
from tests.frontend.hand import random

Array = NDArray[Any]
MESH = gspmd.Mesh({"a": 2, "b": 3})
STEP = 1e-5
RING = [(k, (k + 1) % 3) for k in range(3)]


def types_of(arrays: tuple[Array, ...]) -> list[gspmd.TensorType]:
    return [gspmd.TensorType(x.dtype, x.shape) for x in arrays]


def check_slopes(loss: Callable[..., Any], *arrays: Array) -> None:
    """The gradient in all arguments, along a random direction; all stages of it give the same."""
    numbers = tuple(range(len(arrays)))
    value = gspmd.trace(loss, *types_of(arrays))
    slopes = gspmd.trace(gspmd.grad(loss, argnums=numbers), *types_of(arrays))
    gspmd.compile(slopes).check(*arrays)
    found = flatten(slopes.run(*arrays))[0]
    directions = [random("f64", *x.shape, seed=17 + i) for i, x in enumerate(arrays)]
    ahead, behind = (
        value.run(*(x + sign * STEP * d for x, d in zip(arrays, directions, strict=True))) for sign in (1, -1)
    )
    expected = (np.float64(ahead) - np.float64(behind)) / (2 * STEP)
    products = [np.asarray(g) * d for g, d in zip(found, directions, strict=True)]
    actual, size = sum(np.sum(p) for p in products), sum(np.abs(p).sum() for p in products)
    # A difference quotient is good to about the square root of f64's precision, which is f32's.
    outcome = compare(np.float64(actual), expected, size, scale_dtype=np.float32)
    assert outcome, outcome.message
    assert all(np.abs(np.asarray(g)).max() > 0 for g in found)


def weighed(y: Any, seed: int = 3) -> Any:
    """A scalar in which every element counts, and differently."""
    return gnp.sum(gnp.sin(y) * random("f64", *y.shape, seed=seed))


BODIES: dict[str, tuple[Callable[[Any], Any], P, P]] = {
    "all_gather": (lambda p: gspmd.all_gather(p * p, "b", -1), P("a", "b"), P("a")),
    "all_gather, kept apart": (lambda p: gspmd.all_gather(p * p, "b", 1), P("a", "b"), P("a", "b")),
    "all_gather of two axes": (lambda p: gspmd.all_gather(p * p, ("b", "a")), P("a", "b"), P(None, ("a", "b"))),
    "all_reduce": (lambda p: gspmd.all_reduce(p * p, "b"), P("a", "b"), P("a")),
    "all_reduce, kept apart": (
        lambda p: gspmd.all_reduce(p * p, "b") * (gspmd.axis_index("b") + 1.0),
        P("a", "b"),
        P("a", "b"),
    ),
    "all_reduce over all": (lambda p: gspmd.all_reduce(p * p, ("a", "b")), P("a", "b"), P()),
    "all_reduce of max": (lambda p: gspmd.all_reduce(p * p, "b", "max"), P("a", "b"), P("a")),
    "all_reduce of min": (lambda p: gspmd.all_reduce(p * p, ("b", "a"), "min") * 2.0, P("a", "b"), P("a", "b")),
    "reduce_scatter": (lambda p: gspmd.reduce_scatter(p * p, "a", 1), P(None, "b"), P("a", "b")),
    "all_to_all": (lambda p: gspmd.all_to_all(p * p, "b", 0, 1), P("a", "b"), P("a", "b")),
    "all_to_all in one dim": (lambda p: gspmd.all_to_all(p * p, "a", 1, 1), P("b", "a"), P("b", "a")),
    "collective_permute": (lambda p: gspmd.collective_permute(p * p, "b", RING), P("a", "b"), P("a", "b")),
    "collective_permute to some": (
        lambda p: gspmd.collective_permute(p * p, ("a", "b"), [(0, 5), (1, 0), (4, 2)]),
        P("a", "b"),
        P("a", "b"),
    ),
    "axis_index": (lambda p: p * p * (gspmd.axis_index(("a", "b")) + 1.0), P("a", "b"), P("a", "b")),
    "replicated in": (lambda p: p * p * (gspmd.axis_index("b") + 1.0), P("a"), P("a", "b")),
    "replicated through": (lambda p: p * p, P(), P()),
    "a loop": (
        lambda p: gspmd.fori_loop(0, 3, lambda i, c: gnp.sin(gspmd.collective_permute(c, "b", RING)) + p, p),
        P("a", "b"),
        P("a", "b"),
    ),
    "a scan that ends in a sum": (
        lambda p: gspmd.scan(lambda c, r: (c * 0.5 + gspmd.all_reduce(gnp.sin(r), "b"), c), p[0] * 0.0, p)[0],
        P(None, "b"),
        P(),
    ),
    "a branch": (
        lambda p: gspmd.cond(
            gspmd.all_reduce(p[0, 0], ("a", "b")) < 9.0, lambda: gspmd.all_reduce(p * p, "b"), lambda: p
        ),
        P("a", "b"),
        P("a"),
    ),
    "nested": (
        lambda p: gspmd.shard_map(
            lambda q: gspmd.all_reduce(q * q, ("a", "b")) * q, MESH, P(None, "b"), P(None, "b"), axes=("b",)
        )(gnp.sin(p)),
        P("a"),
        P("a"),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_through(name: str) -> None:
    body, into, out = BODIES[name]
    axes = ("a",) if name == "nested" else None
    mapped = gspmd.shard_map(body, MESH, into, out, axes=axes)
    check_slopes(lambda x: weighed(mapped(gnp.sin(x))), random("f64", 12, 12))


def test_captures_and_several_results() -> None:
    """Cotangents of what was captured add up over devices; a result that nobody uses has none."""
    x, w, s = random("f64", 4, 6), random("f64", 2, 5), random("f64")

    def loss(x: Any, w: Any, s: Any) -> Any:
        squares = w * w

        def body(p: Any) -> Any:
            y = gspmd.all_reduce(p @ squares, "b")
            return y * s, gspmd.all_reduce(gnp.sum(y), "a"), gspmd.axis_index("a"), p * 3.0

        rows, total, _, _ = gspmd.shard_map(body, MESH, P("a", "b"), (P("a"), P(), P(), P("a", "b")))(x)
        return weighed(rows) + total * total * 0.01 + gnp.sum(w)

    check_slopes(loss, x, w, s)


def test_other_axes_stay_automatic() -> None:
    x, w = random("f64", 4, 5), random("f64", 5, 7)

    def loss(x: Any, w: Any) -> Any:
        def body(p: Any, w: Any) -> Any:
            hidden = gspmd.shard(gnp.sin(p), MESH, None, "b") @ gspmd.shard(w, MESH, "b", None)
            return gspmd.all_reduce(gspmd.shard(hidden, MESH, None, "b"), "a"), gspmd.shard(hidden, MESH, None, "b")

        total, rows = gspmd.shard_map(body, MESH, (P("a"), P()), (P(), P("a")), axes="a")(x, w)
        return weighed(total) + weighed(rows, 5)

    check_slopes(loss, x, w)


def test_within_a_scan_over_weights() -> None:
    """Layers whose products are per-device code: weights split over one axis, gathered and scattered by hand."""
    x, ws = random("f64", 4, 6), random("f64", 3, 6, 6)

    def loss(x: Any, ws: Any) -> Any:
        def layer(p: Any, w: Any) -> Any:
            return gnp.tanh(p @ gspmd.all_gather(w, "a"))

        mapped = gspmd.shard_map(layer, MESH, (P("a"), P("a")), P("a"))
        return weighed(gspmd.scan(lambda h, w: (mapped(h, w), None), x, ws)[0])

    check_slopes(loss, x, ws)


def test_second_derivatives() -> None:
    x = random("f64", 4, 6)

    def loss(x: Any) -> Any:
        def body(p: Any) -> Any:
            sums = gspmd.all_reduce(gnp.sin(p), "b")
            sent = gspmd.collective_permute(p * sums, "b", RING)
            return gspmd.all_reduce(gnp.sum(gnp.sin(sent) * gspmd.all_gather(p, "a")[:2]), ("a", "b"))

        return gspmd.shard_map(body, MESH, P("a", "b"), P())(x)

    slope = gspmd.grad(loss)
    check_slopes(lambda x: weighed(slope(x)), x)


def test_within_per_device_code() -> None:
    """There the gradient is that of the sum of all devices' losses, in one's own arguments."""
    x = random("f64", 6, 3)

    def body(p: Any) -> Any:
        return gspmd.grad(lambda q: gnp.sum(gspmd.all_reduce(q * q, "b") * (gspmd.axis_index("b") + 1.0)))(p)

    module = gspmd.trace(gspmd.shard_map(body, MESH, P("b"), P("b")), gspmd.TensorType("f64", x.shape))
    gspmd.compile(module).check(x)
    outcome = compare(module.run(x), 2 * x * (1 + 2 + 3), terms=8)
    assert outcome, outcome.message


def test_ties_share() -> None:
    x = np.array([1.0, 3.0, 2.0, 3.0, 3.0, 0.0])
    mapped = gspmd.shard_map(lambda p: gspmd.all_reduce(p, ("a", "b"), "max"), MESH, P(("a", "b")), P())
    slope = gspmd.trace(gspmd.grad(lambda x: gnp.sum(mapped(x))), gspmd.TensorType("f64", (6,)))
    outcome = compare(slope.run(x), np.array([0, 1, 0, 1, 1, 0]) / 3)
    assert outcome, outcome.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda p: gspmd.all_reduce(p, "b", "mul"), r"all_reduce.D1: all_reduce by mul has no gradient"),
        (lambda p: gspmd.reduce_scatter(p, "a", 1, "max"), r"reduce_scatter.D1: reduce_scatter by max has no"),
    ],
)
def test_what_has_no_gradient(body: Any, message: str) -> None:
    mapped = gspmd.shard_map(body, MESH, P(None, "b"), P(None, "b"))
    with pytest.raises(GspmdError, match=message) as caught:
        gspmd.trace(gspmd.grad(lambda x: gnp.sum(mapped(x))), gspmd.TensorType("f32", (4, 6)))
    assert caught.value.loc is not None and caught.value.loc.file == __file__
