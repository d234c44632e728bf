"""Programs written in JAX, each with arguments: what people write, and each of the forms in which JAX lowers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True, slots=True)
class Case:
    """A function and its arguments; `dtype` is the coarsest that takes part, `terms` the length of its sums."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    dtype: Any = None
    terms: int = 16


CASES: list[Case] = []
_RNG = np.random.default_rng(7)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _positive(n: int) -> np.ndarray:
    a = _floats(n, n)
    return a @ a.T + n * np.eye(n, dtype=np.float32)


def _case(name: str, function: Callable[..., Any], *arguments: Any, dtype: Any = None) -> None:
    CASES.append(Case(name, function, arguments, dtype))


KEY = np.array([1, 2], np.uint32)
X = _floats(4, 6)

# -- models ------------------------------------------------------------------------------------------------------------


def mlp(params: Any, x: Any) -> Any:
    for w, b in params:
        x = jax.nn.relu(x @ w + b)
    return x


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def rnn(w: Any, state: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = jnp.tanh(c @ w + x)
        return c, c.sum()

    return lax.scan(step, state, xs)


def conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (2, 2), [(1, 1), (0, 1)], rhs_dilation=(1, 2))


def max_pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


PARAMS = [(_floats(6, 8), _floats(8)), (_floats(8, 4), _floats(4))]
HEADS = [_floats(2, 3, 2, 4) for _ in range(3)]
RNN = (_floats(4, 4) * 0.3, _floats(2, 4), _floats(5, 2, 4))
IMAGES = _floats(2, 3, 8, 8), _floats(4, 3, 3, 3)
_case("mlp", mlp, PARAMS, _floats(5, 6))
_case("mlp_gradient", jax.grad(lambda p, x: jnp.sum(mlp(p, x) ** 2)), PARAMS, _floats(5, 6))
_case("attention", attention, *HEADS)
_case("attention_gradient", jax.grad(lambda *a: jnp.sum(attention(*a) ** 2), (0, 1, 2)), *HEADS)
_case("rnn", rnn, *RNN)
_case("rnn_gradient", jax.grad(lambda *a: jnp.sum(rnn(*a)[1] ** 2), (0, 1)), *RNN)
_case("embedding", lambda t, i: t[i], _floats(7, 3), np.array([[1, 2], [6, 0]]))
_case("embedding_gradient", jax.grad(lambda t, i: jnp.sum(t[i] ** 3)), _floats(8, 4), np.array([[1, 2], [6, 1]]))
_case("conv", conv, *IMAGES)
_case("conv_gradient", jax.grad(lambda *a: jnp.sum(conv(*a) ** 2), (0, 1)), *IMAGES)
_case("conv_groups", lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=2),
      _floats(2, 4, 8), _floats(6, 2, 3))  # fmt: skip
_case("max_pool", max_pool, _floats(1, 5, 6, 2))
_case("max_pool_gradient", jax.grad(lambda x: jnp.sum(max_pool(x) ** 2)), _floats(1, 5, 6, 2))
_case("layer_norm", lambda x, g: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * g,
      X, _floats(6))  # fmt: skip
_case("checkpoint", jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x))), _floats(4))
_case("bf16", lambda x, w: x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16) + jnp.array([1.0, 2, 3], jnp.bfloat16),
      X, _floats(6, 3), dtype=jnp.bfloat16)  # fmt: skip

# -- reductions and order ----------------------------------------------------------------------------------------------

_case("softmax", jax.nn.softmax, X)
_case("logsumexp", jax.nn.logsumexp, X)
_case("cumsum", lambda x: jnp.cumsum(x, 1), X)
_case("cumprod_reverse", lambda x: lax.cumprod(x, 0, reverse=True), X)
_case("cummax", lambda x: lax.cummax(x, 1), X)
_case("argmax", lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), X)
_case("reductions", lambda x: (x.prod(1), x.max(), x.min(0), jnp.all(x > 0), jnp.any(x > 0, 1)), X)
_case(
    "reduce_init",
    lambda x: lax.reduce(x, np.int32(5), lax.bitwise_xor, (1,)),
    np.arange(12, dtype=np.int32).reshape(3, 4),
)
_case(
    "reduce_two",
    lambda x: lax.reduce((x, -x), (0.5, 1.0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,)),
    X,
)
_case("reduce_region", lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + 0.0 * a, (0,)), _floats(3, 1))
_case(
    "window_sum", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "VALID"), _floats(1, 5, 6, 2)
)
_case("sort", lambda x: jnp.sort(x, 1), X)
_case("argsort", lambda x: jnp.argsort(x, 0), X)
_case("sort_keys", lambda a, b: lax.sort((a, b), num_keys=2), np.array([2, 1, 2, 1]), _floats(4))
_case("top_k", lambda x: lax.top_k(x, 2), X)
_case("approximate_top_k", lambda x: lax.approx_max_k(x, 3), _floats(2, 9))
_case("median", lambda x: jnp.median(x, 1), _floats(3, 5))
_case("search", lambda x: jnp.searchsorted(x, jnp.array([0.1, 0.5])), np.sort(_floats(9)))
_case("associative_scan", lambda x: lax.associative_scan(jnp.add, x), _floats(7))

