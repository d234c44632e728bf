"""Convolution, pooling and running sums of traced code against JAX."""

from __future__ import annotations

from typing import Any, cast

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import gspmd.numpy as gnp
from gspmd.frontend.grad import grad
from gspmd.ir.errors import GspmdError
from tests.frontend.support import assert_like_jax, run

RNG = np.random.default_rng(0)


def array(*shape: int) -> Any:
    """Normal numbers."""
    return RNG.standard_normal(shape).astype(np.float32)


X, W = array(2, 9, 8, 4), array(3, 2, 4, 6)
NHWC = ("NHWC", "HWIO", "NHWC")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding": "VALID"},
        {"stride": 2},
        {"stride": (1, 3), "padding": "SAME"},
        {"padding": [(1, 2), (0, -1)]},
        {"padding": 1, "dilation": (2, 1)},
        {"input_dilation": (1, 2), "padding": [(0, 0), (1, 1)]},
    ],
)
def test_conv(options: dict[str, Any]) -> None:
    theirs = dict(options)
    both = lambda n: (n, n) if isinstance(n, int) else n  # noqa: E731
    pads = theirs.get("padding", "SAME")
    y = lax.conv_general_dilated(
        X,
        W,
        both(theirs.get("stride", 1)),
        [(pads, pads)] * 2 if isinstance(pads, int) else pads,
        both(theirs.get("input_dilation", 1)),
        both(theirs.get("dilation", 1)),
        NHWC,
    )
    assert_like_jax(run(lambda x, w: gnp.conv(x, w, **options), X, W), y, terms=24)


def test_orders_and_groups() -> None:
    y = lax.conv_general_dilated(X, W[:, :, :2], (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=2)
    mine = run(
        lambda x, w: gnp.conv(x, w, groups=2, order="NCHW", kernel_order="OIHW"),
        X.transpose(0, 3, 1, 2),
        W[:, :, :2].transpose(3, 2, 0, 1),
    )
    assert_like_jax(mine, np.asarray(y).transpose(0, 3, 1, 2), terms=12)
    turned = run(lambda x, w: gnp.conv(x, w, order="WHNC", kernel_order="HWIO"), X.transpose(2, 1, 0, 3), W)
    plain = lax.conv_general_dilated(X, W, (1, 1), "SAME", dimension_numbers=NHWC)
    assert_like_jax(turned, np.asarray(plain).transpose(2, 1, 0, 3), terms=24)


def test_one_and_three_dimensions_of_space() -> None:
    x, w = array(2, 7, 3), array(3, 3, 5)
    y = lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC"))
    assert_like_jax(run(gnp.conv, x, w), y, terms=9)
    x, w = array(2, 4, 5, 6, 2), array(2, 3, 2, 2, 3)
    y = lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))
    assert_like_jax(run(gnp.conv, x, w), y, terms=24)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_conv_transpose(stride: int, padding: Any) -> None:
    y = lax.conv_transpose(X, W, (stride, stride), padding, dimension_numbers=NHWC)
    assert_like_jax(run(lambda x, w: gnp.conv_transpose(x, w, stride, padding), X, W), y, terms=24)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pooling(padding: Any) -> None:
    sizes, strides = (1, 3, 2, 1), (1, 2, 2, 1)
    largest = lax.reduce_window(X, -jnp.inf, lax.max, sizes, strides, padding)
    assert_like_jax(run(lambda x: gnp.max_pool(x, (3, 2), 2, padding), X), largest)
    total = lax.reduce_window(X, 0.0, lax.add, sizes, strides, padding)
    count = lax.reduce_window(jnp.ones_like(X), 0.0, lax.add, sizes, strides, padding)
    assert_like_jax(run(lambda x: gnp.avg_pool(x, (3, 2), 2, padding), X), total / count, terms=6)
    assert_like_jax(run(lambda x: gnp.avg_pool(x, (3, 2), 2, padding, count_padding=True), X), total / 6, terms=6)


def test_gradients_through_a_small_network() -> None:
    def mine(w: Any, x: Any) -> Any:
        h = gnp.max_pool(gnp.relu(gnp.conv(x, w, stride=1)), 2)
        return gnp.sum(gnp.square(gnp.avg_pool(h, 3, 1, "SAME")))

    def theirs(w: Any, x: Any) -> Any:
        h = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC))
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        sums = lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")  # noqa: E731
        return jnp.sum(jnp.square(sums(h) / sums(jnp.ones_like(h))))

    assert_like_jax(run(grad(mine), W, X), jax.grad(theirs)(W, X), terms=500)
    flipped = run(grad(lambda x, w: mine(w, x)), X, W)
    assert_like_jax(flipped, jax.grad(lambda x, w: theirs(w, x))(X, W), terms=500)


def test_running_sums_and_products() -> None:
    x = array(4, 6)
    x[1, 2] = x[3, 0] = x[3, 4] = 0
    weights = np.arange(24, dtype=np.float32).reshape(4, 6)
    for mine, theirs in ((gnp.cumsum, jnp.cumsum), (gnp.cumprod, jnp.cumprod)):
        assert_like_jax(run(lambda a, f=mine: f(a, 1), x), theirs(x, 1), terms=6)
        assert_like_jax(run(lambda a, f=mine: f(a), x), theirs(x), terms=24)
        found = run(grad(lambda a, f=mine: gnp.sum(f(a, 0) * weights)), x)
        assert_like_jax(found, jax.grad(lambda a, f=theirs: jnp.sum(f(a, 0) * weights))(x), terms=6)


@pytest.mark.parametrize(
    ("rule", "call"),
    [
        ("conv.C1", lambda x: gnp.conv(x, W[0])),
        ("conv.C2", lambda x: gnp.conv(x, W, order="NHWX")),
        ("conv.C2", lambda x: gnp.conv(x, W, order="NHWC", kernel_order="XYIO")),
        ("conv.C3", lambda x: gnp.conv(x, W, stride=(1, 2, 3))),
        ("conv.C4", lambda x: gnp.conv(x, W, padding=cast(Any, "FULL"))),
        ("conv.C4", lambda x: gnp.conv(x, W, padding=[(1, 1)])),
        ("convolution.C7", lambda x: gnp.conv(x, W[:, :, :3])),
    ],
)
def test_errors(rule: str, call: Any) -> None:
    with pytest.raises(GspmdError, match=rule.replace(".", r"\.")):
        run(call, X)
