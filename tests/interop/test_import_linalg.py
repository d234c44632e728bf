"""Linear algebra written in JAX, in all four dtypes, one matrix and stacks: JAX's values, or what defines them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
import scipy.linalg as sl
from jax import lax

import gspmd
from gspmd.ir.errors import UsageError
from gspmd.kernels.closeness import compare

DTYPES = ("f4", "f8", "c8", "c16")
N = 4


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    """JAX with 64 bits, for these tests alone."""
    before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def matrices(dtype: str, *shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def adjoint(x: Any) -> Any:
    return np.swapaxes(np.conj(x), -1, -2)


def positive(dtype: str, *lead: int) -> Any:
    a = matrices(dtype, *lead, N, N)
    return (a @ adjoint(a) + N * np.eye(N)).astype(dtype)


def close(mine: Any, wanted: Any, work: float = 512) -> None:
    """Within the rounding of a few hundred operations on the largest element: LAPACK's algorithms mix all of them."""
    mine, wanted = np.asarray(mine), np.asarray(wanted)
    assert mine.shape == wanted.shape
    size = np.broadcast_to(np.abs(wanted).max(initial=1.0), wanted.shape)
    verdict = compare(mine, wanted.astype(mine.dtype), size, int(work), scale_dtype=mine.dtype)
    assert verdict.ok, verdict.message


def run(function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    return tuple(jax.tree.leaves(gspmd.from_jax(function, *arguments).run(*arguments)))


def same(function: Callable[..., Any], reference: Callable[..., Any], *arguments: Any) -> None:
    """The reference's values, in the dtypes that JAX gives them."""
    found, types = run(function, *arguments), jax.tree.leaves(jax.eval_shape(function, *arguments))
    wanted = reference(*arguments)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for mine, theirs, type_ in zip(found, wanted, types, strict=True):
        assert mine.dtype == type_.dtype
        close(mine, theirs)


# -- nothing in it is a matter of convention ---------------------------------------------------------------------------

OF_ONE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "inv": (jnp.linalg.inv, np.linalg.inv), "det": (jnp.linalg.det, np.linalg.det),
    "slogdet": (jnp.linalg.slogdet, np.linalg.slogdet), "cholesky": (jnp.linalg.cholesky, np.linalg.cholesky),
    "eigvalsh": (jnp.linalg.eigvalsh, np.linalg.eigvalsh), "pinv": (jnp.linalg.pinv, np.linalg.pinv),
    "svdvals": (lambda a: jnp.linalg.svd(a, compute_uv=False), lambda a: np.linalg.svd(a, compute_uv=False)),
    "matrix_rank": (jnp.linalg.matrix_rank, np.linalg.matrix_rank), "cond": (jnp.linalg.cond, np.linalg.cond),
    "norm": (lambda a: jnp.linalg.norm(a, 2, (-2, -1)), lambda a: np.linalg.norm(a, 2, (-2, -1))),
    "nuclear": (lambda a: jnp.linalg.norm(a, "nuc", (-2, -1)), lambda a: np.linalg.norm(a, "nuc", (-2, -1))),
    "expm": (lambda a: jsl.expm(a / 8), lambda a: sl.expm(a / 8)),
    "power": (lambda a: jnp.linalg.matrix_power(a, 3), lambda a: a @ a @ a),
}  # fmt: skip


def diagonals(a: Any) -> tuple[Any, Any, Any]:
    """The three in the middle, each as long as the longest: below begins with a zero, above ends with one."""
    below, on, above = (jnp.diagonal(a, k, -2, -1) for k in (-1, 0, 1))
    zero = jnp.zeros_like(on[..., :1])
    return jnp.concatenate([zero, below], -1), on, jnp.concatenate([above, zero], -1)


def three_diagonals(a: Any) -> Any:
    return np.triu(np.tril(a, 1), -1)


OF_TWO: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "solve": (jnp.linalg.solve, np.linalg.solve),
    "cho_solve": (lambda a, b: jsl.cho_solve(jsl.cho_factor(a), b), np.linalg.solve),
    "triangular": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, transpose_a=True),
        lambda a, b: np.linalg.solve(np.swapaxes(np.tril(a), -1, -2), b),
    ),
    "tridiagonal": (
        lambda a, b: lax.linalg.tridiagonal_solve(*diagonals(a), b),
        lambda a, b: np.linalg.solve(three_diagonals(a), b),
    ),
}
ALONE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "lstsq": (lambda a, b: jnp.linalg.lstsq(a, b)[0], np.linalg.solve),
    "lu_solve": (lambda a, b: jsl.lu_solve(jsl.lu_factor(a), b), np.linalg.solve),
    "multi_dot": (lambda a, b: jnp.linalg.multi_dot([a, a, b]), lambda a, b: a @ a @ b),
    "sqrtm": (lambda a, b: jsl.sqrtm(a) @ b, lambda a, b: sl.sqrtm(a) @ b),
    "polar": (lambda a, b: jsl.polar(a)[0] @ b, lambda a, b: sl.polar(a)[0] @ b),
}
parametrized = pytest.mark.parametrize("dtype", DTYPES)
stacked = pytest.mark.parametrize("lead", [(), (3,)], ids=["one", "stack"])


@parametrized
@stacked
@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_a_matrix(name: str, dtype: str, lead: tuple[int, ...]) -> None:
    same(*OF_ONE[name], positive(dtype, *lead))


@parametrized
@stacked
@pytest.mark.parametrize("name", OF_TWO)
def test_solves(name: str, dtype: str, lead: tuple[int, ...]) -> None:
    same(*OF_TWO[name], positive(dtype, *lead), matrices(dtype, *lead, N, 2, seed=1))


