"""JAX programs of per-device code on eight devices: what people write with shard_map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Made = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: dict[str, Callable[[], Made]] = {}


def mesh(**axes: int) -> Mesh:
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def program(make: Callable[[], Made]) -> Callable[[], Made]:
    """Register a program under its name."""
    PROGRAMS[make.__name__] = make
    return make


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + len(shape)).standard_normal(shape).astype("f4")


def ring(n: int) -> list[tuple[int, int]]:
    return [(k, (k + 1) % n) for k in range(n)]


@program
def ring_matmul() -> Made:
    """x @ w with w's rows gathered step by step while products are under way."""
    m = mesh(x=8)

    @partial(jax.shard_map, mesh=m, in_specs=(P("x"), P("x")), out_specs=P("x"))
    def f(x: Any, w: Any) -> Any:
        me, rows = lax.axis_index("x"), w.shape[0]

        def step(i: Any, carry: Any) -> Any:
            total, held = carry
            at = (me - i) % 8 * rows
            total += lax.dynamic_slice_in_dim(x, at, rows, 1) @ held
            return total, lax.ppermute(held, "x", ring(8))

        zeros = lax.pcast(jnp.zeros((x.shape[0], w.shape[1])), ("x",), to="varying")
        return lax.fori_loop(0, 8, step, (zeros, w))[0]

    return f, (normal(8, 16), normal(16, 4))


@program
def fsdp_step() -> Made:
    """Weights gathered for use; their gradients scattered by the gather's own transpose."""
    m = mesh(data=4, model=2)

    def layer(x: Any, w: Any, v: Any) -> Any:
        h = jnp.tanh(x @ lax.all_gather(w, "data", axis=0, tiled=True))
        return lax.psum(h @ lax.all_gather(v, "data", axis=1, tiled=True), "model")

    specs = (P("data"), P("data", "model"), P("model", "data"))
    f = jax.shard_map(layer, mesh=m, in_specs=specs, out_specs=P("data"))

    def step(x: Any, w: Any, v: Any, y: Any) -> Any:
        loss, slopes = jax.value_and_grad(lambda p: jnp.mean((f(x, *p) - y) ** 2))((w, v))
        return loss, jax.tree.map(lambda p, g: p - 0.1 * g, (w, v), slopes)

    return step, (normal(8, 8), normal(8, 6), normal(6, 8), normal(8, 8, seed=9))


@program
def scattered_sums() -> Made:
    m = mesh(a=2, b=4)

    @partial(jax.shard_map, mesh=m, in_specs=(P("a", "b"), P("b")), out_specs=(P("a", "b"), P(None, ("a", "b"))))
    def f(x: Any, w: Any) -> Any:
        y = x @ w
        return lax.psum_scatter(y, "b", scatter_dimension=1, tiled=True), lax.psum_scatter(
            y, ("a", "b"), scatter_dimension=1, tiled=True
        )

    return f, (normal(4, 8), normal(8, 16))


@program
def untiled() -> Made:
    """Collectives that make and take a dimension of their own."""
    m = mesh(a=2, b=4)

    @partial(jax.shard_map, mesh=m, in_specs=P("a", "b"), out_specs=(P("a", None, "b"), P(("a", "b")), P(("a", "b"))))
    def f(x: Any) -> Any:
        stacked = lax.all_gather(x, "b", axis=1)
        return (
            stacked,
            lax.psum_scatter(stacked[:, :, 0] * 1.0, "b", scatter_dimension=1),
            lax.all_to_all(stacked[:, :, :1].transpose(1, 0, 2), "b", 0, 0),
        )

    return f, (normal(4, 8),)


