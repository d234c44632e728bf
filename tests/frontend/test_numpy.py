"""gspmd.numpy against jax.numpy: one function, written once, given either module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gspmd.numpy as gnp
from gspmd.kernels.closeness import compare
from tests.frontend.support import assert_like_jax, run

RANDOM = np.random.default_rng(7)
A = RANDOM.standard_normal((4, 6)).astype("f4")
B = RANDOM.standard_normal((4, 6)).astype("f4")
C = RANDOM.standard_normal((6, 3)).astype("f4")
D = RANDOM.standard_normal((2, 3, 4)).astype("f4")
POS = (np.abs(A) + 0.1).astype("f4")
UNIT = np.clip(A / 3, -0.9, 0.9).astype("f4")
I = RANDOM.integers(-9, 9, (4, 6)).astype("i4")  # noqa: E741
J = RANDOM.integers(1, 5, (4, 6)).astype("i4")
U = RANDOM.integers(0, 200, (4, 6)).astype("u1")
M = RANDOM.random((4, 6)) > 0.5
SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, 2.5, np.inf, -np.inf, np.nan], "f4")
TIES = np.array([[1, 3, 3, 0], [np.nan, 5, np.nan, 9], [-np.inf] * 4], "f4")
IDX = np.array([[0, 2], [-1, 1]], "i4")

Case = tuple[Callable[..., Any], tuple[Any, ...]]

UNARY = (
    "abs",
    "negative",
    "exp",
    "expm1",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "square",
    "floor",
    "ceil",
    "trunc",
    "round",
    "sign",
    "isnan",
    "isfinite",
    "isinf",
    "arctan",
    "arcsinh",
    "cbrt",
    "real",
    "imag",
    "conj",
    "exp2",
    "positive",
)
POSITIVE = ["log", "log1p", "log2", "log10", "sqrt", "reciprocal"]
BINARY = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "remainder",
    "floor_divide",
    "arctan2",
    "hypot",
    "logaddexp",
    "copysign",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
)
INTEGER = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "maximum",
    "minimum",
    "equal",
    "less",
)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    check(lambda m, x: getattr(m, name)(x), A, terms=16)


@pytest.mark.parametrize(
    "name", ["floor", "ceil", "trunc", "round", "sign", "abs", "isnan", "isinf", "isfinite", "signbit"]
)
def test_special_values(name: str) -> None:
    check(lambda m, x: getattr(m, name)(x), SPECIAL)


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 8.5, -9, 100, 2e4, -3e4, np.inf, -np.inf, np.nan], np.float32)
INVERSES = ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "sinh", "cosh")


@pytest.mark.parametrize("name", INVERSES)
def test_edges(name: str) -> None:
    check(lambda m, x: getattr(m, name)(x), EDGES, terms=16)
    check(lambda m, x: getattr(m, name)(x), (A + 1j * B).astype(np.complex64), terms=64)


@pytest.mark.parametrize("name", ["remainder", "floor_divide", "hypot", "arctan2"])
def test_edges_of_two(name: str) -> None:
    """NumPy's values, and the array API's signs of zeros."""
    x, y = (np.ravel(v) for v in np.meshgrid(EDGES, EDGES))
    found = run(lambda a, b: getattr(gnp, name)(a, b), x, y)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x, y)
    verdict = compare(found, wanted, terms=16)
    assert verdict.ok, verdict.message
    assert (np.signbit(found) == np.signbit(wanted))[wanted == 0].all()


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_of_positive(name: str) -> None:
    check(lambda m, x: getattr(m, name)(x), POS, terms=16)


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arctanh"])
def test_unary_of_small(name: str) -> None:
    check(lambda m, x: getattr(m, name)(x), UNIT, terms=64)


@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "abs", "sign", "floor", "negative", "square", "tanh"])
def test_unary_of_integers(name: str) -> None:
    check(lambda m, x: getattr(m, name)(x), J, terms=16)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    check(lambda m, x, y: getattr(m, name)(x, y), A, B, terms=16)


@pytest.mark.parametrize("name", INTEGER)
def test_integers(name: str) -> None:
    check(lambda m, x, y: getattr(m, name)(x, y), I, J)
    check(lambda m, x, y: getattr(m, name)(x, y), I, -J)


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda m, x, y: x + y,
    "r+": lambda m, x, y: 2 + x,
    "-": lambda m, x, y: x - y,
    "r-": lambda m, x, y: 1.5 - x,
    "*": lambda m, x, y: x * y * 3,
    "/": lambda m, x, y: x / y,
    "r/": lambda m, x, y: 2 / x,
    "//": lambda m, x, y: x // y,
    "%": lambda m, x, y: x % y,
    "**2": lambda m, x, y: x**2,
    "**0": lambda m, x, y: x**0,
    "**7": lambda m, x, y: x**7,
    "**-2": lambda m, x, y: x**-2,
    "**0.5": lambda m, x, y: abs(x) ** 0.5,
    "r**": lambda m, x, y: 2.0**x,
    "@": lambda m, x, y: x @ y.T,
    "cmp": lambda m, x, y: (x > y) & ~(x <= 0) | (y == 0) ^ (y != 1),
    "neg": lambda m, x, y: -x + (+y),
    "numpy": lambda m, x, y: np.ones((4, 1), "f4") * x,
    "f64 data": lambda m, x, y: x * np.arange(6.0),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    check(OPERATORS[name], A, B, terms=32)


def test_bits() -> None:
    check(lambda m, x, y: [x & y, x | y, x ^ y, ~x, x << 2, x >> 1], I, J)
    check(lambda m, x: [x >> 1, ~x, x & 3], U)


REDUCTIONS: dict[str, Case] = {
    "sum": (lambda m, x: [m.sum(x), m.sum(x, 0), m.sum(x, (0, 1)), m.sum(x, -1, keepdims=True)], (A,)),
    "sum i8": (lambda m, x: m.sum(x, axis=0), (I,)),
    "sum bool": (lambda m, x: [m.sum(x), x.sum(1)], (M,)),
    "prod": (lambda m, x: [m.prod(x), m.prod(x, 1)], (A,)),
    "max": (lambda m, x: [m.max(x), x.max(0), m.min(x, 1), x.min(axis=1, keepdims=True)], (A,)),
    "max nan": (lambda m, x: [m.max(x, 1), m.min(x, 1)], (TIES,)),
    "bools": (lambda m, x: [m.all(x), m.any(x, 0), m.max(x, 0), m.min(x, 1)], (M,)),
    "all": (lambda m, x: [m.all(x > 0, axis=1), m.any(x, axis=(0, 1))], (A,)),
    "mean": (lambda m, x: [m.mean(x), m.mean(x, 0), x.mean((0, 1), keepdims=True)], (A,)),
    "mean int": (lambda m, x: [m.mean(x), m.mean(x, 1)], (I,)),
    "var": (lambda m, x: [m.var(x), m.std(x, 1), m.var(x, 0, correction=1)], (A,)),
    "argmax": (lambda m, x: [m.argmax(x), m.argmax(x, 0), m.argmax(x, 1), m.argmin(x, -1, keepdims=True)], (A,)),
    "argmax ties": (lambda m, x: [m.argmax(x, 1), m.argmin(x, 1)], (TIES,)),
    "argmax int": (lambda m, x: [m.argmax(x, 1), m.argmin(x, 0)], (I,)),
    "argmax bool": (lambda m, x: [m.argmax(x, 1), m.argmin(x, 0)], (M,)),
    "cumsum": (lambda m, x: [m.cumsum(x), m.cumsum(x, 0), m.cumsum(x, 1), m.cumprod(x, 1)], (A,)),
    "cumsum bool": (lambda m, x: m.cumsum(x, 1), (M,)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    function, arguments = REDUCTIONS[name]
    check(function, *arguments, terms=32)


SHAPES: dict[str, Case] = {
    "reshape": (lambda m, x: [m.reshape(x, (3, 8)), x.reshape(2, -1), x.reshape((-1,)), x.ravel()], (A,)),
    "transpose": (lambda m, x: [m.transpose(x), x.T, x.transpose(1, 0, 2), m.permute_dims(x, (2, 0, 1)), x.mT], (D,)),
    "axes": (lambda m, x: [m.moveaxis(x, 0, -1), m.swapaxes(x, 0, 2), m.moveaxis(x, (0, 2), (1, 0))], (D,)),
    "dims": (
        lambda m, x: [m.expand_dims(x, 1), m.expand_dims(x, (0, -1)), m.squeeze(x[None]), m.squeeze(x[None], 0)],
        (A,),
    ),
    "broadcast": (lambda m, x: [m.broadcast_to(x[:, :1], (5, 4, 6)), *m.broadcast_arrays(x, x[:1])], (A,)),
    "join": (
        lambda m, x, y: [m.concatenate([x, y]), m.concat([x, y], axis=1), m.stack([x, y]), m.stack([x, y], -1)],
        (A, B),
    ),
    "join dtypes": (lambda m, x, y: m.concatenate([x, y]), (A, I)),
    "concat none": (lambda m, x, y: m.concatenate([x, y], axis=None), (A, D)),
    "split": (lambda m, x: [*m.split(x, 3, axis=1), *m.split(x, [1, 3], axis=0)], (A,)),
    "flip": (lambda m, x: [m.flip(x), m.flip(x, 1), m.flip(x, (0, 1))], (A,)),
    "roll": (lambda m, x: [m.roll(x, 1), m.roll(x, -2, 1), m.roll(x, (1, 2), (0, 1)), m.roll(x, 9, 0)], (A,)),
    "tile": (
        lambda m, x: [m.tile(x, 2), m.tile(x, (2, 3)), m.tile(x, (2, 1, 1)), m.repeat(x, 2), m.repeat(x, 3, 1)],
        (A,),
    ),
    "repeat": (lambda m, x: m.repeat(x, np.array([1, 0, 2, 1]), 0), (A,)),
    "pad": (lambda m, x: [m.pad(x, 1), m.pad(x, (1, 2)), m.pad(x, ((0, 1), (2, 0)), constant_values=7)], (A,)),
    "triangles": (lambda m, x: [m.tril(x), m.triu(x, 1), m.tril(x, -1), m.triu(x, -2)], (D,)),
    "diagonal": (lambda m, x: [m.diagonal(x), m.diagonal(x, 1), m.diagonal(x, -2), m.trace(x), m.trace(x, 1)], (A,)),
    "diagonal of three": (lambda m, x: [m.diagonal(x, 0, 1, 2), m.diagonal(x, 1, 2, 0)], (D,)),
    "iteration": (lambda m, x: [row * 2 for row in x], (A,)),
    "astype": (lambda m, x: [x.astype("int32"), m.astype(x, np.float16), x.astype(bool)], (A,)),
    "ravel empty": (lambda m, x: m.ravel(x[:0]), (A,)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    function, arguments = SHAPES[name]
    check(function, *arguments)


INDEX: dict[str, Case] = {
    "numbers": (lambda m, x: [x[0], x[-1], x[1, 2], x[..., -1], x[0, :, 1]], (D,)),
    "slices": (lambda m, x: [x[1:], x[:, ::2], x[:, 3:0:-1], x[::-1], x[..., 1:-1], x[5:], x[:, -2:]], (D,)),
    "new dims": (lambda m, x: [x[None], x[:, None, 1], x[..., None], x[None, ..., 0, None]], (D,)),
    "arrays": (lambda m, x: [x[IDX % 2], x[:, IDX], x[..., IDX], x[0, IDX], x[:, :, np.array([0, 3])]], (D,)),
    "list": (lambda m, x: x[np.array([2, 0])], (A,)),
    "pairs": (lambda m, x: [x[IDX[0] % 2, IDX], x[:, IDX, IDX], x[IDX % 2, :, IDX], x[IDX % 2, IDX, 1]], (D,)),
    "mixed": (lambda m, x: [x[IDX % 2, 1:], x[1:, IDX, ::2], x[0, :, IDX], x[IDX % 2, None, IDX]], (D,)),
    "apart": (lambda m, x: [x[None][:, IDX % 2, :, IDX], x[None][:, 1, :, IDX], x[:, IDX, None, IDX]], (D,)),
    "mask": (lambda m, x: x[np.array([True, False, True, True])], (A,)),
    "traced": (lambda m, x, i: [x[i], x[:, i], x[i, i], x[i, :, i]], (D, IDX % 2)),
    "traced number": (lambda m, x, i: [x[i], x[:, i], x[1:, i, i], x[i, ..., None]], (D, np.int32(1))),
    "traced negative": (lambda m, x, i: [x[i], x[:, i]], (D, np.int32(-1))),
    "traced negatives": (lambda m, x, i: x[:, i], (D, IDX)),
    "take": (lambda m, x, i: [m.take(x, i), m.take(x, i, 1), m.take(x, np.array([1, 0]), axis=0)], (A, IDX)),
    "along": (lambda m, x: m.take_along_axis(x, m.argmax(x, 1, keepdims=True), 1), (A,)),
    "along 0": (lambda m, x, i: m.take_along_axis(x, i, 0), (A, J - 1)),
    "set": (lambda m, x: [x.at[1].set(5), x.at[:, 1:3].set(x[:, :2]), x.at[0, 0].set(7), x.at[...].set(1)], (A,)),
    "set strided": (lambda m, x: [x.at[::2].set(0), x.at[::-1, 1::2].set(x[:, :3]), x.at[3:0:-2, 0].set(9)], (A,)),
    "add": (
        lambda m, x: [x.at[1].add(5), x.at[IDX[:, 0]].add(1), x.at[:, IDX].add(2), x.at[np.array([1, 1])].add(3)],
        (A,),
    ),
    "more": (lambda m, x: [x.at[1].mul(2), x.at[IDX].max(0), x.at[:, 2].min(0), x.at[0, IDX].multiply(3)], (A,)),
    "part and arrays": (
        lambda m, x: [x.at[1:, IDX].set(0), x.at[IDX, ::2].add(1), x.at[IDX % 2, :, None].set(4)],
        (A,),
    ),
    "traced place": (lambda m, x, i: [x.at[i].set(0), x.at[:, i].add(x[:, 0]), x.at[i, i].max(9)], (A, np.int32(2))),
    "traced places": (lambda m, x, i: [x.at[i].add(1), x.at[:, i].set(0)], (A, IDX)),
    "get": (lambda m, x: x.at[1].get(), (A,)),
}


@pytest.mark.parametrize("name", INDEX)
def test_indexing(name: str) -> None:
    function, arguments = INDEX[name]
    check(function, *arguments)


def test_masked_updates() -> None:
    found = run(lambda x: [x.at[x > 0].set(0), x.at[x > 0].add(2), x.at[x[:, 0] > 0].max(0.5)], A)
    wanted = [np.where(A > 0, 0, A), np.where(A > 0, A + 2, A), np.where(A[:, :1] > 0, np.maximum(A, 0.5), A)]
    assert_like_jax(found, wanted)


PRODUCTS: dict[str, Case] = {
    "matmul": (lambda m, x, y: [x @ y, m.matmul(x, y), x[0] @ y, x @ y[:, 0], x[0] @ y[:, 0]], (A, C)),
    "batched": (lambda m, x, y: [x @ y, x[:, 0] @ y, x @ y[0], x[0] @ y, x[:1] @ y, x[:, 0, :] @ y], (D, D.mT.copy())),
    "wide": (lambda m, x, y: x[None] @ y[:, None], (D, D.mT.copy())),
    "dot": (lambda m, x, y: [m.dot(x, y), m.dot(x[0], y), m.dot(x, 2.0), m.vecdot(x, x), m.inner(x, x)], (A, C)),
    "tensordot": (lambda m, x: [m.tensordot(x, x, 3), m.tensordot(x, x, ([0, 2], [0, 2])), m.tensordot(x, x, 0)], (D,)),
    "outer": (lambda m, x: m.outer(x[0], x[1]), (A,)),
    "i32": (lambda m, x: x @ x.T, (I,)),
    "einsum": (
        lambda m, x, y: [
            m.einsum("ij,jk->ik", x, y),
            m.einsum("ij,jk", x, y),
            m.einsum("ij->ji", x),
            m.einsum("ij->", x),
            m.einsum("ij,ij->ij", x, x),
            m.einsum("ij,ij->i", x, x),
            m.einsum("ij,ji->j", x, x.T),
            m.einsum("ij,k->kij", x, y[0]),
            m.einsum("ij,kj->ki", x, x),
            m.einsum("ji", x),
        ],
        (A, C),
    ),
    "einsum diagonal": (
        lambda m, x: [
            m.einsum("ii", x),
            m.einsum("ii->i", x),
            m.einsum("ii,i->i", x, x[0]),
            m.einsum("ij,jj->i", x, x),
        ],
        (A[:, :4],),
    ),
    "einsum ellipsis": (
        lambda m, x: [
            m.einsum("...ij->...ji", x),
            m.einsum("...i,...i->...", x, x),
            m.einsum("b...,b...->...", x, x),
            m.einsum("...ij,kj->...ik", x, x[0]),
            m.einsum("...i->...", x),
            m.einsum("i...,i", x, x[:, 0, 0]),
        ],
        (D,),
    ),
    "einsum ones": (
        lambda m, x: [m.einsum("bij,bij->bi", x, x[:1]), m.einsum("...ij,...ij->...", x[:, :1], x[0])],
        (D,),
    ),
    "einsum many": (
        lambda m, x, y, z: [m.einsum("bli,ij,jk->blk", z, x, y), m.einsum("ij,jk,bli,b->k", x, y, z, z[:, 0, 0])],
        (A, C, D),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    function, arguments = PRODUCTS[name]
    check(function, *arguments, terms=200)


CREATION: dict[str, Callable[[Any], Any]] = {
    "filled": lambda m: [m.zeros((2, 3)), m.ones(4), m.full((2,), 7), m.full((2,), 7.5), m.zeros((), "int32")],
    "arange": lambda m: [m.arange(5), m.arange(2, 9, 3), m.arange(5.0), m.arange(5, 0, -2), m.arange(0, 1, 0.25)],
    "arange dtype": lambda m: [m.arange(4, dtype="float32"), m.arange(3, dtype="int8")],
    "linspace": lambda m: [m.linspace(0, 1, 5), m.linspace(-3, 7, 11), m.linspace(0, 1, 4, endpoint=False)],
    "eye": lambda m: [m.eye(3), m.eye(2, 4, 1), m.eye(3, k=-1, dtype="int32"), m.identity(2)],
    "asarray": lambda m: [m.asarray([1, 2]), m.asarray([[1.5], [2.5]]), m.array(3), m.asarray([1, 2], dtype="float32")],
}


@pytest.mark.parametrize("name", CREATION)
def test_creation(name: str) -> None:
    check(CREATION[name], terms=4)


def test_creation_from_arrays() -> None:
    check(lambda m, x: [m.zeros_like(x), m.ones_like(x, dtype="int32"), m.full_like(x, 3), m.asarray([x[0], x[1]])], A)


def test_choices() -> None:
    check(lambda m, x, y: [m.where(x > 0, x, y), m.where(x > 0, 1, 0), m.where(x[0] > 0, x, 0.0)], A, B)
    check(lambda m, x: [m.clip(x, -0.5, 0.5), x.clip(0), m.clip(x, None, 1), m.isclose(x, x + 1e-7)], A)
    check(lambda m, x: m.clip(x, -3, 3), I)


def test_numpy_functions_on_tracers() -> None:
    check(lambda m, x, y: [np.exp(x) if m is gnp else jnp.exp(x), np.add(x, y) if m is gnp else x + y], A, B, terms=16)


NN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (lambda x: gnp.softmax(x), lambda x: jax.nn.softmax(x)),
    "softmax 0": (lambda x: gnp.softmax(x, axis=0), lambda x: jax.nn.softmax(x, axis=0)),
    "log_softmax": (lambda x: gnp.log_softmax(x), lambda x: jax.nn.log_softmax(x)),
    "logsumexp": (lambda x: gnp.logsumexp(x * 100, 1), lambda x: jax.nn.logsumexp(x * 100, 1)),
    "relu": (lambda x: gnp.relu(x), lambda x: jax.nn.relu(x)),
    "gelu": (lambda x: gnp.gelu(x), lambda x: jax.nn.gelu(x)),
    "gelu erf": (lambda x: gnp.gelu(x, approximate=False), lambda x: jax.nn.gelu(x, approximate=False)),
    "silu": (lambda x: gnp.silu(x), lambda x: jax.nn.silu(x)),
    "sigmoid": (lambda x: gnp.sigmoid(x), lambda x: jax.nn.sigmoid(x)),
    "softplus": (lambda x: gnp.softplus(x), lambda x: jax.nn.softplus(x)),
    "one_hot": (lambda x: gnp.one_hot(gnp.argmax(x, 1), 6), lambda x: jax.nn.one_hot(jnp.argmax(x, 1), 6)),
    "layer_norm": (lambda x: gnp.layer_norm(x), lambda x: jax.nn.standardize(x, epsilon=1e-5)),
}


@pytest.mark.parametrize("name", NN)
def test_nn(name: str) -> None:
    mine, theirs = NN[name]
    assert_like_jax(run(mine, A), theirs(A), terms=64)


def check(function: Callable[..., Any], *arguments: Any, terms: int = 1) -> None:
    found = run(lambda *xs: function(gnp, *xs), *arguments)
    assert_like_jax(found, jax.jit(lambda *xs: function(jnp, *xs))(*map(jnp.asarray, arguments)), terms)
