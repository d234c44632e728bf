"""A Transformer's training step from the real ops: forward, the pullback by the ops' own vjp hooks, Adam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops.annotate import SHARDING_CONSTRAINT
from gspmd.ops.dot import DOT_GENERAL
from gspmd.ops.elementwise import ADD, DIVIDE, EXPONENTIAL, MAXIMUM, MULTIPLY, RSQRT, SUBTRACT
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE, TRANSPOSE
from gspmd.ops.literal import full
from gspmd.ops.reduce import REDUCE


class Pull:
    """The least gradient builder: what `vjp` hooks need outside regions."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def zeros(self, type_: TensorType) -> Value:
        return full(self.builder, 0, "f32", type_.shape)

    def region_vjp(self, region: Region, wanted: Sequence[bool]) -> Region:
        raise AssertionError("no regions here")


def pullback(builder: Builder, loss: Value, wanted: Sequence[Value]) -> list[Value]:
    """The gradients of a scalar, appended to the program."""
    pull: Any = Pull(builder)
    gradients: dict[Value, Value] = {loss: full(builder, 1, "f32", ())}
    for node in reversed(list(builder.nodes)):
        cotangents = [gradients.get(v) for v in node.results]
        if node.op.vjp is None or all(c is None for c in cotangents):
            continue
        builder.loc = node.loc
        for v, g in zip(node.operands, node.op.vjp(pull, node, cotangents), strict=True):
            if g is not None:
                gradients[v] = ADD(builder, gradients[v], g) if v in gradients else g
    return [gradients[v] for v in wanted]


def dot(b: Builder, x: Value, w: Value) -> Value:
    """The last dim of x with the first of w."""
    return DOT_GENERAL(b, x, w, lhs_contract=(x.type.rank - 1,), rhs_contract=(0,))


def norm(b: Builder, x: Value, scale: Value) -> Value:
    """RMS normalisation over the last dim."""
    shape, last = x.type.shape, x.type.rank - 1
    mean = REDUCE(b, MULTIPLY(b, x, x), dims=(last,), monoid="add")
    inverse = RSQRT(b, MULTIPLY(b, mean, full(b, 1 / shape[-1], "f32", mean.type.shape)))
    wide = BROADCAST_IN_DIM(b, inverse, shape=ResultShape(shape), dims=tuple(range(last)))
    scales = BROADCAST_IN_DIM(b, scale, shape=ResultShape(shape), dims=(last,))
    return MULTIPLY(b, MULTIPLY(b, x, wide), scales)


def attention(b: Builder, x: Value, wq: Value, wk: Value, wv: Value, wo: Value) -> Value:
    """[B, S, M] with [M, N*D] weights and heads split off by reshape."""
    batch, seq, model = x.type.shape
    heads = model // 64

    def split(w: Value) -> Value:
        y = RESHAPE(b, dot(b, x, w), shape=ResultShape((batch, seq, heads, 64)))
        return TRANSPOSE(b, y, permutation=(0, 2, 1, 3))

    q, k, v = split(wq), split(wk), split(wv)
    scores = DOT_GENERAL(b, q, k, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(3,))
    top = REDUCE(b, scores, dims=(3,), monoid="max")
    weights = EXPONENTIAL(b, SUBTRACT(b, scores, _widen(b, top, scores)))
    total = REDUCE(b, weights, dims=(3,), monoid="add")
    weights = DIVIDE(b, weights, _widen(b, total, scores))
    out = DOT_GENERAL(b, weights, v, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(2,))
    merged = RESHAPE(b, TRANSPOSE(b, out, permutation=(0, 2, 1, 3)), shape=ResultShape((batch, seq, model)))
    return dot(b, merged, wo)


def _widen(b: Builder, x: Value, like: Value) -> Value:
    return BROADCAST_IN_DIM(b, x, shape=ResultShape(like.type.shape), dims=tuple(range(x.type.rank)))


def adam(b: Builder, w: Value, g: Value, m: Value, v: Value) -> list[Value]:
    """The new weight and moments."""
    const: Callable[[float], Value] = lambda c: full(b, c, "f32", w.type.shape)  # noqa: E731
    m = ADD(b, MULTIPLY(b, m, const(0.9)), MULTIPLY(b, g, const(0.1)))
    v = ADD(b, MULTIPLY(b, v, const(0.99)), MULTIPLY(b, MULTIPLY(b, g, g), const(0.01)))
    step = MULTIPLY(b, m, RSQRT(b, ADD(b, v, const(1e-8))))
    return [SUBTRACT(b, w, MULTIPLY(b, step, const(1e-3))), m, v]


def training_step(layers: int, mesh: Mesh, weights_at: dict[str, Sharding], x_at: Sharding | None) -> Program:
    """About 250 ops a layer; weights wq wk wv wo w1 w2 s1 s2 take the annotation of their name."""
    b = Builder(Location("transformer.py", 1))
    batch, seq, model, hidden = 32, 512, 1024, 4096
    x = b.param(TensorType("f32", (batch, seq, model), x_at), "x")
    square, wide, tall = (model, model), (model, hidden), (hidden, model)
    names = ("wq", "wk", "wv", "wo", "w1", "w2", "s1", "s2")
    sizes: list[tuple[int, ...]] = [square, square, square, square, wide, tall, (model,), (model,)]
    shapes = dict(zip(names, sizes, strict=True))
    params: list[list[Value]] = []
    for i in range(layers):
        b.loc = Location("transformer.py", 10 + i)
        w = {n: b.param(TensorType("f32", s, weights_at.get(n)), f"{n}_{i}") for n, s in shapes.items()}
        params.append(list(w.values()))
        x = ADD(b, x, attention(b, norm(b, x, w["s1"]), w["wq"], w["wk"], w["wv"], w["wo"]))
        h = dot(b, norm(b, x, w["s2"]), w["w1"])
        h = MAXIMUM(b, h, full(b, 0, "f32", h.type.shape))
        x = ADD(b, x, dot(b, h, w["w2"]))
        if x_at is not None:
            x = SHARDING_CONSTRAINT(b, x, sharding=x_at)
    loss = REDUCE(b, MULTIPLY(b, x, x), dims=(0, 1, 2), monoid="add")
    flat = [w for layer in params for w in layer]
    gradients = pullback(b, loss, flat)
    results: list[Value] = [loss]
    for w, g in zip(flat, gradients, strict=True):
        moments = [b.param(TensorType("f32", w.type.shape), f"{w.name}_{k}") for k in "mv"]
        results += adam(b, w, g, moments[0], moments[1])
    return Program.of("step", b.region(results), mesh)


MESH = Mesh({"data": 4, "model": 8})


def sharded_step(layers: int) -> Program:
    """Batch on data, hidden and heads on model (the paper's dense Transformer, variant b)."""
    at = Sharding.of
    column, row = at(MESH, None, "model"), at(MESH, "model", None)
    names = {"wq": column, "wk": column, "wv": column, "wo": row, "w1": column, "w2": row}
    return training_step(layers, MESH, names, at(MESH, "data", None, None))
