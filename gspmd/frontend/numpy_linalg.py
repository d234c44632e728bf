"""`gspmd.numpy.linalg`: solving, factorisations and norms of matrices in the last two dimensions, by NumPy's names."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from gspmd.frontend.config import default_int
from gspmd.frontend.einsum import matmul, outer, tensordot, vecdot
from gspmd.frontend.numpy_core import (
    as_inexact,
    broadcast_shapes,
    broadcast_to,
    cast_to,
    common_dtype,
    lift,
    normal_axes,
)
from gspmd.frontend.numpy_creation import eye, iota
from gspmd.frontend.numpy_math import abs as absolute
from gspmd.frontend.numpy_math import power, where
from gspmd.frontend.numpy_missing import missing
from gspmd.frontend.numpy_reduce import max as greatest
from gspmd.frontend.numpy_reduce import min as least
from gspmd.frontend.numpy_reduce import prod, sum
from gspmd.frontend.numpy_shape import diagonal as diagonal_of
from gspmd.frontend.numpy_shape import (
    expand_dims,
    matrix_transpose,
    moveaxis,
    ravel,
    reshape,
    square_diagonal,
    squeeze,
)
from gspmd.frontend.numpy_special import conj, log, real, sign, sqrt
from gspmd.frontend.promotion import inexact
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit, emit_all
from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.ops import factorizations, linalg

__all__ = [
    "cholesky", "cond", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

Axis = int | Sequence[int] | None


def _matrices(name: str, x: ArrayLike, square: bool = False) -> Tracer:
    lifted = as_inexact(x)
    if lifted.dtype.itemsize < 4:
        lifted = cast_to(lifted, DTYPES["f32"])
    if lifted.ndim < 2 or (square and lifted.shape[-1] != lifted.shape[-2]):
        what = "square matrices" if square else "matrices"
        raise trace_error(f"{name} takes {what} in the last two dimensions, got {lifted.shape}", rule=f"{name}.C2")
    return lifted


def _hermitian(x: Tracer) -> Tracer:
    return (x + conj(matrix_transpose(x))) / 2


def cholesky(x: ArrayLike, upper: bool = False) -> Tracer:
    """The triangular factor of Hermitian positive definite matrices, NaN for others; (x + its adjoint) / 2 is used."""
    return emit(linalg.CHOLESKY, _hermitian(_matrices("cholesky", x, True)), lower=not upper)


def solve(a: ArrayLike, b: ArrayLike) -> Tracer:
    """The x with a @ x = b; b holds matrices, or is one vector."""
    dtype = inexact(common_dtype(a, b))
    matrix = cast_to(_matrices("solve", a, True), dtype if dtype.itemsize >= 4 else DTYPES["f32"])
    side = cast_to(b, matrix.dtype)
    vector = side.ndim == 1
    side = expand_dims(side, -1) if vector else side
    if side.shape[-2] != matrix.shape[-1]:
        raise trace_error(f"matrices {matrix.shape} and sides {side.shape} do not fit", rule="solve.C5")
    lead = broadcast_shapes(matrix.shape[:-2], side.shape[:-2])
    matrix = broadcast_to(matrix, (*lead, *matrix.shape[-2:]))
    found = emit(linalg.SOLVE, matrix, broadcast_to(side, (*lead, *side.shape[-2:])))
    return squeeze(found, -1) if vector else found


def inv(x: ArrayLike) -> Tracer:
    """The inverse of square matrices."""
    matrix = _matrices("inv", x, True)
    return solve(matrix, eye(matrix.shape[-1], dtype=matrix.dtype))


def qr(x: ArrayLike, mode: str = "reduced") -> Tracer | tuple[Tracer, Tracer]:
    """An orthonormal basis of the columns and the upper triangle; `complete`: a square basis; `r`: the triangle."""
    if mode not in ("reduced", "complete", "r"):
        raise trace_error(f"mode {mode!r} is none of reduced, complete, r", rule="qr.C5")
    q, r = emit_all(factorizations.QR, [_matrices("qr", x)], full_matrices=mode == "complete")
    return r if mode == "r" else (q, r)


def svd(x: ArrayLike, full_matrices: bool = True, compute_uv: bool = True) -> Tracer | tuple[Tracer, Tracer, Tracer]:
    """Left vectors as columns, singular values from the greatest down, conjugated right vectors as rows."""
    s, u, vh = emit_all(factorizations.SVD, [_matrices("svd", x)], full_matrices=full_matrices and compute_uv)
    return (u, s, vh) if compute_uv else s


def svdvals(x: ArrayLike) -> Tracer:
    """The singular values, from the greatest down."""
    return emit_all(factorizations.SVD, [_matrices("svdvals", x)], full_matrices=False)[0]


def eigh(x: ArrayLike) -> tuple[Tracer, Tracer]:
    """The eigenvalues of Hermitian matrices, from the least up, and eigenvectors as columns."""
    vectors, values = emit_all(factorizations.EIGH, [_hermitian(_matrices("eigh", x, True))], lower=True)
    return values, vectors


def eigvalsh(x: ArrayLike) -> Tracer:
    """The eigenvalues of Hermitian matrices, from the least up."""
    return eigh(x)[0]


def _lu_parts(name: str, x: ArrayLike) -> tuple[Tracer, Tracer]:
    """The diagonal of U, and the sign of the permutation."""
    factors, pivots, _ = emit_all(factorizations.LU, [_matrices(name, x, True)])
    swaps = sum(cast_to(pivots != iota(pivots.shape, pivots.dtype, pivots.ndim - 1), default_int()), axis=-1)
    parity = cast_to(1 - 2 * (swaps % 2), factors.dtype)
    return square_diagonal(factors), parity


def det(x: ArrayLike) -> Tracer:
    """The determinant of square matrices."""
    line, parity = _lu_parts("det", x)
    return prod(line, axis=-1) * parity


def slogdet(x: ArrayLike) -> tuple[Tracer, Tracer]:
    """The sign of the determinant and the logarithm of its magnitude."""
    line, parity = _lu_parts("slogdet", x)
    return prod(sign(line), axis=-1) * parity, sum(log(absolute(line)), axis=-1)


def diagonal(x: ArrayLike, offset: int = 0) -> Tracer:
    """The elements of matrices, in the last two dimensions, whose column exceeds their row by `offset`."""
    return diagonal_of(x, offset, -2, -1)


def trace(x: ArrayLike, offset: int = 0) -> Tracer:
    """The sum of a diagonal of matrices in the last two dimensions."""
    return sum(diagonal(x, offset), axis=-1)


def matrix_power(x: ArrayLike, n: int) -> Tracer:
    """Square matrices multiplied n times, by repeated squaring; of their inverses if n is negative."""
    square = _matrices("matrix_power", x, True)
    if n < 0:
        square, n = inv(square), -n
    result = broadcast_to(eye(square.shape[-1], dtype=square.dtype), square.shape) if n == 0 else None
    while n:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        square = matmul(square, square) if n else square
    assert result is not None
    return result


def multi_dot(arrays: Sequence[ArrayLike]) -> Tracer:
    """The product of matrices, multiplied from left to right; the first and the last may be vectors."""
    if len(arrays) < 2:
        raise trace_error(f"multi_dot takes two arrays or more, got {len(arrays)}", rule="multi_dot.C1")
    return reduce(matmul, arrays[1:], lift(arrays[0]))


def _cutoff(values: Tracer, shape: tuple[int, ...], rtol: float | None) -> Tracer:
    """Below which singular values count as zero, from the greatest one: NumPy's choice if `rtol` is left out."""
    share = float(np.finfo(values.dtype).eps) * builtins.max(shape[-2:]) if rtol is None else rtol
    return greatest(values, axis=-1, keepdims=True) * share


