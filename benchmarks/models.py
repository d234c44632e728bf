"""The models of the benchmarks: once for gspmd and JAX, whose interfaces agree, and once by hand for NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

RATE = 0.01


class Sizes(NamedTuple):
    """How large a model is; the layers and heads only matter to the Transformer."""

    batch: int
    sequence: int = 256
    width: int = 512
    hidden: int = 2048
    layers: int = 4
    heads: int = 8
    vocabulary: int = 8192


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


# -- multi-layer perceptron ------------------------------------------------------------------------------------------


def mlp_state(s: Sizes) -> tuple[list[Any], tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    widths = [s.width, s.hidden, s.hidden, s.width]
    params = [(normal(rng, a, b), np.zeros(b, np.float32)) for a, b in pairwise(widths)]
    return params, (normal(rng, s.batch, s.width), normal(rng, s.batch, s.width))


def mlp_loss(xp: Any, nn: Any, params: Any, x: Any, target: Any, s: Sizes) -> Any:
    for i, (w, b) in enumerate(params):
        x = x @ w + b
        x = nn.relu(x) if i < len(params) - 1 else x
    return xp.mean(xp.square(x - target))


def mlp_numpy(params: Any, x: Any, target: Any, s: Sizes) -> Any:
    """One step of training by hand."""
    kept = [x]
    for i, (w, b) in enumerate(params):
        x = kept[-1] @ w
        x += b
        kept.append(np.maximum(x, 0, out=x) if i < 2 else x)
    d = kept[-1] - target
    loss = np.mean(np.square(d))
    d *= 2 / d.size
    out: list[Any] = []
    for i in (2, 1, 0):
        w, b = params[i]
        out.append((w - RATE * (kept[i].T @ d), b - RATE * d.sum(0)))
        if i:
            d = d @ w.T
            d *= kept[i] > 0
    return loss, out[::-1]


# -- Transformer -----------------------------------------------------------------------------------------------------


def transformer_state(s: Sizes) -> tuple[list[Any], tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    d, h = s.width, s.hidden
    one, zero = np.ones(d, np.float32), np.zeros(d, np.float32)

    def layer() -> tuple[Any, ...]:
        heads = [normal(rng, d, d).reshape(d, s.heads, d // s.heads) for _ in range(3)]
        out = normal(rng, d, d).reshape(s.heads, d // s.heads, d)
        ffn = (normal(rng, d, h), np.zeros(h, np.float32), normal(rng, h, d), zero)
        return (one, zero, *heads, out, one, zero, *ffn)

    params = [normal(rng, s.vocabulary, d), [layer() for _ in range(s.layers)], one, zero, normal(rng, d, s.vocabulary)]
    data = rng.integers(0, s.vocabulary, (2, s.batch, s.sequence)).astype(np.int32)
    return params, (data[0], data[1])


def transformer_loss(xp: Any, nn: Any, params: Any, tokens: Any, target: Any, s: Sizes) -> Any:
    table, layers, scale, offset, unembed = params
    x = table[tokens]
    mask = xp.asarray(np.tril(np.ones((s.sequence, s.sequence), bool)))
    for g1, o1, wq, wk, wv, wo, g2, o2, w1, b1, w2, b2 in layers:
        y = norm(xp, x, g1, o1)
        q, k, v = (xp.einsum("btd,dhe->bhte", y, w) for w in (wq, wk, wv))
        a = xp.einsum("bhte,bhse->bhts", q, k) * (s.width // s.heads) ** -0.5
        a = nn.softmax(xp.where(mask, a, -1e9))
        x = x + xp.einsum("bhte,hed->btd", xp.einsum("bhts,bhse->bhte", a, v), wo)
        y = norm(xp, x, g2, o2)
        x = x + (nn.gelu(y @ w1 + b1) @ w2 + b2)
    logits = norm(xp, x, scale, offset) @ unembed
    picked = nn.log_softmax(logits) * nn.one_hot(target, s.vocabulary)
    return -xp.sum(picked) / target.size


def norm(xp: Any, x: Any, scale: Any, offset: Any) -> Any:
    apart = x - xp.mean(x, -1, keepdims=True)
    return apart / xp.sqrt(xp.mean(xp.square(apart), -1, keepdims=True) + 1e-5) * scale + offset


def _norm(x: Any, scale: Any, offset: Any) -> tuple[Any, Any]:
    apart = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(np.mean(np.square(apart), -1, keepdims=True) + 1e-5)
    apart *= inverse
    return apart * scale + offset, (apart, inverse, scale)


def _norm_back(ct: Any, kept: Any) -> tuple[Any, Any, Any]:
    unit, inverse, scale = kept
    d = ct * scale
    dx = (d - d.mean(-1, keepdims=True) - unit * np.mean(d * unit, -1, keepdims=True)) * inverse
    return dx, (ct * unit).sum(tuple(range(ct.ndim - 1))), ct.sum(tuple(range(ct.ndim - 1)))


_C = np.float32(np.sqrt(2 / np.pi))


def _heads(x: Any, w: Any, s: Sizes) -> Any:
    """[b*t, d] times [d, h, e] as [b, h, t, e]."""
    y = x @ w.reshape(s.width, s.width)
    return np.ascontiguousarray(y.reshape(s.batch, s.sequence, s.heads, -1).transpose(0, 2, 1, 3))


def _unheads(y: Any, s: Sizes) -> Any:
    return y.transpose(0, 2, 1, 3).reshape(s.batch * s.sequence, s.width)


def transformer_numpy(params: Any, tokens: Any, target: Any, s: Sizes) -> Any:
    """One step of training by hand."""
    table, layers, scale, offset, unembed = params
    mask = np.tril(np.ones((s.sequence, s.sequence), bool))
    factor = np.float32((s.width // s.heads) ** -0.5)
    x = table[tokens.reshape(-1)]
    tape: list[Any] = []
    for g1, o1, wq, wk, wv, wo, g2, o2, w1, b1, w2, b2 in layers:
        y, n1 = _norm(x, g1, o1)
        q, k, v = (_heads(y, w, s) for w in (wq, wk, wv))
        a = q @ k.transpose(0, 1, 3, 2)
        a *= factor
        a = np.where(mask, a, np.float32(-1e9))
        a -= a.max(-1, keepdims=True)
        np.exp(a, out=a)
        a /= a.sum(-1, keepdims=True)
        c = _unheads(a @ v, s)
        x = x + c @ wo.reshape(s.width, s.width)
        z, n2 = _norm(x, g2, o2)
        u = z @ w1 + b1
        t = np.tanh(_C * (u + np.float32(0.044715) * u * u * u))
        f = np.float32(0.5) * u * (1 + t)
        x = x + (f @ w2 + b2)
        tape.append((y, n1, q, k, v, a, c, z, n2, u, t, f))
    y, n = _norm(x, scale, offset)
    p = y @ unembed
    p -= p.max(-1, keepdims=True)
    rows, columns = np.arange(len(p)), target.reshape(-1)
    picked = p[rows, columns]
    np.exp(p, out=p)
    total = p.sum(-1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) - picked)
    p /= total
    p[rows, columns] -= 1
    p /= np.float32(len(p))
    new_unembed = unembed - RATE * (y.T @ p)
    d, ds, do = _norm_back(p @ unembed.T, n)
    new_layers: list[Any] = []
    for weights, kept in zip(reversed(layers), reversed(tape), strict=True):
        d, grads = _layer_back(d, weights, kept, factor, s)
        new_layers.append(tuple(w - RATE * g for w, g in zip(weights, grads, strict=True)))
    dtable = np.zeros_like(table)
    np.add.at(dtable, tokens.reshape(-1), d)
    return loss, [table - RATE * dtable, new_layers[::-1], scale - RATE * ds, offset - RATE * do, new_unembed]


def _layer_back(d: Any, weights: Any, kept: Any, factor: Any, s: Sizes) -> tuple[Any, tuple[Any, ...]]:
    _, _, wq, wk, wv, wo, _, _, w1, _, w2, _ = weights
    y, n1, q, k, v, a, c, z, n2, u, t, f = kept
    square = s.width, s.width
    dw2, db2 = f.T @ d, d.sum(0)
    df = d @ w2.T
    slope = _C * (1 + np.float32(3 * 0.044715) * u * u)
    du = df * (np.float32(0.5) * (1 + t) + np.float32(0.5) * u * (1 - t * t) * slope)
    dw1, db1 = z.T @ du, du.sum(0)
    dx, dg2, do2 = _norm_back(du @ w1.T, n2)
    d = d + dx
    dwo = (c.T @ d).reshape(wo.shape)
    dc = d @ wo.reshape(square).T
    dc = np.ascontiguousarray(dc.reshape(s.batch, s.sequence, s.heads, -1).transpose(0, 2, 1, 3))
    dv = a.transpose(0, 1, 3, 2) @ dc
    da = dc @ v.transpose(0, 1, 3, 2)
    da -= (da * a).sum(-1, keepdims=True)
    da *= a
    da *= factor
    dq, dk = da @ k, da.transpose(0, 1, 3, 2) @ q
    parts = [_unheads(g, s) for g in (dq, dk, dv)]
    dws = [(y.T @ g).reshape(wq.shape) for g in parts]
    dy = sum(g @ w.reshape(square).T for g, w in zip(parts, (wq, wk, wv), strict=True))
    dx, dg1, do1 = _norm_back(dy, n1)
    return d + dx, (dg1, do1, *dws, dwo, dg2, do2, dw1, db1, dw2, db2)


STATES = {"mlp": mlp_state, "transformer": transformer_state}
LOSSES = {"mlp": mlp_loss, "transformer": transformer_loss}
BY_HAND = {"mlp": mlp_numpy, "transformer": transformer_numpy}
