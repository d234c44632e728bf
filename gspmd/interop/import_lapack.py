"""Custom calls to LAPACK under the names that JAX gives it on CPUs, and those for which it has names of its own.

The `info` results are zero here: where a factorisation fails, ours gives NaN, which is what JAX makes of it. What
LAPACK leaves in operands that it uses up is not told: it is the operands as they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gspmd.interop.import_scope import Bound
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Value
from gspmd.ir.types import TensorType
from gspmd.ops.eigen import EIG, GEHRD, GEQP3, SCHUR, SYTRD, TRIDIAGONAL_SOLVE, EigAttrs, TridiagonalSolveAttrs
from gspmd.ops.elementwise import ADD, IMAG, REAL
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.factorizations import EIGH, GEQRF, HOUSEHOLDER_PRODUCT, LU, SVD, EighAttrs, FullAttrs
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE, CholeskyAttrs, TriangularSolveAttrs
from gspmd.ops.literal import CONSTANT, full, scalar
from gspmd.ops.matrices import adjoint, product
from gspmd.ops.moving import PAD, SLICE

Routine = Callable[[Visit], Sequence[Bound]]
_NAME = re.compile(r"(?:lapack_)([sdcz])(\w+?)(?:_ffi)?")
_CONFIGS = ("backend_config", "mhlo.backend_config", "mhlo.attributes")
_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def lapack_routine(target: str) -> Routine | None:
    """How to read a call to LAPACK, if the target is one that is known."""
    found = _NAME.fullmatch(target)
    return ROUTINES.get(found[2]) if found else None


def read_config(v: Visit) -> dict[str, Any]:
    """The parameters of a call: numbers by name."""
    found: dict[str, Any] = {}
    for name in _CONFIGS:
        if v.has(name):
            held = v.attribute(name)
            if hasattr(held, "keys") or str(held).startswith("{"):
                found |= {item.name: getattr(item.attr, "value", item.attr) for item in held}
    return found


def _letter(config: dict[str, Any], name: str) -> str:
    return chr(int(config[name]))


def _zeros(v: Visit, number: int) -> Value:
    """A result that nobody computes: `info`, which says that all went well, or vectors that are not wanted."""
    type_ = v.results[number]
    assert isinstance(type_, TensorType)
    return full(v.builder, 0, type_.dtype, type_.shape)


def _info(v: Visit) -> Value:
    return _zeros(v, -1)


def _from_one(v: Visit, numbers: Value) -> Value:
    """Numbers of rows or columns as LAPACK counts them."""
    return ADD(v.builder, numbers, full(v.builder, 1, numbers.type.dtype, numbers.type.shape))


# -- factors ---------------------------------------------------------------------------------------------------------


def _getrf(v: Visit) -> Sequence[Bound]:
    read_config(v)
    lu, pivots, _ = v.emit(LU, v.operands, Attrs())
    return [lu, _from_one(v, pivots), _info(v)]


def _potrf(v: Visit) -> Sequence[Bound]:
    lower = _letter(read_config(v), "uplo") == "L"
    (factor,) = v.emit(CHOLESKY, v.operands, CholeskyAttrs(lower))
    return [factor, _info(v)]


def _geqrf(v: Visit) -> Sequence[Bound]:
    read_config(v)
    return v.emit(GEQRF, v.operands, Attrs())


def _geqp3(v: Visit) -> Sequence[Bound]:
    """Columns that come first whatever their size (a second operand that is not zero) are not known here."""
    read_config(v)
    x, first = v.operands
    if not _is_zero(v, first):
        raise Unsupported("a pivoted QR (geqp3) with columns that are to come first")
    packed, order, taus = v.emit(GEQP3, (x,), Attrs())
    return [packed, _from_one(v, order), taus]


def _is_zero(v: Visit, x: Value) -> bool:
    """Whether a value is a constant of zeros."""
    node = next((n for n in reversed(v.builder.nodes) if x in n.results), None)
    if node is not None and node.op is BROADCAST_IN_DIM:
        return _is_zero(v, node.operands[0])
    attrs: Any = None if node is None else node.attrs
    return node is not None and node.op is CONSTANT and not np.any(attrs.value.array)


def _orgqr(v: Visit) -> Sequence[Bound]:
    read_config(v)
    return v.emit(HOUSEHOLDER_PRODUCT, v.operands, Attrs())


def _ormqr(v: Visit) -> Sequence[Bound]:
    """A product with the whole orthogonal matrix, which is made of the reflectors first."""
    config = read_config(v)
    b, (a, taus, c) = v.builder, v.operands
    *lead, m, n = a.type.shape
    k = taus.type.shape[-1]
    if n > k:
        none = (0,) * a.type.rank
        a = SLICE(b, a, start=none, limit=(*lead, m, k), stride=(1,) * a.type.rank)
    none, more = (0,) * a.type.rank, (*(0 for _ in lead), 0, m - k)
    a = PAD(b, a, scalar(b, 0, a.type.dtype), low=none, high=more, interior=none)
    q = Expression(b, HOUSEHOLDER_PRODUCT(b, a, taus))
    q = adjoint(q) if config["transpose"] else q
    other = Expression(b, c)
    return [(product(q, other) if config["left"] else product(other, q)).value]


def _gesdd(v: Visit) -> Sequence[Bound]:
    """Results: the used up operand, singular values, left vectors, right vectors, info."""
    mode = _letter(read_config(v), "mode")
    if mode not in "ASN":
        raise Unsupported(f"singular values in LAPACK's mode {mode}")
    values, left, right = v.emit(SVD, v.operands, FullAttrs(mode == "A"))
    if mode == "N":
        left, right = _zeros(v, 2), _zeros(v, 3)
    return [v.operands[0], values, left, right, _info(v)]


# -- eigenvalues -----------------------------------------------------------------------------------------------------


def _syevd(v: Visit) -> Sequence[Bound]:
    lower = _letter(read_config(v), "uplo") == "L"
    vectors, values = v.emit(EIGH, v.operands, EighAttrs(lower))
    return [vectors, values, _info(v)]


def _geev(v: Visit) -> Sequence[Bound]:
    """Results: eigenvalues (of real matrices their parts apart), left and right vectors, info."""
    config = read_config(v)
    left, right = (_letter(config, f"compute_{side}") == "V" for side in ("left", "right"))
    values, *found = v.emit(EIG, v.operands, EigAttrs(left, right))
    given = iter(found)
    vectors = [next(given) if wanted else _zeros(v, i) for wanted, i in ((left, -3), (right, -2))]
    return [*_parts(v, values), *vectors, _info(v)]


def _parts(v: Visit, values: Value) -> list[Value]:
    """Eigenvalues as LAPACK gives them: of real matrices real and imaginary parts apart."""
    if v.operands[0].type.dtype.kind == "c":
        return [values]
    return [REAL(v.builder, values), IMAG(v.builder, values)]


def _gees(v: Visit) -> Sequence[Bound]:
    """Results: Schur's form, its vectors, eigenvalues, how many were sorted to the front, info."""
    config = read_config(v)
    if _letter(config, "sort") != "N":
        raise Unsupported("Schur's form with sorted eigenvalues")
    t, z, values = v.emit(SCHUR, v.operands, Attrs())
    vectors = z if _letter(config, "mode") == "V" else _zeros(v, 1)
    return [t, vectors, *_parts(v, values), _zeros(v, -2), _info(v)]