def matrix_rank(x: ArrayLike, rtol: float | None = None) -> Tracer:
    """How many singular values exceed `rtol` of the greatest, the dtype's eps times the longer side if left out."""
    matrices = _matrices("matrix_rank", x)
    values = svdvals(matrices)
    return sum(cast_to(values > _cutoff(values, matrices.shape, rtol), default_int()), axis=-1)


def pinv(x: ArrayLike, rtol: float | None = None) -> Tracer:
    """The Moore-Penrose inverse; singular values up to `rtol` of the greatest count as zero, as in `matrix_rank`.

    Singular vectors have no gradient, nor has this: `solve` with x^H x has one, where the columns are independent.
    """
    matrices = _matrices("pinv", x)
    values, u, vh = emit_all(factorizations.SVD, [matrices], full_matrices=False)
    kept = values > _cutoff(values, matrices.shape, rtol)
    inverted = where(kept, 1 / where(kept, values, 1), 0)
    return matmul(conj(matrix_transpose(vh)) * expand_dims(inverted, -2), conj(matrix_transpose(u)))


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None) -> tuple[Tracer, Tracer, Tracer, Tracer]:
    """The x of least norm that minimises |a @ x - b|, for one matrix; as NumPy, (x, residuals, rank, singular values).

    Residuals are the sums of squares of b - a @ x along its first dimension, whatever the rank, which is not known yet.
    """
    matrix = _matrices("lstsq", a)
    if matrix.ndim != 2:
        raise trace_error(f"lstsq takes one matrix, got {matrix.shape}", rule="lstsq.C1")
    x, right = matmul(pinv(matrix, rcond), b), lift(b)
    residuals = sum(absolute(right - matmul(matrix, x)) ** 2, axis=0)
    return x, residuals, matrix_rank(matrix, rcond), svdvals(matrix)


