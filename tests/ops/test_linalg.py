"""Matrices: every factorisation puts its operand together again, solves solve, and gradients are differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError, TypeRuleError
from gspmd.ir.graph import Program
from gspmd.kernels.closeness import compare
from gspmd.kernels.linalg import lu_permutation
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.ops.test_gradients import Tape, pullback

DTYPES = ("f32", "f64", "c64", "c128")


def matrices(dtype: str, *shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype[0] == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype({"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}[dtype])


def adjoint(x: Any) -> Any:
    return np.swapaxes(x, -1, -2).conj()


def close(actual: Any, expected: Any, terms: int = 64) -> None:
    wide = np.broadcast_to(np.abs(expected).max(initial=1.0), np.shape(expected))
    verdict = compare(actual, np.asarray(expected, np.asarray(actual).dtype), wide, terms)
    assert verdict.ok, verdict.message


def results(example: str, *arrays: Any) -> list[Any]:
    return evaluate(parse(example), *arrays)


def shape_text(x: Any) -> str:
    names = {"float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128"}
    return f"{names[x.dtype.name]}{list(x.shape)}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle_and_gives_nan_to_others(dtype: str, lower: bool) -> None:
    x = matrices(dtype, 3, 4, 4)
    a = (x @ adjoint(x) + np.eye(4)).astype(x.dtype)
    spoiled = np.where(np.tri(4, k=-1, dtype=bool).T if lower else np.tri(4, k=-1, dtype=bool), np.nan, a)
    example = f"cholesky({shape_text(a)}) lower={str(lower).lower()}"
    (factor,) = results(example, spoiled.astype(a.dtype))
    close(factor @ adjoint(factor) if lower else adjoint(factor) @ factor, a)
    assert (factor == (np.tril if lower else np.triu)(factor)).all()
    a[1] = -a[1]
    (factor,) = results(example, a)
    assert np.isnan(factor[1]).all() and np.isfinite(factor[[0, 2]]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("left", [True, False])
def test_triangular_solve_solves(dtype: str, transpose: str, left: bool) -> None:
    a, b = matrices(dtype, 2, 4, 4) + 3 * np.eye(4), matrices(dtype, 2, *((4, 5) if left else (5, 4)), seed=1)
    a = a.astype(b.dtype)
    op = {"NO_TRANSPOSE": lambda m: m, "TRANSPOSE": lambda m: np.swapaxes(m, -1, -2), "ADJOINT": adjoint}[transpose]
    for lower in (True, False):
        for unit in (True, False):
            (x,) = results(
                f"triangular_solve({shape_text(a)}, {shape_text(b)}) left_side={str(left).lower()} "
                f"lower={str(lower).lower()} unit_diagonal={str(unit).lower()} transpose_a={transpose}",
                a,
                b,
            )
            triangle = np.tril(a) if lower else np.triu(a)
            if unit:
                triangle = triangle - triangle * np.eye(4) + np.eye(4)
            close((op(triangle) @ x if left else x @ op(triangle)).astype(b.dtype), b, 256)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (3, 5)])
def test_factors_put_the_operand_together(dtype: str, m: int, n: int) -> None:
    x = matrices(dtype, 2, m, n)
    text, k = shape_text(x), min(m, n)
    factors, pivots, order = results(f"lu({text})", x)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    close((lower @ np.triu(factors[..., :k, :])).astype(x.dtype), np.take_along_axis(x, order[..., None], 1))
    assert (lu_permutation(pivots, m) == order).all()
    for full in ("true", "false"):
        q, r = results(f"qr({text}) full_matrices={full}", x)
        close(q @ r, x)
        close(adjoint(q) @ q, np.eye(q.shape[-1]) + np.zeros_like(q[:, :1, :1]))
        s, u, vh = results(f"svd({text}) full_matrices={full}", x)
        close((u[..., :k] * s[:, None, :]) @ vh[..., :k, :], x)
        close(s, np.linalg.svd(x, compute_uv=False))
    packed, taus = results(f"geqrf({text})", x)
    q = results(f"householder_product({shape_text(packed[..., :k])}, {shape_text(taus)})", packed[..., :k], taus)[0]
    close(q @ np.triu(packed[..., :k, :]), x)


@pytest.mark.parametrize(("m", "n"), [(0, 0), (3, 0), (0, 3)])
@pytest.mark.parametrize("count", [0, 2])
def test_matrices_without_elements_are_factored(count: int, m: int, n: int) -> None:
    x = np.zeros((count, m, n), np.float32)
    factors, pivots, order = results(f"lu({shape_text(x)})", x)
    assert factors.shape == x.shape and pivots.shape == (count, 0)
    assert np.array_equal(order, np.broadcast_to(np.arange(m, dtype=np.int32), (count, m)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_eigenvectors_are_eigenvectors(dtype: str, lower: bool) -> None:
    x = matrices(dtype, 3, 4, 4)
    v, w = results(f"eigh({shape_text(x)}) lower={str(lower).lower()}", x)
    strict = np.tril(x, -1) if lower else np.triu(x, 1)
    whole = strict + adjoint(strict) + np.eye(4) * np.real(np.diagonal(x, axis1=1, axis2=2))[:, None, :]
    close(((v * w[:, None, :]) @ adjoint(v)).astype(x.dtype), whole)
    assert (np.diff(w) >= 0).all()


def test_singular_matrices_are_nan_and_alone() -> None:
    a, b = matrices("f64", 3, 3, 3), matrices("f64", 3, 3, 2, seed=1)
    (whole,) = results("solve(f64[3, 3, 3], f64[3, 3, 2])", a, b)
    close(a @ whole, b)
    a[1] = 0
    (x,) = results("solve(f64[3, 3, 3], f64[3, 3, 2])", a, b)
    assert np.isnan(x[1]).all() and (x[[0, 2]] == whole[[0, 2]]).all()


def gradient(example: str, x: Any, cotangents: Sequence[Any]) -> Any:
    backward = pullback(parse(example))
    assert backward is not None
    return evaluate(backward, x, *cotangents)[0]


def slope(example: str, x: Any, step: Any, cotangents: Sequence[Any], used: Sequence[int]) -> Any:
    ahead, behind = (results(example, x + sign * 1e-6 * step) for sign in (1, -1))
    return np.float64(
        sum(np.sum(c * (ahead[i] - behind[i]) / 2e-6).real for c, i in zip(cotangents, used, strict=True))
    )


@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_gradients_of_results_that_are_no_tensors_of_floats(dtype: str) -> None:
    """LU gives integers too, and singular values come with vectors that have no gradient."""
    x, step = matrices(dtype, 2, 3, 3), matrices(dtype, 2, 3, 3, seed=1)
    text = shape_text(x)
    ct = matrices(dtype, 2, 3, 3, seed=2)
    mine = np.sum(gradient(f"lu({text})", x, [ct]) * step).real
    assert compare(np.float64(mine), slope(f"lu({text})", x, step, [ct], [0]), 10, scale_dtype=np.float32).ok
    values = matrices("f64", 2, 3, seed=3)
    example = f"svd({text})"
    node, builder = parse(example).body.nodes[0], Builder()
    operand = builder.param(node.operands[0].type)
    node.op.emit(builder, (operand,), node.attrs)
    s = builder.param(node.results[0].type)
    (back,) = node.op.vjp(Tape(builder), builder.nodes[-1], [s, None, None])  # type: ignore[misc]
    assert back is not None
    found = evaluate(Program.of("svd", builder.region([back]), None), x, values)[0]
    mine = np.sum(found * step).real
    assert compare(np.float64(mine), slope(example, x, step, [values], [0]), 10, scale_dtype=np.float32).ok


@pytest.mark.parametrize(
    "example",
    [
        "geqrf(f32[4, 3])",
        "householder_product(f32[4, 3], f32[3])",
        "qr(f32[3, 4])",
        "qr(f32[4, 3]) full_matrices=true",
        "lu(f32[4, 3])",
        "svd(f32[4, 3])",
    ],
)
def test_what_has_no_gradient_says_so(example: str) -> None:
    with pytest.raises(TypeRuleError, match=rf"{example.partition('(')[0]}\.D1"):
        pullback(parse(example))


BROKEN = {
    "cholesky.C1": "cholesky(i32[3, 3])",
    "cholesky.C2": "cholesky(f32[3])",
    "cholesky.C3": "cholesky(f32[3, 4])",
    "triangular_solve.C3": "triangular_solve(f32[3, 4], f32[3, 4])",
    "triangular_solve.C4": "triangular_solve(f32[3, 3], f64[3, 4])",
    "triangular_solve.C5": "triangular_solve(f32[3, 3], f32[4, 3])",
    "triangular_solve.C6": "triangular_solve(f32[3, 3], f32[3, 4]) transpose_a=CONJUGATE",
    "solve.C1": "solve(bf16[3, 3], bf16[3, 3])",
    "solve.C5": "solve(f32[3, 3], f32[4, 3])",
    "householder_product.C3": "householder_product(f32[3, 4], f32[3])",
    "householder_product.C4": "householder_product(f32[4, 3], f32[4])",
    "eigh.C3": "eigh(f32[3, 4])",
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_constraint(constraint: str) -> None:
    with pytest.raises(GspmdError) as raised:
        parse(BROKEN[constraint])
    assert constraint in str(raised.value)