@parametrized
@pytest.mark.parametrize("name", ALONE)
def test_what_jax_has_for_one_matrix(name: str, dtype: str) -> None:
    same(*ALONE[name], positive(dtype), matrices(dtype, N, 2, seed=1))


# -- what puts the matrix together again -------------------------------------------------------------------------------


@parametrized
@stacked
def test_qr_in_all_its_forms(dtype: str, lead: tuple[int, ...]) -> None:
    for m, n in ((5, 3), (3, 5)):
        x = matrices(dtype, *lead, m, n)
        for mode in ("reduced", "complete"):
            q, r = run(lambda a, mode=mode: jnp.linalg.qr(a, mode=mode), x)
            close(q @ r, x)
            close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*lead, *[q.shape[-1]] * 2)))
            assert not np.tril(r, -1).any()
        q, r, order = run(lambda a: lax.linalg.qr(a, pivoting=True, full_matrices=False), x)
        close(q @ r, np.take_along_axis(x, np.broadcast_to(order[..., None, :], x.shape), -1))
    packed, taus = np.linalg.qr(matrices(dtype, N, N), mode="raw")
    q = np.linalg.qr(matrices(dtype, N, N))[0]
    for left in (True, False):
        for transpose in (True, False):
            multiplied = partial(lax.linalg.ormqr, left=left, transpose=transpose)
            c, turned = matrices(dtype, N, N, seed=2), adjoint(q) if transpose else q
            close(run(multiplied, packed.T.astype(dtype), taus.astype(dtype), c)[0], turned @ c if left else c @ turned)


@parametrized
@stacked
def test_singular_values_and_vectors(dtype: str, lead: tuple[int, ...]) -> None:
    x = matrices(dtype, *lead, 5, 3)
    for algorithm in ("DEFAULT", "QR"):
        method = lax.linalg.SvdAlgorithm[algorithm]
        for full in (True, False):
            u, s, vh = run(lambda a, f=full, m=method: lax.linalg.svd(a, full_matrices=f, algorithm=m), x)
            close((u[..., :3] * s[..., None, :]) @ vh, x)
            assert u.shape == (*lead, 5, 5 if full else 3) and (np.diff(s) <= 0).all()


@parametrized
@stacked
def test_eigenvalues_and_vectors(dtype: str, lead: tuple[int, ...]) -> None:
    h = positive(dtype, *lead)
    (factors, pivots, order) = run(lax.linalg.lu, h)
    unit = (np.tril(factors, -1) + np.eye(N)).astype(dtype)
    close(unit @ np.triu(factors), np.take_along_axis(h, order[..., None], -2))
    assert pivots.dtype == np.int32 and pivots.max() < N
    for lower in (True, False):
        w, v = run(lambda a, lo=lower: jnp.linalg.eigh(a, "L" if lo else "U", symmetrize_input=False), h)
        close(h @ v, v * w[..., None, :])
    x = matrices(dtype, *lead, N, N)
    w, v = run(jnp.linalg.eig, x)
    close(x @ v, v * w[..., None, :])
    w, left, _ = run(lax.linalg.eig, x)
    close(adjoint(left) @ x, w[..., :, None] * adjoint(left))
    (alone,) = run(jnp.linalg.eigvals, x)
    close(np.sort_complex(alone), np.sort_complex(w))


@parametrized
def test_schur_and_condensed_forms(dtype: str) -> None:
    x = matrices(dtype, N, N)
    for output in ("real", "complex"):
        t, z = run(lambda a, o=output: jsl.schur(a, output=o), x)
        close(z @ t @ adjoint(z), x.astype(t.dtype))
    a = np.real(positive(dtype))
    on, beside = np.diag(a), np.diag(a, 1)
    w, v = run(jsl.eigh_tridiagonal, on, beside)
    close((np.diag(on) + np.diag(beside, 1) + np.diag(beside, -1)) @ v, v * w)
    h, q = run(lambda a: jsl.hessenberg(a, calc_q=True), x)
    close(q @ h @ adjoint(q), x)
    for lower in (True, False):
        a = positive(dtype, 2)
        _, on, beside, _ = run(partial(lax.linalg.tridiagonal, lower=lower), a)
        middle = [np.diag(d) + np.diag(e, 1) + np.diag(e, -1) for d, e in zip(on, beside, strict=True)]
        close(np.linalg.eigvalsh(middle).astype(on.dtype), np.linalg.eigvalsh(a))


def test_what_cannot_be_computed_is_nan_as_in_jax() -> None:
    indefinite = -positive("f4", 2)
    (found,) = run(jnp.linalg.cholesky, indefinite)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(jnp.linalg.cholesky(indefinite)))
    x = matrices("f4", 2, N, N)
    x[0, 0, 0] = np.nan
    (values,) = run(jnp.linalg.eigvals, x)
    assert np.isnan(values[0]).all() and np.isfinite(values[1]).all()


def test_stacks_are_split_and_matrices_are_not() -> None:
    mesh = jax.sharding.AbstractMesh((2,), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    x = matrices("f4", 6, N, N)
    compiled = gspmd.compile(gspmd.from_jax(jnp.linalg.eig, jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)))
    w, v = compiled.simulate(x)
    close(x @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None, :])
    assert not compiled.collectives()


def test_callbacks_are_refused_by_name() -> None:
    def host(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32), x)

    with pytest.raises(UsageError, match="custom call @xla_ffi_python_cpu_callback is not known here"):
        gspmd.from_jax(host, np.ones(3, np.float32))