@program
def experts() -> Made:
    """Tokens dispatched to experts on other devices and back, top-1 with a capacity."""
    m = mesh(x=4)

    @partial(jax.shard_map, mesh=m, in_specs=(P("x"), P(), P("x")), out_specs=P("x"))
    def f(tokens: Any, router: Any, weights: Any) -> Any:
        scores = jax.nn.softmax(tokens @ router)
        expert = jnp.argmax(scores, axis=-1)
        place = jnp.cumsum(jax.nn.one_hot(expert, 4, dtype=jnp.int32), axis=0)[jnp.arange(tokens.shape[0]), expert] - 1
        dispatch = jax.nn.one_hot(expert, 4)[:, :, None] * jax.nn.one_hot(place, 3)[:, None, :]
        sent = jnp.einsum("tec,td->ecd", dispatch, tokens)
        got = lax.all_to_all(sent, "x", split_axis=0, concat_axis=1, tiled=True)
        done = jnp.tanh(jnp.einsum("ecd,edf->ecf", got, weights))
        back = lax.all_to_all(done, "x", split_axis=1, concat_axis=0, tiled=True)
        return jnp.einsum("tec,ecf->tf", dispatch, back) * jnp.max(scores, axis=-1, keepdims=True)

    return f, (normal(16, 6), normal(6, 4, seed=4), normal(4, 6, 6))


@program
def ring_attention() -> Made:
    """Keys and values travel round; softmax is put together as they pass."""
    m = mesh(data=2, seq=4)

    @partial(jax.shard_map, mesh=m, in_specs=(P("data", "seq"),) * 3, out_specs=P("data", "seq"), check_vma=False)
    def attend(q: Any, k: Any, v: Any) -> Any:
        def step(_: Any, carry: Any) -> Any:
            out, total, top, k, v = carry
            scores = jnp.einsum("bqd,bkd->bqk", q, k)
            new = jnp.maximum(top, scores.max(-1))
            weights, scale = jnp.exp(scores - new[..., None]), jnp.exp(top - new)
            out = out * scale[..., None] + jnp.einsum("bqk,bkd->bqd", weights, v)
            total = total * scale + weights.sum(-1)
            k, v = (lax.ppermute(t, "seq", ring(4)) for t in (k, v))
            return out, total, new, k, v

        first = (jnp.zeros_like(q), jnp.zeros(q.shape[:2]), jnp.full(q.shape[:2], -jnp.inf), k, v)
        out, total, *_ = lax.fori_loop(0, 4, step, first)
        return out / total[..., None]

    return attend, tuple(normal(2, 8, 4, seed=s) for s in range(3))


@program
def ring_attention_gradient() -> Made:
    attend, arrays = ring_attention()
    return jax.grad(lambda *a: jnp.sum(jnp.sin(attend(*a))), argnums=(0, 1, 2)), arrays


@program
def pipeline() -> Made:
    """Microbatches through stages, each with its own weights, by a shift in a scan; and its gradient."""
    m = mesh(stage=4)

    @partial(jax.shard_map, mesh=m, in_specs=(P("stage"), P()), out_specs=P("stage"), check_vma=False)
    def run(w: Any, micro: Any) -> Any:
        me = lax.axis_index("stage")

        def tick(state: Any, t: Any) -> Any:
            fed = jnp.where(me == 0, micro[jnp.minimum(t, 4)], state)
            done = jnp.tanh(fed @ w[0])
            return lax.ppermute(done, "stage", [(0, 1), (1, 2), (2, 3)]), done

        _, outs = lax.scan(tick, jnp.zeros_like(micro[0]), jnp.arange(8))
        return outs[3:][None]

    def loss(w: Any, micro: Any) -> Any:
        return jnp.mean(run(w, micro)[-1] ** 2)

    return jax.value_and_grad(loss), (normal(4, 5, 5), normal(5, 3, 5, seed=2))


