"""Eigenvalues of general matrices, and the condensed forms on the way to them, by LAPACK: stacks matrix by matrix.

A matrix with elements that are not finite, or whose iteration does not converge, gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gspmd.kernels.finite import Array, DType
from gspmd.kernels.linalg import routine

Shape = tuple[int, ...]


def _each(
    function: Callable[..., Sequence[Array] | None], arrays: Sequence[Array], ends: Sequence[tuple[Shape, DType]]
) -> list[Array]:
    """A function on one matrix (and more) for every one of a stack; its results have the given shapes and dtypes.

    None stands for a failure. Empty results are not asked for.
    """
    lead = arrays[0].shape[:-2]
    outs = [np.zeros((prod(lead), *shape), dtype) for shape, dtype in ends]
    if arrays[0].size:
        rows = zip(*(x.reshape((prod(lead), *x.shape[len(lead) :])) for x in arrays), strict=True)
        for i, row in enumerate(rows):
            found = function(*row)
            for k, out in enumerate(outs):
                out[i] = _failed(out.dtype) if found is None else found[k]
    return [out.reshape((*lead, *shape)) for out, (shape, _) in zip(outs, ends, strict=True)]


def _failed(dtype: DType) -> Any:
    return complex(np.nan, np.nan) if dtype.kind == "c" else np.nan if dtype.kind == "f" else 0


def _complex(dtype: DType) -> DType:
    return np.result_type(dtype, np.complex64)


def eig(x: Array, left: bool, right: bool) -> tuple[Array, ...]:
    """Eigenvalues, then the left and the right eigenvectors that are wanted, as columns; all complex."""
    geev = routine("lapack.?geev", x.dtype)
    n, dtype = x.shape[-1], _complex(x.dtype)

    def one(a: Array) -> list[Array] | None:
        if not np.isfinite(a).all():
            return None
        *values, vl, vr, info = geev(a, compute_vl=left, compute_vr=right)
        if info:
            return None
        if len(values) == 1:
            w = values[0]
        else:
            w = values[0] + 1j * values[1]
            vl, vr = (_paired(v, w) if wanted else v for v, wanted in ((vl, left), (vr, right)))
        return [w, *(v for v, wanted in ((vl, left), (vr, right)) if wanted)]

    return tuple(_each(one, [x], [((n,), dtype), *([((n, n), dtype)] * (left + right))]))


def _paired(vectors: Array, values: Array) -> Array:
    """LAPACK's real columns as complex ones: a conjugate pair shares two, the real and the imaginary parts."""
    out = vectors.astype(_complex(vectors.dtype))
    first = np.flatnonzero(np.imag(values) > 0)
    out[:, first] = vectors[:, first] + 1j * vectors[:, first + 1]
    out[:, first + 1] = out[:, first].conj()
    return out


def _unsorted(*value: Any) -> bool:
    """Which eigenvalues are to come first: none."""
    return False


def schur(x: Array) -> tuple[Array, Array, Array]:
    """The triangle t (of real matrices with blocks of 2 on its diagonal) and unitary z, x = z t z^H; eigenvalues."""
    gees = routine("lapack.?gees", x.dtype)
    n = x.shape[-1]

    def one(a: Array) -> list[Array] | None:
        if not np.isfinite(a).all():
            return None
        t, _, *values, z, _, info = gees(_unsorted, a)
        w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
        return None if info else [t, z, w]

    t, z, w = _each(one, [x], [((n, n), x.dtype), ((n, n), x.dtype), ((n,), _complex(x.dtype))])
    return t, z, w


def gehrd(x: Array) -> tuple[Array, Array]:
    """Hessenberg's form, with the reflectors that lead to it below the first subdiagonal, and their scales."""
    reduce = routine("lapack.?gehrd", x.dtype)
    n = x.shape[-1]

    def one(a: Array) -> Sequence[Array]:
        return reduce(a)[:2]

    packed, taus = _each(one, [x], [((n, n), x.dtype), ((max(n - 1, 0),), x.dtype)])
    return packed, taus


def sytrd(x: Array, lower: bool) -> tuple[Array, Array, Array, Array]:
    """The tridiagonal form of Hermitian matrices: packed with reflectors, diagonal, the one beside it, scales."""
    reduce = routine("lapack.?sytrd" if x.dtype.kind == "f" else "lapack.?hetrd", x.dtype)
    n, real = x.shape[-1], np.real(np.zeros(0, x.dtype)).dtype
    beside = (max(n - 1, 0),)

    def one(a: Array) -> Sequence[Array]:
        return reduce(a, lower=lower)[:4]

    ends: list[tuple[Shape, DType]] = [((n, n), x.dtype), ((n,), real), (beside, real), (beside, x.dtype)]
    packed, diagonal, off, taus = _each(one, [x], ends)
    return packed, diagonal, off, taus


def geqp3(x: Array) -> tuple[Array, Array, Array]:
    """Householder's QR with the columns permuted: packed as by geqrf, which column came where (from 0), scales."""
    reduce = routine("lapack.?geqp3", x.dtype)
    m, n = x.shape[-2:]

    def one(a: Array) -> list[Array]:
        packed, order, taus, _, _ = reduce(a)
        return [packed, order - 1, taus]

    packed, order, taus = _each(one, [x], [((m, n), x.dtype), ((n,), np.dtype(np.int32)), ((min(m, n),), x.dtype)])
    if not x.size:
        order = np.broadcast_to(np.arange(n, dtype=np.int32), order.shape).copy()
    return packed, order, taus


def tridiagonal_solve(below: Array, diagonal: Array, above: Array, b: Array, perturbed: bool = False) -> Array:
    """The x with a x = b, a with three diagonals; the first element of `below` and the last of `above` do not count.

    Where a is singular, x is NaN, or if `perturbed` finite: pivots of the size of rounding errors are made that large.
    """
    factor, solve = routine("lapack.?gttrf", b.dtype), routine("lapack.?gttrs", b.dtype)
    n = diagonal.shape[-1]
    more = max(0, 3 - n)  # rows of the identity, since the routines are not made for fewer than three

    def one(sides: Array, low: Array, middle: Array, high: Array) -> list[Array] | None:
        beside, rows = np.zeros(more, b.dtype), np.zeros((more, sides.shape[1]), b.dtype)
        middle = np.concatenate([middle, beside + 1])
        *factors, order, info = factor(np.concatenate([low[1:], beside]), middle, np.concatenate([high[:-1], beside]))
        if perturbed:
            factors[1] = _not_tiny(factors[1], max(np.abs(u).max(initial=0) for u in factors[1:]))
        elif info:
            return None
        return [solve(*factors, order, np.concatenate([sides, rows]))[0][:n]]

    (x,) = _each(one, [b, below, diagonal, above], [(b.shape[-2:], b.dtype)])
    return x


def _not_tiny(pivots: Array, size: float) -> Array:
    """Pivots, of which none is below the rounding errors of numbers of a size."""
    info = np.finfo(pivots.dtype)
    least = max(info.eps * size, info.tiny)
    return np.where(np.abs(pivots) < least, np.asarray(least, pivots.dtype), pivots)
