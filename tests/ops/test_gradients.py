"""Gradients against finite differences in f64, along a random direction, and at the corners against JAX's choices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gspmd.frontend.pullback import Pullback
from gspmd.ir.builder import Builder
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops.literal import full
from gspmd.ops.rules import differentiable
from tests.ops.cases import LOCAL_EXAMPLES, in_double, name_of, parse
from tests.ops.evaluate import evaluate
from tests.ops.inputs import example_inputs, values

Array = NDArray[Any]

# Their derivative is not what a difference shows: rounding is transparent to gradients by convention, the sign of a
# complex number and a reduction by a region have none, control flow is tested where traces are differentiated.
LEFT_OUT = frozenset(
    ("reduce_precision", "while", "case", "next_after", "bitcast_convert")
    # No gradient, or only in some operands or of some results: test_special, test_linalg, test_normalization.
    + ("polygamma", "zeta", "geqrf", "householder_product", "svd", "batch_norm_grad")
    + ("eig", "schur", "gehrd", "sytrd", "geqp3", "tridiagonal_solve")
)
STEP = 1e-5


class Tape:
    """The gradient builder of a single op."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def zeros(self, type_: TensorType) -> Value:
        return full(self.builder, 0, type_.dtype, type_.shape)

    def region_vjp(self, region: Region, wanted: Sequence[bool]) -> Region:
        return Pullback(Builder(), region).region_vjp(region, wanted)


def pullback(program: Program) -> Program | None:
    """A program from the arguments and the results' cotangents to the arguments' cotangents (None: no gradient)."""
    builder = Builder()
    (node,) = program.body.nodes
    operands = tuple(builder.param(v.type) for v in node.operands)
    results = node.op.emit(builder, operands, node.attrs, node.regions)
    cts = [builder.param(v.type) if differentiable(v.type) else None for v in results]
    if node.op.vjp is None:
        return None
    found = node.op.vjp(Tape(builder), builder.nodes[-1], cts)
    assert len(found) == len(operands)
    for ct, v in zip(found, operands, strict=True):
        assert ct is None or ct.type.bare == v.type.bare
        assert ct is None or differentiable(v.type)
    tape = Tape(builder)
    outs = [
        tape.zeros(v.type) if ct is None else ct
        for ct, v in zip(found, operands, strict=True)
        if differentiable(v.type)
    ]
    return Program.of("pullback", builder.region(outs), None)


def smooth(example: str) -> bool:
    (node,) = parse(example).body.nodes
    if name_of(example) in LEFT_OUT or not node.operands:
        return False
    if (name_of(example) == "reduce" and node.regions) or (name_of(example) == "sign" and "c64" in example):
        return False
    if name_of(example) == "eigh" and "c64" in example:  # complex eigenvectors turn freely
        return False
    if name_of(example) == "scatter" and re.search("monoid=(mul|max|min)", example):
        return False
    return all(differentiable(v.type) for v in node.results) and any(differentiable(v.type) for v in node.operands)


SMOOTH = tuple(dict.fromkeys(in_double(e) for e in LOCAL_EXAMPLES if smooth(e)))


@pytest.mark.parametrize("example", SMOOTH)
def test_the_gradient_is_the_derivative(example: str) -> None:
    program = parse(example)
    arrays = example_inputs(program)
    rng = np.random.default_rng(7)
    cts = [values(rng, v.type) for v in program.body.results]
    moved = [differentiable(v.type) for v in program.body.params]
    steps = [
        values(rng, v.type) if m else np.zeros(v.type.shape) for m, v in zip(moved, program.body.params, strict=True)
    ]

    def shifted(sign: float) -> list[Array]:
        return [a + sign * STEP * s if m else a for a, s, m in zip(arrays, steps, moved, strict=True)]

    ahead, behind = evaluate(program, *shifted(1.0)), evaluate(program, *shifted(-1.0))
    slopes = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
    expected = sum(np.sum(c * s).real for c, s in zip(cts, slopes, strict=True))
    backward = pullback(program)
    grads = evaluate(backward, *arrays, *cts) if backward is not None else []
    directions = [s for s, m in zip(steps, moved, strict=True) if m]
    products = [g * s for g, s in zip(grads, directions, strict=bool(grads))]
    actual = sum((np.sum(p).real for p in products), 0.0)
    size = sum((np.abs(p).sum() for p in products), 1.0)
    # A difference quotient is good to about the square root of f64's precision, which is f32's.
    verdict = compare(np.float64(actual), np.float64(expected), size, scale_dtype=np.float32)
    assert verdict.ok, verdict.message


