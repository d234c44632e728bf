"""Eigenvalues of general matrices and condensed forms: what they are made of puts the operand together again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gspmd.ir.errors import GspmdError, TypeRuleError
from tests.ops.cases import parse
from tests.ops.test_gradients import pullback
from tests.ops.test_linalg import DTYPES, adjoint, close, matrices, results, shape_text

parametrized = pytest.mark.parametrize("dtype", DTYPES)
EIGEN = ("eig(f32[3, 3])", "schur(f32[3, 3])", "gehrd(f32[3, 3])", "sytrd(f32[3, 3])", "geqp3(f32[3, 2])")


def reflectors(packed: Any, taus: Any) -> Any:
    """The product of the reflectors I - tau v v^H, which stand below the diagonal of packed matrices of one stack."""
    m = packed.shape[-2]
    out = np.eye(m) + np.zeros((*packed.shape[:-2], m, m), packed.dtype)
    for k in range(taus.shape[-1]):
        v = np.where(np.arange(m) > k, packed[..., k], 0) + (np.arange(m) == k)
        step = taus[..., k, None, None] * v[..., :, None] * v[..., None, :].conj()
        out = out @ (np.eye(m) - step)
    return out.astype(packed.dtype)


@parametrized
def test_eigenvectors_are_scaled_by_the_matrix(dtype: str) -> None:
    x = matrices(dtype, 3, 4, 4)
    w, left, right = results(f"eig({shape_text(x)}) left=true", x)
    close(x @ right, right * w[:, None, :], 256)
    close(adjoint(left) @ x, w[:, :, None] * adjoint(left), 256)
    close(np.sort_complex(results(f"eig({shape_text(x)}) right=false", x)[0]), np.sort_complex(w), 256)


@parametrized
def test_schurs_form_puts_the_operand_together(dtype: str) -> None:
    x = matrices(dtype, 3, 4, 4)
    t, z, w = results(f"schur({shape_text(x)})", x)
    close(z @ t @ adjoint(z), x, 256)
    close(z @ adjoint(z), np.eye(4) + 0 * x, 256)
    assert not np.tril(t, -1 if dtype[0] == "c" else -2).any()
    close(np.trace(x, axis1=1, axis2=2).astype(w.dtype), w.sum(-1), 256)


@parametrized
def test_condensed_forms_are_similar_to_the_operand(dtype: str) -> None:
    x = matrices(dtype, 3, 4, 4)
    packed, taus = results(f"gehrd({shape_text(x)})", x)
    q = np.eye(4) + 0 * x
    q[:, 1:, 1:] = reflectors(packed[:, 1:, :3], taus)
    close((q @ np.triu(packed, -1) @ adjoint(q)).astype(x.dtype), x, 256)
    hermitian = x + adjoint(x)
    packed, diagonal, beside, taus = results(f"sytrd({shape_text(x)})", hermitian)
    q[:, 1:, 1:] = reflectors(packed[:, 1:, :3], taus)
    middle = np.stack([np.diag(d) + np.diag(e, 1) + np.diag(e, -1) for d, e in zip(diagonal, beside, strict=True)])
    close((q @ middle @ adjoint(q)).astype(x.dtype), hermitian, 256)


@parametrized
@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (3, 5)])
def test_pivoted_qr_orders_the_columns(dtype: str, m: int, n: int) -> None:
    x = matrices(dtype, 2, m, n)
    packed, order, taus = results(f"geqp3({shape_text(x)})", x)
    r = np.triu(packed)
    close(reflectors(packed, taus) @ r, np.take_along_axis(x, order[:, None, :], 2), 256)
    sizes = np.abs(np.diagonal(r, axis1=1, axis2=2))
    assert (np.diff(sizes) <= 1e-5).all()


@parametrized
@pytest.mark.parametrize("n", [4, 1])
def test_three_diagonals_are_solved_for(dtype: str, n: int) -> None:
    below, on, above = matrices(dtype, 3, 2, n)
    on, b = on + 4, matrices(dtype, 2, n, 3, seed=1)
    text = f"tridiagonal_solve({', '.join(shape_text(v) for v in (below, on, above, b))})"
    (x,) = results(text, below, on, above, b)
    rows = zip(below, on, above, strict=True)
    whole = np.stack([np.diag(d) + np.diag(low[1:], -1) + np.diag(high[:-1], 1) for low, d, high in rows])
    close(whole @ x, b, 256)
    (x,) = results(text, below * 0, on * np.array([[0], [1]], on.dtype), above * 0, b)
    assert np.isnan(x[0]).all() and np.isfinite(x[1]).all()
    regular = f"{text} perturbed=true"
    (x,) = results(regular, below, on, above, b)
    close(whole @ x, b, 256)
    (x,) = results(regular, below * 0, on * 0, above * 0 + 1, b)
    assert np.isfinite(x[:, -1]).all()


@pytest.mark.parametrize("example", ["eig(f32[2, 3, 3])", "schur(f32[2, 3, 3])"])
def test_matrices_that_are_not_finite_are_nan_and_alone(example: str) -> None:
    x = matrices("f32", 2, 3, 3)
    x[0, 1, 1] = np.inf
    for found in results(example, x):
        assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()


@pytest.mark.parametrize("example", [*EIGEN, "tridiagonal_solve(f32[3], f32[3], f32[3], f32[3, 2])"])
def test_what_has_no_gradient_says_so(example: str) -> None:
    with pytest.raises(TypeRuleError, match=rf"{example.partition('(')[0]}\.D1"):
        pullback(parse(example))


@pytest.mark.parametrize(
    ("constraint", "example"),
    [
        ("eig.C3", "eig(f32[3, 4])"),
        ("schur.C2", "schur(f32[3])"),
        ("gehrd.C3", "gehrd(f32[3, 4])"),
        ("sytrd.C1", "sytrd(i32[3, 3])"),
        ("geqp3.C1", "geqp3(bf16[3, 3])"),
        ("tridiagonal_solve.C3", "tridiagonal_solve(f32[3], f32[2], f32[3], f32[3, 1])"),
    ],
)
def test_constraint(constraint: str, example: str) -> None:
    with pytest.raises(GspmdError, match=constraint):
        parse(example)
