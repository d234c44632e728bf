"""Recurrent networks by `lax.scan`, differentiated: a GRU and an LSTM over a sequence."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.interop.programs.case import Layout, P, Place, Program, nbytes, once, twice

BATCH, LENGTH, WIDTH, HIDDEN = 16, 10, 32, 64
_RNG = np.random.default_rng(3)


def _weights(*shape: int) -> np.ndarray:
    return (_RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def gru(place: Place) -> Any:
    def loss(params: Any, xs: Any, target: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            r, z = jax.nn.sigmoid(
                jnp.einsum("bi,igh->gbh", x, params["input"][:, :2])
                + jnp.einsum("bk,kgh->gbh", h, params["state"][:, :2])
                + params["bias"][:2, None]
            )
            candidate = jnp.tanh(x @ params["input"][:, 2] + r * (h @ params["state"][:, 2]) + params["bias"][2])
            h = place((1 - z) * h + z * candidate, "state")
            return h, h

        start = jnp.zeros((xs.shape[1], HIDDEN), jnp.float32)
        _, states = lax.scan(step, start, xs)
        return jnp.mean((states @ params["out"] - target) ** 2)

    def step(params: Any, xs: Any, target: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, xs, target)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

    return step


def lstm(place: Place) -> Any:
    def loss(params: Any, xs: Any, target: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            gates = x @ params["input"] + h @ params["state"] + params["bias"]
            i, f, g, o = jnp.split(gates, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = place(jax.nn.sigmoid(o) * jnp.tanh(c), "state")
            return (h, c), h

        start = jnp.zeros((xs.shape[1], HIDDEN), jnp.float32)
        (last, _), _ = lax.scan(step, (start, start), xs)
        return jnp.mean((last @ params["out"] - target[-1]) ** 2)

    return jax.value_and_grad(loss)


_GRU = {
    "input": _weights(WIDTH, 3, HIDDEN),
    "state": _weights(HIDDEN, 3, HIDDEN),
    "bias": np.zeros((3, HIDDEN), np.float32),
    "out": _weights(HIDDEN, WIDTH),
}
_LSTM = {
    "input": _weights(WIDTH, 4 * HIDDEN),
    "state": _weights(HIDDEN, 4 * HIDDEN),
    "bias": np.zeros(4 * HIDDEN, np.float32),
    "out": _weights(HIDDEN, WIDTH),
}
_DATA = [_RNG.standard_normal((LENGTH, BATCH, WIDTH)).astype(np.float32) for _ in range(2)]
_HIDDEN = {
    "input": P(None, None, "model"),
    "state": P(None, None, "model"),
    "bias": P(None, "model"),
    "out": P("model", None),
}
_GATES = {"input": P(None, "model"), "state": P(None, "model"), "bias": P("model"), "out": P("model", None)}
_ROWS = {"input": P(), "state": P("model", None), "bias": P(), "out": P("model", None)}
_BATCH = P(None, "data")
_ZERO = {"input": P("data"), "state": P("data"), "bias": P(None, "data"), "out": P("data")}

# The state, the gates, and what the states are projected to.
STATE, GATES, OUT, LAST = (n * 4 for n in (BATCH * HIDDEN, BATCH * 4 * HIDDEN, LENGTH * BATCH * WIDTH, BATCH * WIDTH))
SCALARS = 64


def _gru_trip(batch: int, parts: int) -> float:
    """The state gathered for the next gates, their gradients scattered, two of each kind."""
    return 4 * once(STATE / batch, parts)


def _lstm_trip(batch: int, parts: int) -> float:
    """The gates, split all together, turned to be split each, and back; the state gathered, its gradient scattered."""
    return 2 * (once(GATES / batch / parts, parts) * 2) + 3 * once(STATE / batch, parts)


PROGRAMS = (
    Program(
        "gru",
        gru,
        (_GRU, *_DATA),
        (
            Layout("data", {"data": 4}, (P(), _BATCH, _BATCH), twice(nbytes(_GRU), 4) + SCALARS, {}, (P(), P())),
            # Weights are gathered before each of the two loops, gradients scattered behind the second.
            Layout(
                "zero",
                {"data": 4},
                (_ZERO, _BATCH, _BATCH),
                4 * once(nbytes(_GRU), 4),
                {"state": P("data")},
                (_ZERO, P()),
            ),
            Layout(
                "hidden",
                {"model": 4},
                (_HIDDEN, P(), P()),
                LENGTH * _gru_trip(1, 4) + twice(OUT, 4),
                {},
                (_HIDDEN, P()),
            ),
            Layout(
                "both",
                {"data": 2, "model": 2},
                (_HIDDEN, _BATCH, _BATCH),
                twice(nbytes(_GRU) / 2, 2) + LENGTH * _gru_trip(2, 2) + twice(OUT / 2, 2) + SCALARS,
                {},
                (_HIDDEN, P()),
            ),
        ),
    ),
    Program(
        "lstm",
        lstm,
        (_LSTM, *_DATA),
        (
            Layout("data", {"data": 4}, (P(), _BATCH, _BATCH), twice(nbytes(_LSTM), 4) + SCALARS, {}, (P(), P())),
            Layout(
                "gates", {"model": 4}, (_GATES, P(), P()), LENGTH * _lstm_trip(1, 4) + twice(LAST, 4), {}, (P(), _GATES)
            ),
            # The gates are sums over the rows; they and their gradients are scattered, gathered and turned.
            Layout(
                "rows", {"model": 4}, (_ROWS, P(), P()), LENGTH * 4 * once(GATES, 4) + twice(LAST, 4), {}, (P(), _ROWS)
            ),
            Layout(
                "both",
                {"data": 2, "model": 2},
                (_GATES, _BATCH, _BATCH),
                twice(nbytes(_LSTM) / 2, 2) + LENGTH * _lstm_trip(2, 2) + twice(LAST / 2, 2) + SCALARS,
                {},
                (P(), _GATES),
            ),
        ),
    ),
)
