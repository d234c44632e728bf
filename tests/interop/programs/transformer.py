"""A Transformer's training step: lookup, causal attention, layer norm, MLP, cross entropy, gradient, Adam."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.interop.programs.case import Layout, P, Place, Program, nbytes, once, twice

BATCH, SEQUENCE, VOCABULARY, WIDTH, HEADS, HIDDEN, LAYERS = 8, 32, 256, 64, 4, 256, 2
_RNG = np.random.default_rng(0)


def _weights(*shape: int) -> np.ndarray:
    return (_RNG.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def _norm_params() -> dict[str, np.ndarray]:
    return {"scale": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32)}


def _layer_params() -> dict[str, Any]:
    size = WIDTH // HEADS
    return {
        "norm1": _norm_params(),
        "query_key_value": _weights(WIDTH, 3, HEADS, size),
        "out": _weights(HEADS, size, WIDTH) * 0.5,
        "norm2": _norm_params(),
        "up": _weights(WIDTH, HIDDEN),
        "up_bias": np.zeros(HIDDEN, np.float32),
        "down": _weights(HIDDEN, WIDTH),
        "down_bias": np.zeros(WIDTH, np.float32),
    }


PARAMS = {
    "embed": _weights(VOCABULARY, WIDTH) * 4,
    "position": _weights(SEQUENCE, WIDTH),
    "layers": [_layer_params() for _ in range(LAYERS)],
    "norm": _norm_params(),
    "unembed": _weights(WIDTH, VOCABULARY),
}


def _norm(x: Any, params: Any) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * params["scale"] + params["shift"]


def _attention(x: Any, params: Any) -> Any:
    q, k, v = jnp.moveaxis(jnp.einsum("bsd,dchk->bschk", x, params["query_key_value"]), 2, 0)
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) / np.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(scores), v)
    return jnp.einsum("bqhk,hkd->bqd", mixed, params["out"])


def build(place: Place) -> Any:
    def loss(params: Any, tokens: Any, labels: Any) -> Any:
        x = place(params["embed"][tokens] + params["position"], "activations")
        for layer in params["layers"]:
            x = place(x + _attention(_norm(x, layer["norm1"]), layer), "activations")
            hidden = jax.nn.gelu(_norm(x, layer["norm2"]) @ layer["up"] + layer["up_bias"])
            x = place(x + hidden @ layer["down"] + layer["down_bias"], "activations")
        logits = jax.nn.log_softmax(_norm(x, params["norm"]) @ params["unembed"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[..., None], -1))

    def step(params: Any, mean: Any, square: Any, count: Any, tokens: Any, labels: Any) -> Any:
        """One step of Adam: new parameters, both moments, the loss."""
        value, slopes = jax.value_and_grad(loss)(params, tokens, labels)
        count = count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, slopes)

        def update(p: Any, m: Any, v: Any) -> Any:
            return p - 1e-2 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-6)

        return jax.tree.map(update, params, mean, square), mean, square, value

    return step


def _state(scale: float, lowest: float) -> Any:
    """Moments as after some steps: none so small that its square root is noise."""
    return jax.tree.map(lambda p: (scale * (np.abs(_RNG.standard_normal(p.shape)) + lowest)).astype(np.float32), PARAMS)


def _params(embed: P, position: P, unembed: P, norm: P, layer: dict[str, P]) -> Any:
    return {"embed": embed, "position": position, "layers": [layer] * LAYERS, "norm": norm, "unembed": unembed}


def _layout(name: str, mesh: dict[str, int], params: Any, batch: P, activations: P | None, cap: float) -> Layout:
    inside = {} if activations is None else {"activations": activations}
    return Layout(name, mesh, (params, params, params, P(), batch, batch), cap, inside, (params, params, params, P()))


_MODEL = _params(
    P("model", None), P(), P(None, "model"), P(),
    {"norm1": P(), "query_key_value": P(None, None, "model", None), "out": P("model", None, None), "norm2": P(),
     "up": P(None, "model"), "up_bias": P("model"), "down": P("model", None), "down_bias": P()},
)  # fmt: skip
_ZERO = _params(
    P("data", None), P(None, "data"), P("data", None), P("data"),
    {"norm1": P("data"), "query_key_value": P("data", None, None, None), "out": P(None, None, "data"),
     "norm2": P("data"), "up": P("data", None), "up_bias": P("data"), "down": P("data", None), "down_bias": P("data")},
)  # fmt: skip
_WIDE = _params(
    P("model", "data"), P(), P("data", "model"), P(),
    {"norm1": P(), "query_key_value": P("data", None, "model", None), "out": P("model", None, "data"), "norm2": P(),
     "up": P("data", "model"), "up_bias": P("model"), "down": P("model", "data"), "down_bias": P()},
)  # fmt: skip

WEIGHTS = nbytes(PARAMS)
ACTIVATIONS = BATCH * SEQUENCE * WIDTH * 4
TOKENS = BATCH * SEQUENCE * 4
UNSPLIT = nbytes(PARAMS["position"]) + 5 * nbytes(PARAMS["norm"]) + LAYERS * WIDTH * 4
# Gradients are added up once.
DATA_CAP = twice(WEIGHTS, 4) + 1024
# Half of the gradients are added up over the data. Over the model sums of activations: of the lookup and two a layer
# forwards, two a layer and one of the logits backwards; and what the softmax of split logits needs of each token.
MODEL_CAP = twice(WEIGHTS / 2 + UNSPLIT, 2) + (2 + 4 * LAYERS) * twice(ACTIVATIONS / 2, 2) + 8 * TOKENS
# Weights are gathered once, and their gradients scattered.
ZERO_CAP = 2 * once(WEIGHTS, 4) + 2048
# The same of half the weights; each sum of activations is scattered, and gathered behind the norm, whose statistics are
# sums over the model as well.
WIDE_CAP = 2 * once(WEIGHTS / 2, 2) + (4 + 8 * LAYERS) * once(ACTIVATIONS / 2, 2) + 64 * TOKENS
PROGRAM = Program(
    "transformer",
    build,
    (
        PARAMS,
        _state(1e-3, 0.0),
        _state(1e-4, 0.5),
        np.float32(7),
        _RNG.integers(0, VOCABULARY, (BATCH, SEQUENCE)).astype(np.int32),
        _RNG.integers(0, VOCABULARY, (BATCH, SEQUENCE)).astype(np.int32),
    ),
    (
        _layout("data", {"data": 4}, P(), P("data", None), None, DATA_CAP),
        _layout("model", {"data": 2, "model": 2}, _MODEL, P("data", None), None, MODEL_CAP),
        _layout("zero", {"data": 4}, _ZERO, P("data", None), P("data", None, None), ZERO_CAP),
        _layout("wide", {"data": 2, "model": 2}, _WIDE, P("data", None), P("data", None, "model"), WIDE_CAP),
    ),
)
