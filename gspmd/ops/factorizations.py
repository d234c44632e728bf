"""LU, QR, singular values and eigenvalues of stacks of matrices (LAPACK's getrf, geqrf, orgqr, gesdd, syevd).

Names follow jax.lax.linalg. Gradients are those of the literature (Giles 2008; Walter and Lehmann 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.types import TensorType
from gspmd.kernels import linalg as kernels
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.linalg import TRIANGULAR_SOLVE, require_matrices, require_square, stacked_rule
from gspmd.ops.matrices import (
    adjoint,
    columns,
    conjugated,
    lower_triangle,
    product,
    rows,
    spread_matrix,
    transposed,
    upper_triangle,
)
from gspmd.ops.rules import real_part_dtype, require, require_count

_I32 = DTYPES["i32"]


@dataclass(frozen=True, slots=True)
class EighAttrs(Attrs):
    """Which triangle of the Hermitian matrices is read."""

    lower: bool = True


@dataclass(frozen=True, slots=True)
class FullAttrs(Attrs):
    """Whether the bases are completed to square matrices."""

    full_matrices: bool = False


def _cubic(types: Types) -> int:
    m, n = types[0].shape[-2:]
    return 2 * m * n * min(m, n)


def _matrices(op: str, types: Types, count: int = 1) -> tuple[tuple[int, ...], int, int]:
    require_count(op, types, count)
    require_matrices(op, types[0])
    *lead, m, n = types[0].shape
    return tuple(lead), m, n


def _no_gradient(op: str, node: Node, why: str) -> TypeRuleError:
    return TypeRuleError(f"{why} has no gradient", rule=f"{op}.D1", loc=node.loc)


# -- lu --------------------------------------------------------------------------------------------------------------


def _lu_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    lead, m, n = _matrices("lu", types)
    return types[0].bare, TensorType(_I32, (*lead, min(m, n))), TensorType(_I32, (*lead, m))


def _lu_kernel(attrs: Attrs, x: Array) -> tuple[Array, Array, Array]:
    return kernels.lu(x)


def _lu_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """For square matrices: A' = P^T L^-H (tril_strict(L^H L') + triu(U' U^H)) U^-H."""
    ct, b = cotangents[0], gradient.builder
    if ct is None:
        return [None]
    m, n = node.operands[0].type.shape[-2:]
    if m != n:
        raise _no_gradient("lu", node, "the LU factorisation of matrices that are not square")
    bar, factors = conjugated(Expression(b, ct)), Expression(b, node.results[0])
    upper = upper_triangle(factors)
    lower = lower_triangle(factors, 1) + spread_matrix(factors, np.eye(n))
    inner = lower_triangle(product(adjoint(lower), lower_triangle(bar, 1)), 1)
    inner = inner + upper_triangle(product(upper_triangle(bar), adjoint(upper)))
    left = lower.apply(TRIANGULAR_SOLVE, inner, lower=True, unit_diagonal=True, transpose_a="ADJOINT")
    both = upper.apply(TRIANGULAR_SOLVE, left, left_side=False, lower=False, transpose_a="ADJOINT")
    # Row i of the factors is row permutation[i] of the operand: back by the product with the permutation's matrix.
    shape = both.value.type.shape
    order = rows(Expression(b, node.results[2]), shape)
    matrix = order.compare("EQ", spread_matrix(order, np.broadcast_to(np.arange(n), (n, n)))).convert(both.dtype)
    return [conjugated(product(transposed(matrix), both)).value]


LU = OpDef(
    "lu",
    Attrs,
    _lu_infer,
    rule=lambda types, results, attrs: stacked_rule(types, results, _cubic(types) // 2),
    kernel=_lu_kernel,
    vjp=_lu_vjp,
    examples=("lu(f32[5, 4, 4])", "lu(f64[3, 4, 2])", "lu(c64[2, 5])", "lu(c128[2, 3, 3])"),
    doc="LU with partial pivoting: both triangles in one matrix, the pivots (from 0), and the permutation of the rows.",
)

# -- qr --------------------------------------------------------------------------------------------------------------


def _geqrf_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    lead, m, n = _matrices("geqrf", types)
    return types[0].bare, types[0].with_shape((*lead, min(m, n)))


def _geqrf_kernel(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    return kernels.geqrf(x)


def _reflectors_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    raise _no_gradient(node.op.name, node, "QR by way of its reflectors")


GEQRF = OpDef(
    "geqrf",
    Attrs,
    _geqrf_infer,
    rule=lambda types, results, attrs: stacked_rule(types, results, _cubic(types)),
    kernel=_geqrf_kernel,
    vjp=_reflectors_vjp,
    examples=("geqrf(f32[5, 4, 3])", "geqrf(c128[2, 3])"),
    doc="QR as LAPACK leaves it: the upper triangle with the reflectors below it, and the reflectors' scales.",
)


def _householder_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    """C3: not wider than high. C4: scales of the same dtype and stack, not more than columns."""
    op = "householder_product"
    lead, m, n = _matrices(op, types, 2)
    a, taus = (t.bare for t in types)
    require(m >= n, f"{op}.C3", f"the matrices of {a.text()} are wider than high")
    ok = taus.dtype == a.dtype and taus.shape[:-1] == lead and taus.rank == a.rank - 1 and taus.shape[-1] <= n
    require(ok, f"{op}.C4", f"the scales {taus.text()} do not fit the reflectors {a.text()}")
    return (a,)


def _householder_kernel(attrs: Attrs, a: Array, taus: Array) -> Array:
    return kernels.householder_product(a, taus)


HOUSEHOLDER_PRODUCT = OpDef(
    "householder_product",
    Attrs,
    _householder_infer,
    rule=lambda types, results, attrs: stacked_rule(types, results, 2 * _cubic(types)),
    kernel=_householder_kernel,
    vjp=_reflectors_vjp,
    examples=("householder_product(f32[5, 4, 3], f32[5, 3])", "householder_product(c64[4, 4], c64[2])"),
    doc="The orthonormal columns that reflectors (operand 0, as from geqrf) with scales (operand 1) make.",
)


def _qr_infer(types: Types, attrs: FullAttrs, regions: tuple[Region, ...]) -> Types:
    lead, m, n = _matrices("qr", types)
    k = m if attrs.full_matrices else min(m, n)
    return types[0].with_shape((*lead, m, k)), types[0].with_shape((*lead, k, n))


def _qr_kernel(attrs: FullAttrs, x: Array) -> tuple[Array, Array]:
    return kernels.qr(x, attrs.full_matrices)


def _qr_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """A' = (Q' + Q copyltu(M)) R^-H with M = R R'^H - Q'^H Q, copyltu the Hermitian matrix of a lower triangle."""
    m, n = node.operands[0].type.shape[-2:]
    if m < n or node.results[0].type.shape[-1] != n:
        raise _no_gradient("qr", node, "the QR factorisation of wide matrices or with a completed basis")
    b = gradient.builder
    given = [gradient.zeros(v.type.bare) if ct is None else ct for ct, v in zip(cotangents, node.results, strict=True)]
    q_bar, r_bar = (conjugated(Expression(b, v)) for v in given)
    q, r = (Expression(b, v) for v in node.results)
    inner = product(r, adjoint(upper_triangle(r_bar))) - product(adjoint(q_bar), q)
    half = lower_triangle(inner, diagonal=0.5)
    total = q_bar + product(q, half + adjoint(half))
    back = r.apply(TRIANGULAR_SOLVE, total, left_side=False, lower=False, transpose_a="ADJOINT")
    return [conjugated(back).value]


QR = OpDef(
    "qr",
    FullAttrs,
    _qr_infer,
    rule=lambda types, results, attrs: stacked_rule(types, results, 2 * _cubic(types)),
    kernel=_qr_kernel,
    vjp=_qr_vjp,
    examples=("qr(f32[5, 4, 3])", "qr(c64[3, 3])", "qr(f64[2, 3, 2])"),
    doc="An orthonormal basis of the columns, and the upper triangle of their coordinates in it.",
)

# -- svd and eigh ----------------------------------------------------------------------------------------------------


def _svd_infer(types: Types, attrs: FullAttrs, regions: tuple[Region, ...]) -> Types:
    lead, m, n = _matrices("svd", types)
    k, x = min(m, n), types[0]
    rows_, columns_ = (m, n) if attrs.full_matrices else (k, k)
    values = TensorType(real_part_dtype(x.dtype), (*lead, k))
    return values, x.with_shape((*lead, m, rows_)), x.with_shape((*lead, columns_, n))


def _svd_kernel(attrs: FullAttrs, x: Array) -> tuple[Array, Array, Array]:
    return kernels.svd(x, attrs.full_matrices)


def _svd_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The singular values alone: A' = U diag(s') V^H."""
    ct = cotangents[0]
    if cotangents[1] is not None or cotangents[2] is not None:
        raise _no_gradient("svd", node, "a singular vector, which is one of many,")
    u, vh = (Expression(gradient.builder, v) for v in node.results[1:])
    if ct is None:
        return [None]
    k = node.results[0].type.shape[-1]
    if u.value.type.shape[-1] != k or vh.value.type.shape[-2] != k:
        raise _no_gradient("svd", node, "a completed basis")
    weights = columns(Expression(gradient.builder, ct).convert(u.dtype), u.value.type.shape)
    return [conjugated(product(u * weights, vh)).value]


SVD = OpDef(
    "svd",
    FullAttrs,
    _svd_infer,
    rule=lambda types, results, attrs: stacked_rule(types, results, 10 * _cubic(types)),
    kernel=_svd_kernel,
    vjp=_svd_vjp,
    examples=("svd(f32[5, 4, 3])", "svd(c64[2, 3]) full_matrices=true", "svd(f64[2, 3, 3])"),
    doc="Singular values, largest first, the left vectors as columns, and the right ones as conjugated rows.",
)


def _eigh_infer(types: Types, attrs: EighAttrs, regions: tuple[Region, ...]) -> Types:
    lead, m, _ = _matrices("eigh", types)
    require_square("eigh", types[0])
    return types[0].bare, TensorType(real_part_dtype(types[0].dtype), (*lead, m))


def _eigh_kernel(attrs: EighAttrs, x: Array) -> tuple[Array, Array]:
    return kernels.eigh(x, attrs.lower)


def _eigh_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """A' = V (diag(w') + F * V^H V') V^H with F_ij = 1 / (w_j - w_i), for the triangle that is read."""
    attrs, (vector_ct, value_ct), b = node.attrs, cotangents, gradient.builder
    assert isinstance(attrs, EighAttrs)
    if vector_ct is None and value_ct is None:
        return [None]
    v = Expression(b, node.results[0])
    shape, n = v.value.type.shape, v.value.type.shape[-1]
    eye = spread_matrix(v, np.eye(n))
    inner = v.number(0)
    if value_ct is not None:
        inner = columns(Expression(b, value_ct).convert(v.dtype), shape) * eye
    if vector_ct is not None:
        w = Expression(b, node.results[1]).convert(v.dtype)
        gap = columns(w, shape) - rows(w, shape) + eye
        inner = inner + product(adjoint(v), conjugated(Expression(b, vector_ct))) * (1 - eye) / gap
    whole = product(product(v, inner), adjoint(v))
    back = lower_triangle(whole + adjoint(whole), diagonal=0.5)
    return [conjugated(back if attrs.lower else adjoint(back)).value]


EIGH = OpDef(
    "eigh",
    EighAttrs,
    _eigh_infer,
    rule=lambda types, results, attrs: stacked_rule(types, results, 5 * _cubic(types)),
    kernel=_eigh_kernel,
    vjp=_eigh_vjp,
    examples=("eigh(f32[5, 4, 4])", "eigh(c64[3, 3]) lower=false", "eigh(f64[2, 3, 3])"),
    doc="Eigenvectors of Hermitian matrices as columns, and their eigenvalues, smallest first.",
)

FAMILY: tuple[OpDef[Any], ...] = (LU, GEQRF, HOUSEHOLDER_PRODUCT, QR, SVD, EIGH)
