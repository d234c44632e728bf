"""Triangular factors and solves of stacks of matrices (StableHLO: cholesky, triangular_solve; LAPACK: gesv).

Stacks are split freely, matrices never: the strategy moves an axis that splits a matrix to the stack, or to the right
sides of a solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.rule import Factor, Rule, TensorMap, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import linalg as kernels
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.matrices import adjoint, conjugated, lower_triangle, product, transposed, upper_triangle
from gspmd.ops.rules import require, require_count, require_kind

TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


@dataclass(frozen=True, slots=True)
class CholeskyAttrs(Attrs):
    """Whether the lower triangle is read and given, or the upper."""

    lower: bool = False


@dataclass(frozen=True, slots=True)
class TriangularSolveAttrs(Attrs):
    """On which side the triangle stands, which one it is, whether its diagonal counts as ones, and op."""

    left_side: bool = True
    lower: bool = True
    unit_diagonal: bool = False
    transpose_a: str = "NO_TRANSPOSE"


def require_matrices(op: str, type_: TensorType, number: int = 0) -> None:
    """C1: f32, f64 or complex. C2: at least two dimensions."""
    require_kind(op, "C1", type_, "fc", number)
    require(type_.dtype.itemsize >= 4, f"{op}.C1", f"operand {number} is {type_.bare.text()}: convert it to f32 first")
    require(type_.rank >= 2, f"{op}.C2", f"operand {number} is {type_.bare.text()}, not matrices")


def require_square(op: str, type_: TensorType, number: int = 0) -> None:
    """C3: as many rows as columns."""
    m, n = type_.shape[-2:]
    require(m == n, f"{op}.C3", f"the matrices of operand {number}, {type_.bare.text()}, are not square")


def stacked_rule(types: Types, results: Types, work: int, linear: tuple[tuple[int, ...], ...] = ()) -> Rule:
    """Stack dimensions pass, all others are whole; `work` is the number of scalar operations on one matrix."""
    lead = types[0].shape[:-2]
    factors = [Factor(n) for n in lead]
    found = identity_map(len(lead))
    maps: list[TensorMap] = []
    for t in (*types, *results):
        own = range(len(factors), len(factors) + t.rank - len(lead))
        factors += [Factor(n, "whole") for n in t.shape[len(lead) :]]
        maps.append((*found, *((f,) for f in own)))
    return Rule(tuple(factors), tuple(maps[: len(types)]), tuple(maps[len(types) :]), linear, prod(lead) * work)


# -- cholesky --------------------------------------------------------------------------------------------------------


def _cholesky_infer(types: Types, attrs: CholeskyAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("cholesky", types, 1)
    require_matrices("cholesky", types[0])
    require_square("cholesky", types[0])
    return (types[0].bare,)


def _cholesky_kernel(attrs: CholeskyAttrs, x: Array) -> Array:
    return kernels.cholesky(x, attrs.lower)


def _cholesky_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """Murray 2016, section 3: with L the factor and phi a lower triangle with half its diagonal.

    The other triangle of the operand is not read and gets nothing.
    """
    attrs, (ct,) = node.attrs, cotangents
    assert isinstance(attrs, CholeskyAttrs)
    if ct is None:
        return [None]
    bar, factor = conjugated(Expression(gradient.builder, ct)), Expression(gradient.builder, node.result)
    if not attrs.lower:
        bar, factor = adjoint(bar), adjoint(factor)
    inner = lower_triangle(product(adjoint(factor), lower_triangle(bar)), diagonal=0.5)
    solved = _solve_triangle(factor, inner, left=True, transpose="ADJOINT")
    middle = _solve_triangle(factor, solved, left=False, transpose="NO_TRANSPOSE")
    back = lower_triangle(middle + adjoint(middle), diagonal=0.5)
    return [conjugated(back if attrs.lower else adjoint(back)).value]


def _solve_triangle(a: Expression, b: Expression, left: bool, transpose: str) -> Expression:
    return a.apply(TRIANGULAR_SOLVE, b, left_side=left, lower=True, transpose_a=transpose)


CHOLESKY = OpDef(
    "cholesky",
    CholeskyAttrs,
    _cholesky_infer,
    rule=lambda types, results, attrs: stacked_rule(types, results, types[0].shape[-1] ** 3 // 3),
    kernel=_cholesky_kernel,
    vjp=_cholesky_vjp,
    examples=(
        "cholesky(f32[5, 4, 4]) lower=true",
        "cholesky(f64[3, 3])",
        "cholesky(c64[2, 3, 3, 3]) lower=true",
        "cholesky(c128[6, 2, 2]) lower=false",
    ),
    doc="The triangular factor of positive definite Hermitian matrices; NaN for others.",
)

# -- triangular_solve ------------------------------------------------------------------------------------------------


def _triangular_solve_infer(types: Types, attrs: TriangularSolveAttrs, regions: tuple[Region, ...]) -> Types:
    """C4: one dtype and stack. C5: sizes agree. C6: op."""
    op = "triangular_solve"
    require_count(op, types, 2)
    for i, t in enumerate(types):
        require_matrices(op, t, i)
    require_square(op, types[0])
    _require_system(op, types, -2 if attrs.left_side else -1)
    require(attrs.transpose_a in TRANSPOSES, f"{op}.C6", f"transpose_a {attrs.transpose_a!r} is none of {TRANSPOSES}")
    return (types[1].bare,)


def _require_system(op: str, types: Types, side: int) -> None:
    a, b = (t.bare for t in types)
    both = f"{a.text()} and {b.text()}"
    require(a.dtype == b.dtype and a.shape[:-2] == b.shape[:-2], f"{op}.C4", f"dtypes and stacks differ: {both}")
    require(a.shape[-1] == b.shape[side], f"{op}.C5", f"the sizes of matrix and sides differ: {both}")


def _system_rule(types: Types, results: Types, left: bool, work: int) -> Rule:
    """The dimension of the right sides that is not solved for passes; a sum of right sides has a sum of solutions."""
    b = types[1]
    rank = b.rank
    lead = identity_map(rank - 2)
    n = b.shape[-2 if left else -1]
    others = b.shape[-1 if left else -2]
    factors = (*map(Factor, b.shape[:-2]), Factor(n, "whole"), Factor(n, "whole"), Factor(others))
    solved, free = (rank - 1,), (rank,)
    sides = (*lead, solved, free) if left else (*lead, free, solved)
    return Rule(factors, ((*lead, (rank - 2,), (rank - 1,)), sides), (sides,), ((1,),), prod(b.shape[:-2]) * work)


def _triangular_solve_rule(types: Types, results: Types, attrs: TriangularSolveAttrs) -> Rule:
    return _system_rule(types, results, attrs.left_side, prod(types[1].shape[-2:]) * types[0].shape[-1])


def _triangular_solve_kernel(attrs: TriangularSolveAttrs, a: Array, b: Array) -> Array:
    return kernels.triangular_solve(a, b, attrs.left_side, attrs.lower, attrs.unit_diagonal, attrs.transpose_a)


def _triangular_solve_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    attrs, (ct,) = node.attrs, cotangents
    assert isinstance(attrs, TriangularSolveAttrs)
    if ct is None:
        return [None, None]
    a, x, given = (Expression(gradient.builder, v) for v in (node.operands[0], node.result, ct))
    mode = attrs.transpose_a
    back = {"NO_TRANSPOSE": "TRANSPOSE", "TRANSPOSE": "NO_TRANSPOSE", "ADJOINT": "NO_TRANSPOSE"}[mode]
    matrix = conjugated(a) if mode == "ADJOINT" else a
    side = matrix.apply(
        TRIANGULAR_SOLVE,
        given,
        left_side=attrs.left_side,
        lower=attrs.lower,
        unit_diagonal=attrs.unit_diagonal,
        transpose_a=back,
    )
    outer = -product(side, transposed(x)) if attrs.left_side else -product(transposed(x), side)
    if mode == "TRANSPOSE":
        outer = transposed(outer)
    elif mode == "ADJOINT":
        outer = adjoint(outer)
    skip = int(attrs.unit_diagonal)
    return [(lower_triangle(outer, skip) if attrs.lower else upper_triangle(outer, skip)).value, side.value]


TRIANGULAR_SOLVE = OpDef(
    "triangular_solve",
    TriangularSolveAttrs,
    _triangular_solve_infer,
    rule=_triangular_solve_rule,
    kernel=_triangular_solve_kernel,
    vjp=_triangular_solve_vjp,
    examples=(
        "triangular_solve(f32[5, 4, 4], f32[5, 4, 7])",
        "triangular_solve(f64[3, 3], f64[6, 3]) left_side=false",
        "triangular_solve(c64[3, 4, 4], c64[3, 4, 5]) lower=false transpose_a=ADJOINT",
        "triangular_solve(f32[2, 4, 4], f32[2, 4, 3]) lower=false unit_diagonal=true",
        "triangular_solve(c128[3, 3], c128[5, 3]) left_side=false transpose_a=TRANSPOSE",
        "triangular_solve(c64[2, 3, 3], c64[2, 4, 3]) left_side=false unit_diagonal=true transpose_a=ADJOINT",
        "triangular_solve(f32[3, 3], f32[3, 6]) transpose_a=TRANSPOSE",
    ),
    doc="The x with op(a) x = b, or x op(a) = b, for triangles a (operand 0) and sides b (operand 1).",
)

# -- solve -----------------------------------------------------------------------------------------------------------


def _solve_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    require_count("solve", types, 2)
    for i, t in enumerate(types):
        require_matrices("solve", t, i)
    require_square("solve", types[0])
    _require_system("solve", types, -2)
    return (types[1].bare,)


def _solve_rule(types: Types, results: Types, attrs: Attrs) -> Rule:
    n = types[0].shape[-1]
    return _system_rule(types, results, True, 2 * n**3 // 3 + 2 * prod(types[1].shape[-2:]) * n)


def _solve_kernel(attrs: Attrs, a: Array, b: Array) -> Array:
    return kernels.solve(a, b)


def _solve_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,) = cotangents
    if ct is None:
        return [None, None]
    a, x, given = (Expression(gradient.builder, v) for v in (node.operands[0], node.result, ct))
    side = transposed(a).apply(SOLVE, given)
    return [(-product(side, transposed(x))).value, side.value]


SOLVE = OpDef(
    "solve",
    Attrs,
    _solve_infer,
    rule=_solve_rule,
    kernel=_solve_kernel,
    vjp=_solve_vjp,
    examples=("solve(f32[5, 4, 4], f32[5, 4, 7])", "solve(c64[3, 3], c64[3, 5])", "solve(f64[2, 3, 3], f64[2, 3, 1])"),
    doc="The x with a x = b for square matrices a (operand 0) and sides b (operand 1); NaN where a is singular.",
)

FAMILY: tuple[OpDef[Any], ...] = (CHOLESKY, TRIANGULAR_SOLVE, SOLVE)