def _gehrd(v: Visit) -> Sequence[Bound]:
    config, n = read_config(v), v.operands[0].type.shape[-1]
    if (config["low"], config["high"]) != (1, n):
        raise Unsupported(f"Hessenberg's form of a part of the matrix, {config['low']} to {config['high']} of {n}")
    return [*v.emit(GEHRD, v.operands, Attrs()), _info(v)]


def _sytrd(v: Visit) -> Sequence[Bound]:
    lower = _letter(read_config(v), "uplo") == "L"
    return [*v.emit(SYTRD, v.operands, EighAttrs(lower)), _info(v)]


# -- solves ----------------------------------------------------------------------------------------------------------


def _trsm(v: Visit) -> Sequence[Bound]:
    config = read_config(v)
    side, uplo, trans, diag = (_letter(config, n) for n in ("side", "uplo", "trans_x", "diag"))
    attrs = TriangularSolveAttrs(side == "L", uplo == "L", diag == "U", _TRANSPOSES[trans])
    return v.emit(TRIANGULAR_SOLVE, v.operands[:2], attrs)


def _gtsv(v: Visit) -> Sequence[Bound]:
    """Results: the used up diagonals, the solution, info."""
    read_config(v)
    (x,) = v.emit(TRIDIAGONAL_SOLVE, v.operands, TridiagonalSolveAttrs())
    return [*v.operands[:3], x, _info(v)]


def _solve_perturbed(v: Visit) -> Sequence[Bound]:
    """What JAX has for inverse iterations, which solve systems that are all but singular."""
    read_config(v)
    return v.emit(TRIDIAGONAL_SOLVE, v.operands, TridiagonalSolveAttrs(True))


ROUTINES: Mapping[str, Routine] = {
    "getrf": _getrf,
    "potrf": _potrf,
    "geqrf": _geqrf,
    "geqp3": _geqp3,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "ormqr": _ormqr,
    "unmqr": _ormqr,
    "gesdd": _gesdd,
    "gesvd": _gesdd,
    "syevd": _syevd,
    "heevd": _syevd,
    "geev": _geev,
    "gees": _gees,
    "gehrd": _gehrd,
    "sytrd": _sytrd,
    "hetrd": _sytrd,
    "trsm": _trsm,
    "gtsv": _gtsv,
}


# -- calls by names of their own -------------------------------------------------------------------------------------


def _lu(v: Visit) -> Sequence[Bound]:
    """The factors, the pivots from 0, and the permutation of the rows."""
    read_config(v)
    return v.emit(LU, v.operands, Attrs())


def _eigh(v: Visit) -> Sequence[Bound]:
    """The config is a text: lower, sorted, sweeps, tolerance."""
    lower = str(v.value("backend_config")).split(",")[0] == "1"
    return v.emit(EIGH, v.operands, EighAttrs(lower))


CALLS: Mapping[str, Routine] = {
    "tridiagonal_solve_perturbed_ffi": _solve_perturbed,
    "Qr": _geqrf,
    "ProductOfElementaryHouseholderReflectors": _orgqr,
    "LuDecomposition": _lu,
    "Eigh": _eigh,
}
