"""Per-device code among automatic code: a Transformer block split along its sequence, and a data-parallel step.

What is automatic in the one (the batch) and in the other (the model) may be split as well, by annotations.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.interop.programs.case import Layout, ManualProgram, P, Place, nbytes, once, twice

BATCH, SEQUENCE, WIDTH, HEADS, HIDDEN = 8, 64, 32, 4, 64
SAMPLES, FEATURES, UNITS, CLASSES, STEPS = 512, 32, 32, 8, 3
_RNG = np.random.default_rng(6)


def _weights(*shape: int, inputs: int = 0) -> np.ndarray:
    return (_RNG.standard_normal(shape) / np.sqrt(inputs or shape[0])).astype(np.float32)


# -- a block whose sequence is split ----------------------------------------------------------------------------------


def _attention(query_key_value: Any) -> Any:
    """Attention of tokens that are split: turned to be split by heads, and back."""
    whole = lax.all_to_all(query_key_value, "model", 3, 1, tiled=True)
    q, k, v = jnp.moveaxis(whole, 2, 0)
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) / np.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[2:], bool)), scores, -1e9)
    mixed = jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(scores), v)
    return lax.all_to_all(mixed, "model", 1, 2, tiled=True)


def _mlp(x: Any, up: Any, down: Any) -> Any:
    """x @ up while the tokens go round, and the sums of @ down scattered to where the tokens are."""
    count, me, rows = lax.axis_size("model"), lax.axis_index("model"), x.shape[1]
    ring = [(k, (k + 1) % count) for k in range(count)]

    def keep(hidden: Any, held: Any, trip: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(hidden, held @ up, (me - trip) % count * rows, 1)

    def turn(trip: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        hidden, held = carry
        return keep(hidden, held, trip), lax.ppermute(held, "model", ring)

    shape = (x.shape[0], rows * count, up.shape[1])
    empty = lax.pcast(jnp.zeros(shape, x.dtype), "model", to="varying")
    hidden, last = lax.fori_loop(0, count - 1, turn, (empty, x))
    hidden = jax.nn.gelu(keep(hidden, last, count - 1))
    return lax.psum_scatter(hidden @ down, "model", scatter_dimension=1, tiled=True)


def _norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def block(place: Place) -> Any:
    """The gradient step of a block: its tokens are split by hand over `model`."""
    tokens = P(None, "model")

    def by_hand(f: Any, *specs: Any) -> Any:
        return jax.shard_map(f, in_specs=specs, out_specs=tokens, axis_names={"model"})

    def loss(params: Any, x: Any, target: Any) -> Any:
        split = jnp.einsum("bsd,dchk->bschk", _norm(x, params["scale"]), params["query_key_value"])
        mixed = by_hand(_attention, tokens)(split)
        x = place(x + jnp.einsum("bqhk,hkd->bqd", mixed, params["out"]), "activations")
        mlp = by_hand(_mlp, tokens, P(None, "model"), P("model"))
        x = x + mlp(_norm(x, params["scale2"]), params["up"], params["down"])
        return jnp.mean((x - target) ** 2)

    def step(params: Any, x: Any, target: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, x, target)
        return jax.tree.map(lambda p, g: p - g, params, slopes), value

    return step


BLOCK = {
    "scale": np.ones(WIDTH, np.float32),
    "query_key_value": _weights(WIDTH, 3, HEADS, WIDTH // HEADS),
    "out": _weights(HEADS, WIDTH // HEADS, WIDTH, inputs=WIDTH),
    "scale2": np.ones(WIDTH, np.float32),
    "up": _weights(WIDTH, HIDDEN),
    "down": _weights(HIDDEN, WIDTH),
}
_SPLIT = {"up": P(None, "model"), "down": P("model")}
_BLOCK = {name: _SPLIT.get(name, P()) for name in BLOCK}
_WHOLE = nbytes({name: x for name, x in BLOCK.items() if name not in _SPLIT})
_TOKENS = BATCH * SEQUENCE * WIDTH * 4


def _block_cap(data: int, model: int) -> float:
    """Forwards and backwards: four arrays of tokens turned, one sent round, its gradient too, one scattered.

    Gradients of what is whole everywhere are added up over all devices, of the rest over the data: that of `up` comes
    in as many parts as the tokens have.
    """
    tokens = _TOKENS / data
    turned = 2 * 4 * once(tokens / model, model)
    sent = 2 * once(tokens, model) + 2 * once(tokens, model)
    return (
        turned
        + sent
        + twice(_WHOLE, data * model)
        + twice(nbytes(BLOCK["down"]) / model + nbytes(BLOCK["up"]), data)
        + 64
    )


# -- a step on each device's own samples ------------------------------------------------------------------------------


def local_steps(place: Place) -> Any:
    """Training on samples that are split by hand over `data`; who owns a piece of the weights updates it.

    The weights are gathered for use, their gradients scattered, and the sizes of both added up; each step takes the
    samples of the device before.
    """

    def steps(params: Any, x: Any, labels: Any) -> Any:
        count = lax.axis_size("data")
        ring = [(k, (k + 1) % count) for k in range(count)]

        def loss(held: Any, x: Any, labels: Any) -> Any:
            first, last = (lax.all_gather(held[n], "data", axis=i, tiled=True) for i, n in enumerate(("in", "out")))
            hidden = place(jnp.tanh(x @ first), "hidden")
            logits = jax.nn.log_softmax(hidden @ last)
            local = -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))
            return lax.pmean(local, "data")

        def step(carry: Any, _: Any) -> Any:
            held, x, labels = carry
            value, slopes = jax.value_and_grad(loss)(held, x, labels)
            norm = jnp.sqrt(lax.psum(sum(jnp.sum(g * g) for g in jax.tree.leaves(slopes)), "data"))
            held = jax.tree.map(lambda p, g: p - 0.5 * g / jnp.maximum(norm, 1.0), held, slopes)
            x, labels = (lax.ppermute(a, "data", ring) for a in (x, labels))
            return (held, x, labels), (value, norm)

        (held, *_), history = lax.scan(step, (params, x, labels), length=STEPS)
        return held, history

    data, weights = P("data"), {"in": P("data"), "out": P(None, "data")}
    by_hand = jax.shard_map(steps, in_specs=(weights, data, data), out_specs=(weights, P()), axis_names={"data"})

    def train(params: Any, x: Any, labels: Any) -> Any:
        scaled = (x - jnp.mean(x, 0)) * lax.rsqrt(jnp.var(x, 0) + 1e-3)
        params, history = by_hand(params, scaled, labels)
        return params, history, jnp.argmax(jnp.tanh(scaled @ params["in"]) @ params["out"], 1)

    return train


STEPPED = {"in": _weights(FEATURES, UNITS), "out": _weights(UNITS, CLASSES)}
_DATA = {"in": P("data"), "out": P(None, "data")}
_BOTH = {"in": P("data", "model"), "out": P("model", "data")}


def _steps_cap(data: int, model: int) -> float:
    """The weights gathered and their gradients scattered and the samples sent on, at every step; the weights once more.

    And a mean, a variance and the scalars of every step; over the model the sums and the hits of all samples.
    """
    weights, rows = nbytes(STEPPED) / model, SAMPLES / data
    sent = rows * (FEATURES + 1) * 4
    sums = (STEPS + 1) * twice(rows * CLASSES * 4, model)
    steps = STEPS * (2 * once(weights, data) + sent)
    return steps + once(weights, data) + 3 * twice(FEATURES * 4, data) + sums + 64


PROGRAMS = (
    ManualProgram(
        "block",
        block,
        (BLOCK, *(_RNG.standard_normal((BATCH, SEQUENCE, WIDTH)).astype(np.float32) for _ in range(2))),
        (
            Layout("sequence", {"model": 4}, (_BLOCK, P(None, "model"), P(None, "model")), _block_cap(1, 4), {},
                   (_BLOCK, P())),
            Layout("both", {"data": 2, "model": 2}, (_BLOCK, P("data", "model"), P("data", "model")),
                   _block_cap(2, 2), {}, (_BLOCK, P())),
        ),
    ),
    ManualProgram(
        "local_steps",
        local_steps,
        (STEPPED, _RNG.standard_normal((SAMPLES, FEATURES)).astype(np.float32),
         _RNG.integers(0, CLASSES, SAMPLES).astype(np.int32)),
        (
            Layout("samples", {"data": 4}, (_DATA, P("data"), P("data")), _steps_cap(4, 1), {},
                   (_DATA, P(), P("data"))),
            Layout("both", {"model": 2, "data": 2}, (_BOTH, P("data"), P("data")), _steps_cap(2, 2),
                   {"hidden": P(None, "model")}, (_BOTH, P(), P("data"))),
        ),
    ),
)  # fmt: skip
