"""Gradients against jax.grad: one function, written once, given either module."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gspmd.numpy as gnp
from gspmd.frontend.control import cond, fori_loop, scan, switch, while_loop
from gspmd.frontend.grad import grad, value_and_grad
from gspmd.frontend.trace import trace
from gspmd.ir.types import TensorType
from tests.frontend.support import assert_like_jax, run, traced

RANDOM = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype("f4")


MINE: Any = SimpleNamespace(
    **{name: getattr(gnp, name) for name in gnp.__all__},
    grad=grad,
    value_and_grad=value_and_grad,
    cond=cond,
    switch=switch,
    scan=scan,
    fori_loop=fori_loop,
    while_loop=while_loop,
)
THEIRS: Any = SimpleNamespace(
    **{name: getattr(jnp, name) for name in gnp.__all__ if hasattr(jnp, name)},
    grad=jax.grad,
    value_and_grad=jax.value_and_grad,
    cond=jax.lax.cond,
    switch=jax.lax.switch,
    scan=jax.lax.scan,
    fori_loop=jax.lax.fori_loop,
    while_loop=jax.lax.while_loop,
    softmax=jax.nn.softmax,
    log_softmax=jax.nn.log_softmax,
    relu=jax.nn.relu,
    gelu=jax.nn.gelu,
    silu=jax.nn.silu,
    sigmoid=jax.nn.sigmoid,
    erf=jax.scipy.special.erf,
    rsqrt=jax.lax.rsqrt,
    logsumexp=jax.nn.logsumexp,
    stop_gradient=jax.lax.stop_gradient,
    one_hot=jax.nn.one_hot,
    layer_norm=lambda x, s, b: jax.nn.standardize(x, epsilon=1e-5) * s + b,
)

A, B, W, V = normal(4, 6), normal(4, 6), normal(6, 3), normal(6)
IDX = np.array([[1, 3, 1], [0, 1, 3]], "i4")


def mlp(m: Any, p: Any, x: Any) -> Any:
    h = m.gelu(x @ p["w"][0] + p["b"])
    return m.mean(m.square(h @ p["w"][1] - 1))


def attention(m: Any, p: Any, x: Any) -> Any:
    q, k, v = (m.einsum("bld,dhk->blhk", x, p[n]) for n in "qkv")
    scores = m.einsum("blhk,bmhk->bhlm", q, k) / np.float32(2.0)
    scores = m.where(m.tril(m.ones((5, 5))) > 0, scores, -1e9)
    return m.einsum("bhlm,bmhk->blhk", m.softmax(scores), v).sum()


def norm(m: Any, x: Any, scale: Any, offset: Any) -> Any:
    return (m.layer_norm(x, scale, offset) * np.arange(24, dtype="f4").reshape(4, 6)).sum()


def rnn(m: Any, p: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = m.tanh(h @ p["u"] + x @ p["w"])
        return h, h.sum()

    last, sums = m.scan(step, m.zeros(3), xs)
    return last.sum() + (sums**2).sum()


def cross_entropy(m: Any, x: Any) -> Any:
    return -m.mean(m.take_along_axis(m.log_softmax(x), np.array([[1], [0], [5], [2]], "i4"), 1))


def loop(m: Any, x: Any, w: Any) -> Any:
    return m.fori_loop(0, 4, lambda i, c: m.sin(c @ w) * (i + 1), x).sum()


def nested(m: Any, x: Any) -> Any:
    def outer(c: Any, row: Any) -> Any:
        inner = m.fori_loop(0, 2, lambda i, d: d * row + c, row)
        return c + inner.sum(), inner

    last, rows = m.scan(outer, 0.5, x)
    return last + rows.sum()


def max_pool(m: Any, x: Any) -> Any:
    return (m.max(x.reshape(2, 2, 3, 2), axis=(1, 3)) ** 2).sum()


def branch(m: Any, x: Any, y: Any) -> Any:
    return m.cond(x.sum() > 0, lambda a: (a * y).sum(), lambda a: m.sin(a).sum(), x) + m.switch(
        m.argmax(x[0]) * 0 + 1, [lambda: x.sum(), lambda: (x * x).sum(), lambda: y.sum()]
    )


def hessian_vector(m: Any, x: Any, v: Any) -> Any:
    return (m.grad(lambda z: (m.tanh(z @ W) ** 3).sum())(x) * v).sum()


def moved(m: Any, x: Any) -> Any:
    parts = [m.concatenate([x[:, 1:], x * 2], 1).sum(0)[::2], m.flip(x, 1)[0], m.pad(x, 1)[0:3, 1], m.roll(x, 2, 1)[1]]
    return sum((p**2).sum() for p in parts)


def updated(m: Any, x: Any) -> Any:
    y = x.at[1].set(x[0] * 3).at[:, 2].add(x[:, 1] ** 2).at[::2, 1:5:2].set(x[:2, :2])
    return (y.at[np.array([0, 0, 2])].add(x[:3] ** 2) ** 2).sum()


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "mlp": (mlp, ({"w": [normal(6, 8), normal(8, 2)], "b": normal(8)}, A), 0),
    "attention": (attention, ({n: normal(4, 2, 3) for n in "qkv"}, normal(2, 5, 4)), (0, 1)),
    "layer norm": (norm, (A, V, normal(6)), (0, 1, 2)),
    "rnn": (rnn, ({"u": normal(3, 3), "w": normal(6, 3)}, A), (0, 1)),
    "cross entropy": (cross_entropy, (A,), 0),
    "embedding": (lambda m, e: (m.take(e, IDX, axis=0) ** 2 * np.arange(6, dtype="f4")).sum(), (A,), 0),
    "gather": (lambda m, x: (x[IDX[0], :3] * x[:, IDX].sum(0)[:1]).sum(), (A,), 0),
    "traced gather": (lambda m, x, i: (x[i] ** 2).sum() + x[i[0, 1], i[1, 2]] ** 2, (A, IDX), 0),
    "along": (lambda m, x: (m.take_along_axis(x, np.array([[1, 1], [0, 5], [2, 2], [3, 4]]), 1) ** 2).sum(), (A,), 0),
    "max pool": (max_pool, (A,), 0),
    "branches": (branch, (A, B), (0, 1)),
    "loop": (loop, (normal(2, 3), normal(3, 3)), (0, 1)),
    "nested loops": (nested, (A * 0.5,), 0),
    "empty loop": (lambda m, x: m.fori_loop(3, 3, lambda i, c: c * c, x).sum(), (A,), 0),
    "grad of grad": (hessian_vector, (A, B), (0, 1)),
    "grad of loop grad": (
        lambda m, x, w: (m.grad(lambda y: loop(m, y, w))(x) ** 2).sum(),
        (normal(2, 3), normal(3, 3)),
        (0, 1),
    ),
    "third": (lambda m, x: m.grad(m.grad(lambda y: m.sin(y) * y**3))(x), (np.float32(0.7),), 0),
    "moved": (moved, (A,), 0),
    "updated": (updated, (A,), 0),
    "stopped": (lambda m, x: (m.stop_gradient(x) * x).sum(), (A,), 0),
    "stopped in loop": (lambda m, x: m.fori_loop(0, 3, lambda i, c: c * m.stop_gradient(c), x).sum(), (A * 0.5,), 0),
    "logsumexp": (lambda m, x: m.logsumexp(x, 1).sum() + m.logsumexp(x), (A * 3,), 0),
    "activations": (
        lambda m, x: sum(getattr(m, f)(x).sum() for f in ("relu", "silu", "sigmoid", "tanh", "erf")),
        (A,),
        0,
    ),
    "statistics": (lambda m, x: m.var(x) + m.std(x, 0).sum() + x.mean(1).prod() + m.abs(x).max(), (A,), 0),
    "cumsum": (lambda m, x: (m.cumsum(x, 1) ** 2).sum() + m.cumsum(x).max(), (A,), 0),
    "einsum": (
        lambda m, x, y: (m.einsum("ij,jk,ij->ik", x, y, x) ** 2).sum() + m.einsum("ij,ij", x, x),
        (A, W),
        (0, 1),
    ),
    "diagonal": (lambda m, x: (m.diagonal(x, 1) ** 2).sum() + m.trace(x) + m.triu(x).sum(), (A,), 0),
    "powers": (lambda m, x: (x**3 + m.abs(x) ** 1.5 + 2.0**x + 1 / x**2).sum(), (A,), 0),
    "broadcast": (lambda m, x, v: (x * v + v[:, None][:4] / (x[0] ** 2 + 1)).sum() ** 2, (A, V), (0, 1)),
    "one argument twice": (lambda m, x: m.grad(lambda a, b: (a * a * b).sum(), (0, 1))(x, x)[1].sum(), (A,), 0),
    "seen from outside": (lambda m, x: m.grad(lambda a: (a * x).sum())(x).sum(), (A,), 0),
    "unused": (lambda m, x, y: (x * 2).sum(), (A, B), (0, 1)),
    "integers on the way": (lambda m, x: (x * m.argmax(x, 1, keepdims=True)).sum() + m.one_hot(IDX, 6).sum(), (A,), 0),
    "min max": (lambda m, x, y: (m.maximum(x, y) * m.minimum(x, 0.3) + m.clip(x, -1, 1)).sum(), (A, B), (0, 1)),
    "inverses": (
        lambda m, x: sum(getattr(m, f)(x).sum() for f in ("arcsinh", "arctan", "sinh", "cosh")),
        (np.array([0.0, -0.0, 0.5, -3.0, 60.0, -88.5], np.float32),),
        0,
    ),
    "hypot": (lambda m, x, y: (m.arctan2(x, y) + m.hypot(x, y) + m.logaddexp(x, y)).sum(), (A, B), (0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_like_jax(name: str) -> None:
    function, arguments, argnums = CASES[name]
    mine = run(lambda *xs: value_and_grad(lambda *ys: function(MINE, *ys), argnums)(*xs), *arguments)
    on_device = jax.tree.map(jnp.asarray, arguments)
    theirs = jax.jit(jax.value_and_grad(lambda *ys: function(THEIRS, *ys), argnums))(*on_device)
    assert_like_jax(mine, theirs, terms=400)


def test_more_results() -> None:
    def f(x: Any) -> Any:
        return (x**2).sum(), {"twice": x * 2}

    value, aux = run(grad(f, has_aux=True), A)
    assert_like_jax((value, aux), jax.grad(f, has_aux=True)(jnp.asarray(A)), terms=4)
    assert_like_jax(
        run(value_and_grad(f, has_aux=True), A), jax.value_and_grad(f, has_aux=True)(jnp.asarray(A)), terms=64
    )


def test_a_function_of_an_outer_value_is_differentiated_by_the_outer_gradient_alone() -> None:
    """d/dw of (d/da of a*a*w at a = w) = d/dw 2*w*w."""
    found = run(grad(lambda w: grad(lambda a: a * a * w)(w)), np.float32(3))
    assert found == np.float32(12)


def test_low_precision_keeps_its_dtype() -> None:
    made = traced(grad(lambda x: gnp.mean(gnp.softmax(x) * 2)), TensorType("bf16", (4, 6)))
    assert made.program.outputs == (TensorType("bf16", (4, 6)),)


def test_what_needs_no_gradient_gets_none() -> None:
    """The forward part of a product with a constant is not pulled back to the constant."""
    made = trace(grad(lambda x: gnp.exp(gnp.matmul(B, W)).sum() * x), TensorType("f32", ()))
    assert sum(n.op.name == "dot_general" for n in made.program.body.nodes) == 1


def test_a_loop_body_is_differentiated_once() -> None:
    """Cost of tracing must not double with each level of nesting."""

    def deep(x: Any, levels: int) -> Any:
        return x if not levels else fori_loop(0, 2, lambda i, c: gnp.sin(deep(c, levels - 1)), x)

    sizes = [
        sum(1 for _ in trace(grad(lambda x, n=n: deep(x, n)), TensorType("f32", ())).program.body.walk())
        for n in (2, 4)
    ]
    assert sizes[1] < 8 * sizes[0]