@program
def means_and_extremes() -> Made:
    m = mesh(a=2, b=2, c=2)

    @partial(jax.shard_map, mesh=m, in_specs=P("a", ("b", "c")), out_specs=(P("a"), P(None, "c"), P(), P("a"), P("a")))
    def f(x: Any) -> Any:
        whole = lax.pmean(x, ("b", "c"))
        most = lax.pmax(x, ("a", "b"))
        least = lax.pmin(x, ("a", "b", "c"))
        size = lax.psum(1, "c") * lax.axis_size("b")
        return whole, most, least, lax.psum(x * size, ("c", "b")), lax.psum(x > 0, ("b", "c"))

    return f, (normal(4, 8),)


@program
def numbers() -> Made:
    """Arithmetic on a device's own numbers, along one axis and several."""
    m = mesh(a=2, b=4)

    @partial(jax.shard_map, mesh=m, in_specs=P("a", "b"), out_specs=P("a", "b"))
    def f(x: Any) -> Any:
        i, j, k = lax.axis_index("a"), lax.axis_index("b"), lax.axis_index(("b", "a"))
        table = jnp.arange(8.0)
        return x * (i + 1) + j * 10 + table[k] + jnp.where(k % 3 == 0, 100, 0)

    return f, (normal(4, 8),)


@program
def permutes() -> Made:
    """Along one axis, along two, to some only, and the way back."""
    m = mesh(a=2, b=4)

    @partial(jax.shard_map, mesh=m, in_specs=P("a", "b"), out_specs=(P("a", "b"),) * 4)
    def f(x: Any) -> Any:
        both = [(k, (k * 3 + 2) % 8) for k in range(8)]
        return (
            lax.ppermute(x, "b", [(s, d) for d, s in ring(4)]),
            lax.ppermute(x, ("a", "b"), both),
            lax.ppermute(x, ("b", "a"), [(0, 7), (7, 3)]),
            lax.pshuffle(x, "b", [2, 0, 3, 1]),
        )

    return f, (normal(4, 8),)


@program
def all_to_alls() -> Made:
    m = mesh(a=2, b=4)

    @partial(jax.shard_map, mesh=m, in_specs=P("a", "b"), out_specs=(P("a", "b"), P(("b", "a")), P(None, ("a", "b"))))
    def f(x: Any) -> Any:
        return (
            lax.all_to_all(x, "b", 0, 1, tiled=True),
            lax.all_to_all(x, ("b", "a"), 0, 0, tiled=True),
            lax.all_to_all(x, "a", 0, 0, tiled=True),
        )

    return f, (normal(16, 8),)


@program
def automatic_around() -> Made:
    """Annotated whole-array code before and after, per-device code between, twice."""
    m = mesh(data=2, model=4)
    held = NamedSharding(m, P("data", "model"))
    f = jax.shard_map(
        lambda x, w: lax.psum(x @ w, "model"), mesh=m, in_specs=(P("data", "model"), P("model")), out_specs=P("data")
    )

    def run(x: Any, w: Any, v: Any) -> Any:
        x = lax.with_sharding_constraint(jnp.sin(x), held)
        y = jax.nn.gelu(f(x, w)) @ v
        return f(lax.with_sharding_constraint(y, held), w).sum(0), y

    return run, (normal(4, 8), normal(8, 6), normal(6, 8, seed=5))


@program
def partly_manual() -> Made:
    """Over `data` by hand, over `model` by annotations inside."""
    m = mesh(data=2, model=4)

    @partial(jax.shard_map, mesh=m, in_specs=(P("data"), P()), out_specs=(P(), P("data")), axis_names={"data"})
    def f(x: Any, w: Any) -> Any:
        w = lax.with_sharding_constraint(w, P(None, "model"))
        h = lax.with_sharding_constraint(jnp.tanh(x @ w), P(None, "model"))
        return lax.psum(h, "data"), h @ w.T

    return f, (normal(4, 8), normal(8, 12))


