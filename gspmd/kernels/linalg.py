"""Factorisations and solves of stacks of matrices, by LAPACK and BLAS: NumPy's stacked forms where it has them.

What has no factorisation (a matrix that is not positive definite, an iteration that does not converge) is NaN. Each
matrix of a stack is worked on alone, so that stacks can be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, cast

import numpy as np

from gspmd.kernels.finite import Array
from gspmd.kernels.libraries import scipy_module

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def routine(name: str, dtype: Any) -> Any:
    """A BLAS or LAPACK routine for a dtype: `lapack.?getrf` of f32 is sgetrf."""
    module, _, form = name.partition(".")
    return getattr(scipy_module(f"linalg.{module}"), form.replace("?", _LETTERS[dtype.name]))


def _stack(x: Array) -> Array:
    """The matrices in a row."""
    return x.reshape((prod(x.shape[:-2]), *x.shape[-2:]))


def _or_nan(function: Callable[[Array], Any], x: Array) -> list[Array]:
    """A NumPy factorisation of a stack; if one fails, matrix by matrix, NaN in its place."""
    with np.errstate(all="ignore"):
        try:
            return _tuple(function(x))
        except np.linalg.LinAlgError:
            rows = [_alone(function, matrix) for matrix in _stack(x)]
    return [np.stack(column).reshape((*x.shape[:-2], *column[0].shape)) for column in zip(*rows, strict=True)]


def _alone(function: Callable[[Array], Any], matrix: Array) -> list[Array]:
    try:
        return _tuple(function(matrix))
    except np.linalg.LinAlgError:
        shaped = _tuple(function(np.eye(*matrix.shape, dtype=matrix.dtype)))
        return [np.full_like(y, np.nan) for y in shaped]


def _tuple(found: Any) -> list[Array]:
    parts = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
    return [np.asarray(y) for y in parts]


def cholesky(x: Array, lower: bool) -> Array:
    """The triangular factor of the Hermitian matrix whose lower (or upper) triangle is given; zeros elsewhere."""
    (out,) = _or_nan(lambda a: np.linalg.cholesky(a, upper=not lower), x)
    return out


def eigh(x: Array, lower: bool) -> tuple[Array, Array]:
    """The eigenvectors of Hermitian matrices as columns, and the eigenvalues, smallest first."""
    values, vectors = _or_nan(lambda a: tuple(np.linalg.eigh(a, UPLO="L" if lower else "U")), x)
    return vectors, values


def svd(x: Array, full: bool) -> tuple[Array, Array, Array]:
    """Singular values, largest first, left vectors as columns, right vectors as conjugated rows."""
    u, s, vh = _or_nan(lambda a: tuple(np.linalg.svd(a, full_matrices=full)), x)
    return s, u, vh


def qr(x: Array, full: bool) -> tuple[Array, Array]:
    """An orthonormal basis of the columns, and the upper triangle of their coordinates."""
    q, r = np.linalg.qr(x, mode="complete" if full else "reduced")
    return q, r


def solve(a: Array, b: Array) -> Array:
    """The x with a x = b, NaN or infinite where a is singular."""
    with np.errstate(all="ignore"):
        try:
            return np.linalg.solve(a, b)
        except np.linalg.LinAlgError:
            out = [_solved(m, y) for m, y in zip(_stack(a), _stack(b), strict=True)]
            return np.stack(out).reshape(b.shape)


def _solved(a: Array, b: Array) -> Array:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.full_like(b, np.nan)


def triangular_solve(a: Array, b: Array, left: bool, lower: bool, unit: bool, transpose: str) -> Array:
    """The x with op(a) x = b, or x op(a) = b: op leaves, transposes or conjugates and transposes the triangle."""
    trsm = routine("blas.?trsm", b.dtype)
    mode = {"NO_TRANSPOSE": 0, "TRANSPOSE": 1, "ADJOINT": 2}[transpose]
    conjugated = mode == 2 and b.dtype.kind == "c"
    out = np.empty(b.shape, b.dtype)
    if b.size == 0:
        return out
    # BLAS reads columns first: rows of ours are its columns, so that it solves the transposed system.
    for m, y, x in zip(_stack(a), _stack(b), _stack(out), strict=True):
        given = m.conj() if conjugated else m
        x[...] = trsm(
            1.0, given.T, y.T, side=left, lower=not lower, trans_a=int(mode > 0), diag=unit
        ).T  # fmt: skip
    return out


def lu(x: Array) -> tuple[Array, Array, Array]:
    """Both factors in one matrix (unit lower triangle, upper triangle); as i32 the pivots and the rows' permutation."""
    getrf = routine("lapack.?getrf", x.dtype)
    m, n = x.shape[-2:]
    k = min(m, n)
    out = np.empty(x.shape, x.dtype)
    lead = x.shape[:-2]
    pivots = np.empty((*lead, k), np.int32)
    for i, matrix in enumerate(_stack(x)):
        if matrix.size:
            _stack(out)[i], pivots.reshape(-1, k)[i], _ = getrf(matrix)
    return out, pivots, lu_permutation(pivots, m)


def lu_permutation(pivots: Array, size: int) -> Array:
    """The permutation that swapping row i with row pivots[i], one after the other, makes of rows in order."""
    order = np.broadcast_to(np.arange(size, dtype=np.int32), (*pivots.shape[:-1], size)).copy()
    count = prod(pivots.shape[:-1])
    rows = order.reshape(count, size)
    swaps = pivots.reshape(count, pivots.shape[-1])
    every = np.arange(len(rows))
    for i in range(pivots.shape[-1]):
        j = swaps[:, i]
        kept = rows[:, i].copy()
        rows[:, i] = rows[every, j]
        rows[every, j] = kept
    return order


def geqrf(x: Array) -> tuple[Array, Array]:
    """Householder's QR: the upper triangle with the reflectors below it, and their scales."""
    factor = routine("lapack.?geqrf", x.dtype)
    k = min(x.shape[-2:])
    out, taus = np.empty(x.shape, x.dtype), np.zeros((*x.shape[:-2], k), x.dtype)
    for i, matrix in enumerate(_stack(x)):
        if matrix.size:
            _stack(out)[i], taus.reshape(-1, k)[i] = factor(matrix)[:2]
    return out, taus


def householder_product(a: Array, taus: Array) -> Array:
    """The orthonormal columns that reflectors in the form of `geqrf` make, as many as `a` has."""
    expand = routine("lapack.?orgqr" if a.dtype.kind == "f" else "lapack.?ungqr", a.dtype)
    out, k = np.empty(a.shape, a.dtype), taus.shape[-1]
    for i, matrix in enumerate(_stack(a)):
        if matrix.size:
            _stack(out)[i] = expand(matrix, taus.reshape(-1, k)[i])[0]
    return out