def jax_gradient(function: Any, ct: Array, *arrays: Array) -> list[Array]:
    import jax

    with jax.enable_x64(True):
        _, pull = jax.vjp(function, *arrays)
        return [np.asarray(g) for g in pull(ct)]


def ours(example: str, ct: Array, *arrays: Array) -> list[Array]:
    backward = pullback(parse(example))
    assert backward is not None
    return evaluate(backward, *arrays, ct)


def test_ties_share_as_in_jax() -> None:
    from jax import lax
    from jax import numpy as jnp

    x, y = np.array([1.0, 2.0, 3.0, -0.0]), np.array([1.0, 3.0, 2.0, 0.0])
    ct = np.array([1.0, 2.0, 3.0, 4.0])
    for name, function in (("maximum", lax.max), ("minimum", lax.min)):
        for a, b in zip(ours(f"{name}(f64[4], f64[4])", ct, x, y), jax_gradient(function, ct, x, y), strict=True):
            assert compare(a, b).ok
    rows = np.array([[1.0, 5.0, 5.0], [2.0, 1.0, 0.0]])
    (a,) = ours("reduce(f64[2, 3]) dims=[1] monoid=max", ct[:2], rows)
    (b,) = jax_gradient(lambda t: jnp.max(t, 1), ct[:2], rows)
    assert compare(a, b).ok


def test_corners_of_power_and_clamp_are_jaxs() -> None:
    from jax import lax
    from jax import numpy as jnp

    x, y = np.array([0.0, 0.0, 2.0, 3.0]), np.array([0.0, 2.0, 0.0, 1.0])
    ct = np.array([1.0, 2.0, 3.0, 4.0])
    (dx, dy), (jax_dx, jax_dy) = ours("power(f64[4], f64[4])", ct, x, y), jax_gradient(lax.pow, ct, x, y)
    assert dx[0] == 0  # where JAX has NaN, though x**0 is 1 for every x
    assert compare(dx[1:], jax_dx[1:]).ok and compare(dy, jax_dy).ok
    low, high = np.float64(0.0), np.float64(2.0)
    arrays = (np.asarray(low), np.array([0.0, 1.0, 2.0, 3.0]), np.asarray(high))
    got = ours("clamp(f64[], f64[4], f64[])", ct, *arrays)
    wide = lambda low, x, high: lax.clamp(jnp.broadcast_to(low, (4,)), x, jnp.broadcast_to(high, (4,)))  # noqa: E731
    for a, b in zip(got, jax_gradient(wide, ct, *arrays), strict=True):
        assert compare(a, b).ok


def test_the_gradient_of_a_product_copes_with_zeros() -> None:
    from jax import numpy as jnp

    x = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]])
    ct = np.array([1.0, 2.0, 3.0])
    (a,) = ours("reduce(f64[3, 3]) dims=[1] monoid=mul", ct, x)
    (b,) = jax_gradient(lambda t: jnp.prod(t, 1), ct, x)
    assert compare(a, b).ok


def test_what_has_no_gradient_says_so() -> None:
    with pytest.raises(TypeRuleError, match=r"sign\.D1"):
        pullback(parse("sign(c64[4])"))
    example = next(e for e in LOCAL_EXAMPLES if e.startswith("reduce(") and "custom" in e)
    with pytest.raises(TypeRuleError, match=r"reduce\.D1"):
        pullback(parse(example))