def cond(x: ArrayLike, p: Any = None) -> Tracer:
    """The condition number: the greatest singular value by the least, or norm(x, p) * norm(inv(x), p)."""
    if p is None or p == 2:
        values = svdvals(x)
        return greatest(values, axis=-1) / least(values, axis=-1)
    matrices = _matrices("cond", x, True)
    return matrix_norm(matrices, ord=p) * matrix_norm(inv(matrices), ord=p)


# -- norms -----------------------------------------------------------------------------------------------------------


def vector_norm(x: ArrayLike, axis: Axis = None, keepdims: bool = False, ord: float | str = 2) -> Tracer:
    """The norm of vectors: the ord-th root of the sum of the ord-th powers of magnitudes; inf, -inf, 0 as in NumPy."""
    if isinstance(ord, str):
        raise trace_error(f"no vector norm of order {ord!r}", rule="vector_norm.C1", fix="name two axes, or a number")
    lifted = as_inexact(x)
    size = absolute(lifted)
    if ord == np.inf:
        return greatest(size, axis, keepdims)
    if ord == -np.inf:
        return least(size, axis, keepdims)
    if ord == 0:
        return sum(cast_to(size != 0, size.dtype), axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis, keepdims=keepdims)
    if ord == 2:
        squares = real(lifted * conj(lifted)) if dtype_kind(lifted.dtype) == "complex" else lifted * lifted
        return sqrt(sum(squares, axis, keepdims=keepdims))
    return power(sum(power(size, ord), axis, keepdims=keepdims), 1 / ord)


def matrix_norm(x: ArrayLike, keepdims: bool = False, ord: float | str | None = "fro") -> Tracer:
    """The norm of matrices in the last two dimensions: fro, nuc, 1, -1, inf, -inf, 2, -2."""
    lifted = _matrices("matrix_norm", x)
    if ord in ("fro", None):
        return vector_norm(lifted, (-2, -1), keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        down = -2 if ord in (1, -1) else -1
        totals = sum(absolute(lifted), down, keepdims=True)
        found = (greatest if ord in (1, np.inf) else least)(totals, (-2, -1))
    elif ord in ("nuc", 2, -2):
        values = svdvals(lifted)
        found = sum(values, -1) if ord == "nuc" else (greatest if ord == 2 else least)(values, -1)
    else:
        raise trace_error(f"no matrix norm of order {ord!r}", rule="matrix_norm.C3")
    return reshape(found, (*found.shape, 1, 1)) if keepdims else found


def norm(x: ArrayLike, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Tracer:
    """NumPy's norm: of the whole array, of vectors along an axis, or of matrices in two axes."""
    lifted = as_inexact(x)
    if axis is None and ord is None:
        found = vector_norm(ravel(lifted))
        return reshape(found, (1,) * lifted.ndim) if keepdims else found
    dims = normal_axes(axis, lifted.ndim)
    if len(dims) == 1:
        return vector_norm(lifted, dims, keepdims, 2 if ord is None else ord)
    if len(dims) != 2:
        raise trace_error(f"a norm along {len(dims)} axes", rule="norm.C1", fix="name one axis or two")
    found = matrix_norm(moveaxis(lifted, dims, (-2, -1)), False, ord)
    return expand_dims(found, tuple(sorted(dims))) if keepdims else found


def __getattr__(name: str) -> NoReturn:
    raise missing("gspmd.numpy.linalg", name, __all__)
