"""Eigenvalues of general matrices and the condensed forms beside them (LAPACK's geev, gees, gehrd, sytrd, geqp3, gtsv).

Names follow LAPACK where NumPy has none. They have no gradient: programs that come from elsewhere bring theirs along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DTYPES, DType
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import eigen as kernels
from gspmd.ops.factorizations import EighAttrs
from gspmd.ops.linalg import require_matrices, require_square, stacked_rule
from gspmd.ops.rules import real_part_dtype, require, require_count


@dataclass(frozen=True, slots=True)
class EigAttrs(Attrs):
    """Which eigenvectors are wanted beside the eigenvalues."""

    left: bool = False
    right: bool = True


@dataclass(frozen=True, slots=True)
class TridiagonalSolveAttrs(Attrs):
    """Whether singular matrices are moved by as much as rounding does, so that the solution is finite."""

    perturbed: bool = False


def _complex(dtype: DType) -> DType:
    return DTYPES["c128" if dtype.itemsize == 8 + 8 * (dtype.kind == "c") else "c64"]


def _square(op: str, types: Types) -> tuple[TensorType, tuple[int, ...], int]:
    """The operand, its stack, and the size of its matrices."""
    require_count(op, types, 1)
    require_matrices(op, types[0])
    require_square(op, types[0])
    x = types[0].bare
    return x, x.shape[:-2], x.shape[-1]


def _rule(work: int) -> Any:
    """The rule of stacks of square matrices that take work * n^3 operations each."""

    def rule(types: Types, results: Types, attrs: Attrs) -> Rule:
        m, n = types[0].shape[-2:]
        return stacked_rule(types, results, work * m * n * min(m, n))

    return rule


def _vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    if all(ct is None for ct in cotangents):
        return [None] * len(node.operands)
    raise TypeRuleError(f"{node.op.name} has no gradient", rule=f"{node.op.name}.D1", loc=node.loc)


# -- eigenvalues -----------------------------------------------------------------------------------------------------


def _eig_infer(types: Types, attrs: EigAttrs, regions: tuple[Region, ...]) -> Types:
    x, lead, n = _square("eig", types)
    dtype = _complex(x.dtype)
    vectors = TensorType(dtype, x.shape)
    return (TensorType(dtype, (*lead, n)), *[vectors] * (attrs.left + attrs.right))


def _eig_kernel(attrs: EigAttrs, x: Array) -> tuple[Array, ...] | Array:
    values, *vectors = kernels.eig(x, attrs.left, attrs.right)
    return (values, *vectors) if vectors else values


EIG = OpDef(
    "eig",
    EigAttrs,
    _eig_infer,
    rule=_rule(25),
    kernel=_eig_kernel,
    vjp=_vjp,
    examples=(
        "eig(f32[5, 4, 4])",
        "eig(c64[3, 3]) left=true",
        "eig(f64[2, 3, 3]) right=false",
        "eig(c128[3, 2, 2]) left=true right=false",
    ),
    doc="The eigenvalues of square matrices, then the left and right eigenvectors that are wanted, as columns.",
)


def _schur_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    x, lead, n = _square("schur", types)
    return x, x, TensorType(_complex(x.dtype), (*lead, n))


def _schur_kernel(attrs: Attrs, x: Array) -> tuple[Array, Array, Array]:
    return kernels.schur(x)


SCHUR = OpDef(
    "schur",
    Attrs,
    _schur_infer,
    rule=_rule(25),
    kernel=_schur_kernel,
    vjp=_vjp,
    examples=("schur(f32[5, 4, 4])", "schur(c64[3, 3])", "schur(f64[2, 3, 3])"),
    doc="The triangle t (real: quasi-triangle) and the unitary z with x = z t z^H, and the eigenvalues of x.",
)

# -- condensed forms -------------------------------------------------------------------------------------------------


def _gehrd_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    x, lead, n = _square("gehrd", types)
    return x, x.with_shape((*lead, max(n - 1, 0)))


def _gehrd_kernel(attrs: Attrs, x: Array) -> tuple[Array, Array]:
    return kernels.gehrd(x)


GEHRD = OpDef(
    "gehrd",
    Attrs,
    _gehrd_infer,
    rule=_rule(4),
    kernel=_gehrd_kernel,
    vjp=_vjp,
    examples=("gehrd(f32[5, 4, 4])", "gehrd(c128[3, 3])"),
    doc="Hessenberg's form as LAPACK leaves it: reflectors below the first subdiagonal, and their scales.",
)


def _sytrd_infer(types: Types, attrs: EighAttrs, regions: tuple[Region, ...]) -> Types:
    x, lead, n = _square("sytrd", types)
    real, beside = real_part_dtype(x.dtype), (*lead, max(n - 1, 0))
    return x, TensorType(real, (*lead, n)), TensorType(real, beside), x.with_shape(beside)


def _sytrd_kernel(attrs: EighAttrs, x: Array) -> tuple[Array, Array, Array, Array]:
    return kernels.sytrd(x, attrs.lower)


SYTRD = OpDef(
    "sytrd",
    EighAttrs,
    _sytrd_infer,
    rule=_rule(2),
    kernel=_sytrd_kernel,
    vjp=_vjp,
    examples=("sytrd(f32[5, 4, 4])", "sytrd(c64[3, 3]) lower=false"),
    doc="The tridiagonal form of Hermitian matrices: packed with reflectors, diagonal, the one beside it, scales.",
)


def _geqp3_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    require_count("geqp3", types, 1)
    require_matrices("geqp3", types[0])
    x = types[0].bare
    *lead, m, n = x.shape
    return x, TensorType(DTYPES["i32"], (*lead, n)), x.with_shape((*lead, min(m, n)))


def _geqp3_kernel(attrs: Attrs, x: Array) -> tuple[Array, Array, Array]:
    return kernels.geqp3(x)


GEQP3 = OpDef(
    "geqp3",
    Attrs,
    _geqp3_infer,
    rule=_rule(3),
    kernel=_geqp3_kernel,
    vjp=_vjp,
    examples=("geqp3(f32[5, 4, 3])", "geqp3(c64[3, 5])"),
    doc="QR with permuted columns: packed as by geqrf, which column came where (from 0), the reflectors' scales.",
)

# -- tridiagonal_solve -----------------------------------------------------------------------------------------------


def _solve_infer(types: Types, attrs: TridiagonalSolveAttrs, regions: tuple[Region, ...]) -> Types:
    """C3: the diagonals are as long as the sides are high, of one dtype and stack."""
    op = "tridiagonal_solve"
    require_count(op, types, 4)
    b = types[3].bare
    require_matrices(op, b, 3)
    for i, t in enumerate(types[:3]):
        ok = t.dtype == b.dtype and t.shape == b.shape[:-1]
        require(ok, f"{op}.C3", f"diagonal {i}, {t.bare.text()}, does not fit the sides {b.text()}")
    return (b,)


def _solve_rule(types: Types, results: Types, attrs: TridiagonalSolveAttrs) -> Rule:
    """The sides pass one by one, and a sum of sides has the sum of their solutions."""
    *lead, n, sides = types[3].shape
    factors = (*map(Factor, lead), Factor(n, "whole"), Factor(sides))
    both = identity_map(len(factors))
    return Rule(factors, (both[:-1],) * 3 + (both,), (both,), ((3,),), 8 * prod(types[3].shape))


def _solve_kernel(attrs: TridiagonalSolveAttrs, below: Array, diagonal: Array, above: Array, b: Array) -> Array:
    return kernels.tridiagonal_solve(below, diagonal, above, b, attrs.perturbed)


TRIDIAGONAL_SOLVE = OpDef(
    "tridiagonal_solve",
    TridiagonalSolveAttrs,
    _solve_infer,
    rule=_solve_rule,
    kernel=_solve_kernel,
    vjp=_vjp,
    examples=(
        "tridiagonal_solve(f32[5, 4], f32[5, 4], f32[5, 4], f32[5, 4, 3])",
        "tridiagonal_solve(c64[3], c64[3], c64[3], c64[3, 2])",
        "tridiagonal_solve(f64[2, 5], f64[2, 5], f64[2, 5], f64[2, 5, 2]) perturbed=true",
    ),
    doc="The x with a x = b for a of three diagonals (operands 0 to 2: below, on, above) and sides b (operand 3).",
)

FAMILY: tuple[OpDef[Any], ...] = (EIG, SCHUR, GEHRD, SYTRD, GEQP3, TRIDIAGONAL_SOLVE)
