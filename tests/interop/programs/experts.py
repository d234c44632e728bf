"""A layer of experts with its gradient: top-2 gating, capacity, dispatch and combine by einsums."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.interop.programs.case import Layout, P, Place, Program, nbytes, once, twice

GROUPS, TOKENS, WIDTH, HIDDEN, EXPERTS, CAPACITY = 8, 16, 32, 64, 8, 6
_RNG = np.random.default_rng(4)


def _weights(*shape: int) -> np.ndarray:
    return (_RNG.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)


def _routes(logits: Any) -> tuple[Any, Any, Any]:
    """Dispatch (bool) and combine weights [group, token, expert, slot], and the loss that balances the experts."""
    gates = jax.nn.softmax(logits)
    weights, chosen = lax.top_k(gates, 2)
    weights = weights / jnp.sum(weights, -1, keepdims=True)
    masks = jax.nn.one_hot(chosen, EXPERTS)  # group, token, choice, expert
    ahead = jnp.cumsum(masks[:, :, 0], 1) - masks[:, :, 0]
    taken = jnp.sum(masks[:, :, 0], 1, keepdims=True)
    behind = jnp.cumsum(masks[:, :, 1], 1) - masks[:, :, 1] + taken
    places = jnp.stack([ahead, behind], 2)
    kept = masks * (places < CAPACITY)
    slots = jax.nn.one_hot(places.astype(jnp.int32), CAPACITY)
    combine = jnp.einsum("gtk,gtke,gtkec->gtec", weights, kept, slots)
    balance = jnp.mean(jnp.mean(gates, 1) * jnp.mean(masks[:, :, 0], 1)) * EXPERTS**2
    return combine > 0, combine, balance


def build(place: Place) -> Any:
    def loss(params: Any, x: Any, target: Any) -> Any:
        dispatch, combine, balance = _routes(jnp.einsum("gtd,de->gte", x, params["gate"]))
        inside = place(jnp.einsum("gtec,gtd->egcd", dispatch.astype(x.dtype), x), "dispatched")
        hidden = jax.nn.relu(jnp.einsum("egcd,edh->egch", inside, params["up"]))
        outside = place(jnp.einsum("egch,ehd->egcd", hidden, params["down"]), "dispatched")
        y = place(jnp.einsum("gtec,egcd->gtd", combine, outside), "tokens")
        return jnp.mean((y - target) ** 2) + 0.01 * balance

    def step(params: Any, x: Any, target: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, x, target)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

    return step


PARAMS = {
    "gate": _weights(WIDTH, EXPERTS),
    "up": _weights(EXPERTS, WIDTH, HIDDEN),
    "down": _weights(EXPERTS, HIDDEN, WIDTH),
}
_EXPERT = {"gate": P(), "up": P("expert"), "down": P("expert")}
_EXPERT_DATA = {"gate": P(), "up": P("data"), "down": P("data")}
_EXPERT_MODEL = {"gate": P(), "up": P("expert", None, "model"), "down": P("expert", "model", None)}
# What the experts read, all together; and which token goes to which place of theirs, one byte each.
DISPATCHED = EXPERTS * GROUPS * CAPACITY * WIDTH * 4
ROUTES = GROUPS * TOKENS * EXPERTS * CAPACITY
GATE = nbytes(PARAMS["gate"])


def _exchanged(parts: int, times: int = 4) -> float:
    """To the experts and back, forwards and backwards; the gates' gradients are added up."""
    return times * once(DISPATCHED / parts, parts) + 2 * once(ROUTES / parts, parts) + twice(GATE, parts) + 256


PROGRAM = Program(
    "experts",
    build,
    (PARAMS, *(_RNG.standard_normal((GROUPS, TOKENS, WIDTH)).astype(np.float32) for _ in range(2))),
    (
        Layout("groups", {"data": 4}, (P(), P("data"), P("data")), twice(nbytes(PARAMS), 4) + 64, {}, (P(), P())),
        Layout("experts", {"expert": 4}, (_EXPERT, P("expert"), P("expert")), _exchanged(4),
               {"dispatched": P("expert"), "tokens": P("expert")}, (_EXPERT, P())),
        Layout("experts_free", {"expert": 4}, (_EXPERT, P("expert"), P("expert")), _exchanged(4, 5), {},
               (_EXPERT, P())),
        Layout("experts_hidden", {"expert": 2, "model": 2}, (_EXPERT_MODEL, P("expert"), P("expert")),
               _exchanged(2) + twice(DISPATCHED / 2, 2), {"dispatched": P("expert"), "tokens": P("expert")},
               (_EXPERT_MODEL, P())),
    ),
)  # fmt: skip