# -- control flow ------------------------------------------------------------------------------------------------------

_case(
    "while",
    lambda x: lax.while_loop(lambda c: jnp.sum(c[1]) < 50, lambda c: (c[0] + 1, c[1] * 1.5), (0, jnp.abs(x))),
    X,
)
_case("fori", lambda x: lax.fori_loop(0, 5, lambda i, c: c * 1.1 + i, x), X)
_case("cond", lambda p, x: lax.cond(p > 1, lambda: x * 2, lambda: x + 1), np.int32(2), X)
_case("switch", lambda p, x, y: lax.switch(p, [lambda z: z * 2 + y, lambda z: z + 1, lambda z: z - y], x),
      np.int32(2), _floats(4), _floats(4))  # fmt: skip


def _nested(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return lax.cond(i % 2 == 0, lambda: c + x[i], lambda: c * x[0])

    return lax.fori_loop(0, 3, step, 1.0)


_case("nested", _nested, _floats(3))

# -- indexing ----------------------------------------------------------------------------------------------------------

_case("where", lambda x: jnp.where(x > 0, x, 0.1 * x), X)
_case("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), X, np.int32(1))
_case("dynamic_update", lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i, i)), X, np.int32(3))
_case("at_set", lambda x, i: x.at[i].set(0.0), _floats(5, 3), np.array([1, 3]))
_case("at_add", lambda x, i, u: x.at[i, 1:].add(u), _floats(5, 3), np.array([1, 1]), _floats(2, 2))
_case("at_max", lambda x, i: x.at[i].max(0.3), _floats(5), np.array([1, 4]))
_case("at_multiply", lambda x, i: x.at[i].multiply(2.0), _floats(5), np.array([1, 1]))
_case("at_subtract", lambda x, i: x.at[i].subtract(2.0), _floats(5), np.array([1, 1]))
_case("at_apply", lambda x, i: x.at[i].apply(jnp.sin), _floats(5, 2), np.array([1, 4, 1]))
_case("at_get", lambda x, i: x.at[i].get(mode="fill", fill_value=7.0), _floats(5), np.array([1, 9, -1]))
_case("take_along", lambda x, i: jnp.take_along_axis(x, i, 1), _floats(4, 5), np.array([[1], [0], [4], [2]]))
_case("strides", lambda x: x[::2, ::-1], _floats(5, 4))
_case("pad", lambda x: lax.pad(x, 0.5, ((1, -1, 1), (0, 2, 0))), _floats(3, 4))
_case("one_hot", lambda i: jax.nn.one_hot(i, 5), np.array([1, 4, 9]))
_case("triangles", lambda x: jnp.tril(x) + jnp.triu(x, 1) * 2, _floats(4, 4))
_case("count", lambda x: jnp.bincount(x, length=5), np.array([1, 2, 2, 4]))

# -- numbers -----------------------------------------------------------------------------------------------------------

_case("normal", lambda k: jax.random.normal(jax.random.wrap_key_data(k), (3, 4)), KEY)
_case("permutation", lambda k: jax.random.permutation(jax.random.wrap_key_data(k), 9), KEY)
_case("cholesky", jnp.linalg.cholesky, _positive(4))
_case("solve", jnp.linalg.solve, _positive(4), _floats(4, 2))
_case("determinant", jnp.linalg.det, _positive(4))
_case("qr", jnp.linalg.qr, _floats(5, 3))
_case("singular_values", lambda a: jnp.linalg.svd(a, compute_uv=False), _floats(5, 3))
_case("eigenvalues", jnp.linalg.eigvalsh, _positive(4))
_case("fft", lambda x: (jnp.fft.irfft(jnp.fft.rfft(x) * 2), jnp.fft.fft2(x)), _floats(3, 8))
_case("special", lambda x: (jax.scipy.special.erf(x), jax.scipy.special.erfc(x), jnp.sinh(x), jnp.arctan(x)), X)
_case("activations", lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.softplus(x)), X)
_case("int8", lambda x: (x.astype(jnp.int8) << 2) | 3, X * 5)
_case("complex", lambda x: jnp.abs((x + 1j * x) * jnp.array([1 + 2j, 3 - 1j], jnp.complex64)), _floats(3, 2))
_case("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), _floats(7))
_case("vmap", jax.vmap(lambda a, b: a @ b + jnp.sum(a)), _floats(3, 4, 5), _floats(3, 5))
_case(
    "batched_dot", lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))), _floats(3, 4, 5), _floats(3, 5, 2)
)

_case("mulhi", lax.mulhi, np.array([1 << 30, -7], np.int32), np.array([12345, 1 << 29], np.int32))
_case("ragged_dot", lax.ragged_dot, _floats(7, 3), _floats(2, 3, 4), np.array([5, 1], np.int32))

# -- nesting -----------------------------------------------------------------------------------------------------------

_case("dict", lambda d: {"b": d["a"] + 1, "a": (d["c"][0], None)}, {"c": [_floats(2)], "a": _floats(3)})
_case("unused", lambda x, y, z: x - z, _floats(2), _floats(3), _floats(2))