@program
def partly_manual_gradient() -> Made:
    f, arrays = partly_manual()

    def loss(x: Any, w: Any) -> Any:
        total, rows = f(x, w)
        return jnp.sum(jnp.sin(total)) + jnp.sum(rows**2)

    return jax.jit(jax.grad(loss, argnums=(0, 1))), arrays


@program
def nested() -> Made:
    m = mesh(a=2, b=4)

    def outer(x: Any, w: Any) -> Any:
        def inner(y: Any, w: Any) -> Any:
            return lax.psum(y @ w, "b") + lax.axis_index("b") * 0.0 + lax.psum(y.sum(), ("b",))

        held = jax.shard_map(inner, in_specs=(P(None, "b"), P("b")), out_specs=P(), axis_names={"b"}, check_vma=False)
        return lax.psum(held(x, w), "a"), jnp.tanh(held(x, w))

    f = jax.shard_map(outer, mesh=m, in_specs=(P("a"), P()), out_specs=(P(), P("a")), axis_names={"a"}, check_vma=False)
    return f, (normal(4, 8), normal(8, 6))


@program
def loops_around() -> Made:
    """shard_map within a scan and a branch."""
    m = mesh(a=2, b=4)
    f = jax.shard_map(
        lambda x: lax.ppermute(x, "b", ring(4)) + lax.pmax(x, "a"), mesh=m, in_specs=P("a", "b"), out_specs=P("a", "b")
    )

    def run(x: Any) -> Any:
        last, sums = lax.scan(lambda c, _: (f(jnp.sin(c)), c.sum()), x, length=3)
        return lax.cond(sums[0] > 0, f, lambda c: c, last), sums

    return run, (normal(4, 8),)


@program
def own_ways() -> Made:
    """Devices that take branches, and rounds of loops, of their own."""
    m = mesh(a=2, b=4)

    @partial(jax.shard_map, mesh=m, in_specs=P("a", "b"), out_specs=(P("a", "b"),) * 3)
    def f(x: Any) -> Any:
        me = lax.axis_index("b")
        chosen = lax.switch(me % 3, [jnp.sin, jnp.cos, lambda y: y * y], x)
        grown = lax.while_loop(lambda y: jnp.abs(y).sum() < 50.0, lambda y: y * 1.5, x)
        first = lax.cond(lax.axis_index("a") == 0, lambda y: lax.psum(y, "b") + 0 * y, lambda y: -y, x)
        return chosen, grown, first

    return f, (normal(4, 8),)


@program
def types() -> Made:
    """Integers, bools, bf16, halves and complex numbers."""
    m = mesh(a=2, b=2)

    @partial(jax.shard_map, mesh=m, in_specs=P("a", "b"), out_specs=P("a", "b"))
    def f(x: Any) -> Any:
        whole, half = (x * 100).astype(jnp.int32), x.astype(jnp.bfloat16)
        return {
            "i": lax.psum(whole, "a"),
            "u": lax.pmax(whole.astype(jnp.uint8), "b"),
            "h": lax.psum(half, "b"),
            "g": lax.all_gather(x.astype(jnp.float16), "b", axis=1, tiled=True)[:, :4],
            "c": lax.psum(x + 1j * x, ("a", "b")),
            "t": lax.ppermute(x > 0, "a", [(0, 1)]),
        }

    return f, (normal(4, 8),)


@program
def gradient_without_vma() -> Made:
    m = mesh(a=2, b=4)

    def body(x: Any, w: Any) -> Any:
        h = lax.all_gather(jnp.tanh(x @ w), "b", axis=1, tiled=True)
        return lax.psum_scatter(lax.pmean(h, "a"), "b", scatter_dimension=1, tiled=True) * lax.axis_index("b")

    f = jax.shard_map(body, mesh=m, in_specs=(P("a"), P(None, "b")), out_specs=P("a", "b"), check_vma=False)
    return jax.grad(lambda x, w: jnp.sum(jnp.sin(f(x, w))), argnums=(0, 1)), (normal(4, 6), normal(6, 8))
