"""A convolutional network's training step: strided convolutions, batch norm, pooling, gradient, momentum."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.interop.programs.case import Layout, P, Place, Program, nbytes, once, twice

BATCH, SIZE, CHANNELS, CLASSES = 8, 32, (3, 16, 32, 32), 16
_RNG = np.random.default_rng(1)


def _weights(*shape: int) -> np.ndarray:
    return (_RNG.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def _block(into: int, out: int) -> dict[str, np.ndarray]:
    return {"kernel": _weights(3, 3, into, out), "scale": np.ones(out, np.float32), "shift": np.zeros(out, np.float32)}


PARAMS = {
    "blocks": [_block(a, b) for a, b in pairwise(CHANNELS)],
    "dense": _weights(CHANNELS[-1], CLASSES),
}
STRIDES = 2, 1, 2


def build(place: Place) -> Any:
    def loss(params: Any, images: Any, labels: Any) -> Any:
        x = images
        for i, (block, stride) in enumerate(zip(params["blocks"], STRIDES, strict=True)):
            x = lax.conv_general_dilated(
                x, block["kernel"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
            x = (x - mean) * lax.rsqrt(variance + 1e-5) * block["scale"] + block["shift"]
            x = place(jax.nn.relu(x), f"block{i}")
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        scores = jax.nn.log_softmax(jnp.mean(x, (1, 2)) @ params["dense"])
        return -jnp.mean(jnp.sum(scores * jax.nn.one_hot(labels, CLASSES), -1))

    def step(params: Any, velocity: Any, images: Any, labels: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, images, labels)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, slopes)
        return jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity), velocity, value

    return step


def _params(dense: P, *kernels: P) -> Any:
    blocks = [{"kernel": k, "scale": P(*k[3:]), "shift": P(*k[3:])} for k in kernels]
    return {"blocks": blocks, "dense": dense}


def _layout(name: str, mesh: dict[str, int], params: Any, images: P, labels: P, cap: float, **inside: P) -> Layout:
    return Layout(name, mesh, (params, params, images, labels), cap, inside, (params, params, P()))


_OUT, _IN = P(None, None, None, "model"), P(None, None, "model", None)
_CHANNELS = _params(P("model", None), _OUT, _IN, _OUT)
_OUTPUTS = _params(P("model", None), _OUT, _OUT, _OUT)
WEIGHTS = nbytes(PARAMS)
# Sums over batch and space that batch norm needs forwards and backwards: at most eight a channel.
STATISTICS = 8 * sum(CHANNELS[1:]) * 4
# Activations behind the first block and behind the second.
FIRST, SECOND = (BATCH * (SIZE // 2) ** 2 * c * 4 for c in CHANNELS[1:3])
GRADIENTS = WEIGHTS + STATISTICS
# Rows of the images and of activations that neighbours need: on one side for strides of two, else on both, forwards and
# backwards.
HALOS = (
    2 * BATCH * 4 * (SIZE * CHANNELS[0] + SIZE // 2 * (CHANNELS[1] + 3 * CHANNELS[2]) + SIZE // 4 * CHANNELS[3]) * 1.2
)
PROGRAM = Program(
    "convolution",
    build,
    (
        PARAMS,
        jax.tree.map(lambda p: _weights(1, *p.shape)[0] * 0.1, PARAMS),
        _RNG.standard_normal((BATCH, SIZE, SIZE, CHANNELS[0])).astype(np.float32),
        _RNG.integers(0, CLASSES, BATCH).astype(np.int32),
    ),
    (
        _layout("data", {"data": 4}, P(), P("data"), P("data"), twice(GRADIENTS, 4)),
        # The second convolution leaves sums, and so do the gradients of what the third reads.
        _layout("channels", {"model": 4}, _CHANNELS, P(), P(), 2 * twice(SECOND, 4) + 4096),
        # What each convolution reads is gathered; backwards its kernel.
        _layout("outputs", {"model": 4}, _OUTPUTS, P(), P(), once(FIRST + SECOND + WEIGHTS, 4)),
        _layout("space", {"space": 4}, P(), P(None, "space"), P(), twice(GRADIENTS, 4) + HALOS),
        _layout("both", {"data": 2, "space": 2}, P(), P("data", "space"), P("data"), twice(GRADIENTS, 4) + HALOS / 2),
        _layout(
            "mixed",
            {"data": 2, "model": 2},
            _CHANNELS,
            P("data"),
            P("data"),
            2 * twice(SECOND / 2, 2) + twice(WEIGHTS / 2 + STATISTICS, 2) + 1024,
        ),
    ),
)
