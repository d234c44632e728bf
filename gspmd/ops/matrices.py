"""Formulas on stacks of matrices, for gradients: products, adjoints, triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from gspmd.ir.attrs import Dense, ResultShape
from gspmd.ops.dot import DOT_GENERAL
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.layout import BROADCAST_IN_DIM, TRANSPOSE
from gspmd.ops.literal import CONSTANT
from gspmd.ops.special import CONJ


def product(a: Expression, b: Expression) -> Expression:
    """The product of matrices in the last two dimensions, stack by stack."""
    rank = a.value.type.rank
    lead = tuple(range(rank - 2))
    return a.apply(DOT_GENERAL, b, lhs_batch=lead, rhs_batch=lead, lhs_contract=(rank - 1,), rhs_contract=(rank - 2,))


def transposed(a: Expression) -> Expression:
    """Rows and columns exchanged."""
    rank = a.value.type.rank
    return a.apply(TRANSPOSE, permutation=(*range(rank - 2), rank - 1, rank - 2))


def conjugated(a: Expression) -> Expression:
    """The complex conjugate."""
    return a.apply(CONJ) if a.dtype.kind == "c" else a


def adjoint(a: Expression) -> Expression:
    """Transposed and conjugated."""
    return conjugated(transposed(a))


def weighted(a: Expression, weights: Any) -> Expression:
    """Every matrix times a constant one, element by element."""
    return a * spread_matrix(a, weights)


def spread_matrix(like: Expression, matrix: Any) -> Expression:
    """A constant matrix repeated for a stack."""
    type_ = like.value.type
    held = CONSTANT(like.builder, value=Dense(np.asarray(matrix).astype(type_.dtype)))
    dims = (type_.rank - 2, type_.rank - 1)
    return Expression(like.builder, BROADCAST_IN_DIM(like.builder, held, shape=ResultShape(type_.shape), dims=dims))


def lower_triangle(a: Expression, below: int = 0, diagonal: float = 1) -> Expression:
    """The lower triangle, without the diagonal if `below` is 1, or with a weight on it."""
    m, n = a.value.type.shape[-2:]
    weights = np.tril(np.ones((m, n)), -below)
    if not below:
        np.fill_diagonal(weights, diagonal)
    return weighted(a, weights)


def upper_triangle(a: Expression, above: int = 0) -> Expression:
    """The upper triangle, without the diagonal if `above` is 1."""
    return weighted(a, np.triu(np.ones(a.value.type.shape[-2:]), above))


def columns(vector: Expression, shape: tuple[int, ...]) -> Expression:
    """A stack of vectors as matrices whose columns they weigh: element j in all of column j."""
    rank = len(shape)
    return vector.apply(BROADCAST_IN_DIM, shape=ResultShape(shape), dims=(*range(rank - 2), rank - 1))


def rows(vector: Expression, shape: tuple[int, ...]) -> Expression:
    """A stack of vectors as matrices whose rows they weigh: element i in all of row i."""
    return vector.apply(BROADCAST_IN_DIM, shape=ResultShape(shape), dims=tuple(range(len(shape) - 1)))
