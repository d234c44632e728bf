"""The general dot product (StableHLO: dot_general): batch, free and contracted dimensions of two operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.rule import Factor, Rule
from gspmd.ir.types import TensorType
from gspmd.kernels import dot as kernels
from gspmd.ops.elementwise import conversion
from gspmd.ops.layout import TRANSPOSE
from gspmd.ops.rules import require, require_count, require_dims


@dataclass(frozen=True, slots=True)
class DotGeneralAttrs(Attrs):
    """Dimensions in pairs: lhs_batch[i] with rhs_batch[i], lhs_contract[i] with rhs_contract[i]; the result's dtype."""

    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()
    lhs_contract: tuple[int, ...] = ()
    rhs_contract: tuple[int, ...] = ()
    dtype: DType | None = None


def _free(rank: int, *used: Sequence[int]) -> list[int]:
    """The dimensions that are in none of the lists."""
    return [d for d in range(rank) if not any(d in u for u in used)]


def _dot_general_infer(types: Types, attrs: DotGeneralAttrs, regions: tuple[Region, ...]) -> Types:
    op = "dot_general"
    require_count(op, types, 2)
    lhs, rhs = types
    require(len(attrs.lhs_batch) == len(attrs.rhs_batch), f"{op}.C1", "lhs and rhs differ in the number of batch dims")
    require(
        len(attrs.lhs_contract) == len(attrs.rhs_contract),
        f"{op}.C2",
        f"lhs contracts {len(attrs.lhs_contract)} dims, rhs {len(attrs.rhs_contract)}",
    )
    require_dims(op, "C3", "lhs dims", attrs.lhs_batch + attrs.lhs_contract, lhs.rank)
    require_dims(op, "C4", "rhs dims", attrs.rhs_batch + attrs.rhs_contract, rhs.rank)
    for rule, word, left, right in (
        ("C5", "batch", attrs.lhs_batch, attrs.rhs_batch),
        ("C6", "contracted", attrs.lhs_contract, attrs.rhs_contract),
    ):
        for a, b in zip(left, right, strict=True):
            require(
                lhs.shape[a] == rhs.shape[b],
                f"{op}.{rule}",
                f"{word} sizes must agree: lhs dim {a} is {lhs.shape[a]}, rhs dim {b} is {rhs.shape[b]}",
            )
    require(
        lhs.dtype == rhs.dtype,
        f"{op}.C7",
        f"operands must have one dtype: lhs is {lhs.bare.text()}, rhs is {rhs.bare.text()}",
        "convert one of them first",
    )
    shape = [lhs.shape[d] for d in attrs.lhs_batch]
    shape += [lhs.shape[d] for d in _free(lhs.rank, attrs.lhs_batch, attrs.lhs_contract)]
    shape += [rhs.shape[d] for d in _free(rhs.rank, attrs.rhs_batch, attrs.rhs_contract)]
    return (TensorType(lhs.dtype if attrs.dtype is None else attrs.dtype, shape),)


def _dot_general_rule(types: Types, results: Types, attrs: DotGeneralAttrs) -> Rule:
    """`bmk,bkn->bmn | k: reduce(add)`, each letter any number of dimensions."""
    factors: list[Factor] = []
    lhs: dict[int, tuple[int, ...]] = {}
    rhs: dict[int, tuple[int, ...]] = {}

    def add(factor: Factor) -> tuple[int, ...]:
        factors.append(factor)
        return (len(factors) - 1,)

    for a, b in zip(attrs.lhs_batch, attrs.rhs_batch, strict=True):
        lhs[a] = rhs[b] = add(Factor(types[0].shape[a]))
    for side, shape, used in (
        (lhs, types[0].shape, attrs.lhs_batch + attrs.lhs_contract),
        (rhs, types[1].shape, attrs.rhs_batch + attrs.rhs_contract),
    ):
        for d in _free(len(shape), used):
            side[d] = add(Factor(shape[d]))
    result = tuple((f,) for f in range(len(factors)))
    # The or of ands does not pass a sum of parts on.
    monoid = "or" if results[0].dtype.kind == "b" else "add"
    for a, b in zip(attrs.lhs_contract, attrs.rhs_contract, strict=True):
        lhs[a] = rhs[b] = add(Factor(types[0].shape[a], "reduce", monoid))
    maps = tuple(lhs[d] for d in range(types[0].rank)), tuple(rhs[d] for d in range(types[1].rank))
    linear = () if monoid == "or" else ((0,), (1,))
    return Rule(tuple(factors), maps, (result,), linear, 2 * prod(f.size for f in factors))


def _dot_general_kernel(attrs: DotGeneralAttrs, x: Array, y: Array) -> Array:
    batch, contract = (attrs.lhs_batch, attrs.rhs_batch), (attrs.lhs_contract, attrs.rhs_contract)
    return kernels.dot_general(x, y, batch, contract, x.dtype if attrs.dtype is None else attrs.dtype)


def _dot_general_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,), (x, y), attrs = cotangents, node.operands, node.attrs
    assert isinstance(attrs, DotGeneralAttrs)
    if ct is None:
        return (None, None)
    x_free = _free(x.type.rank, attrs.lhs_batch, attrs.lhs_contract)
    y_free = _free(y.type.rank, attrs.rhs_batch, attrs.rhs_contract)
    nb, nx = len(attrs.lhs_batch), len(x_free)
    x_place = tuple(range(nb, nb + nx))
    y_place = tuple(range(nb + nx, nb + nx + len(y_free)))
    sides = (
        (x, attrs.lhs_batch, x_free, attrs.lhs_contract, y, attrs.rhs_batch, y_free, attrs.rhs_contract, y_place),
        (y, attrs.rhs_batch, y_free, attrs.rhs_contract, x, attrs.lhs_batch, x_free, attrs.lhs_contract, x_place),
    )
    return [_transposed_dot(gradient, ct, *side) for side in sides]


def _transposed_dot(
    gradient: Gradient,
    ct: Value,
    mine: Value,
    batch: Sequence[int],
    free: Sequence[int],
    contract: Sequence[int],
    other: Value,
    other_batch: tuple[int, ...],
    other_free: Sequence[int],
    other_contract: Sequence[int],
    place: tuple[int, ...],
) -> Value:
    """The cotangent of one operand: the result's, contracted with the other operand over the other's free dims.

    The product has batch dims, my free dims, and the contracted dims in the other's order (or these two the other way
    round); a transpose puts them where they are in my operand. `place` is where the result has the other's free dims.
    """
    b, dtype = gradient.builder, mine.type.dtype
    if ct.type.dtype != dtype and ct.type.dtype != other.type.dtype:
        other = conversion.CONVERT(b, other, dtype=ct.type.dtype)
    pairs = sorted(zip(other_contract, contract, strict=True))
    contracted = [c for _, c in pairs]
    ordered = list(range(mine.type.rank))
    # With the other operand first its contracted dims come before mine: a weight's gradient then needs no transpose.
    other_first = [*batch, *contracted, *free] == ordered and [*batch, *free, *contracted] != ordered
    ct_side = (ct, tuple(range(len(batch))), place)
    other_side = (other, other_batch, tuple(other_free))
    lhs, rhs = (other_side, ct_side) if other_first else (ct_side, other_side)
    product = DOT_GENERAL(
        b,
        lhs[0],
        rhs[0],
        lhs_batch=lhs[1],
        rhs_batch=rhs[1],
        lhs_contract=lhs[2],
        rhs_contract=rhs[2],
        dtype=None if ct.type.dtype == dtype else dtype,
    )
    order = [*batch, *contracted, *free] if other_first else [*batch, *free, *contracted]
    permutation = tuple(order.index(d) for d in ordered)
    return product if order == ordered else TRANSPOSE(b, product, permutation=permutation)


DOT_GENERAL = OpDef(
    "dot_general",
    DotGeneralAttrs,
    _dot_general_infer,
    rule=_dot_general_rule,
    kernel=_dot_general_kernel,
    vjp=_dot_general_vjp,
    examples=(
        "dot_general(f32[4, 6], f32[6, 8]) lhs_contract=[1] rhs_contract=[0]",
        "dot_general(f32[5, 4, 6], f32[5, 6, 7]) lhs_batch=[0] rhs_batch=[0] lhs_contract=[2] rhs_contract=[1]",
        "dot_general(f64[6, 4, 5, 7], f64[7, 8, 6, 4]) lhs_batch=[1] rhs_batch=[3] "
        "lhs_contract=[3, 0] rhs_contract=[0, 2]",
        "dot_general(f32[4], f32[6])",
        "dot_general(bf16[4, 6], bf16[6, 5]) lhs_contract=[1] rhs_contract=[0] dtype=f32",
        "dot_general(i8[4, 6], i8[5, 6]) lhs_contract=[1] rhs_contract=[1] dtype=i32",
        "dot_general(c64[4, 6], c64[6, 5]) lhs_contract=[1] rhs_contract=[0]",
        "dot_general(bool[4, 6], bool[6, 5]) lhs_contract=[1] rhs_contract=[0]",
    ),
    doc="Products of two tensors, summed over the contracted dimensions: batch dims, lhs's others, rhs's others.",
)

FAMILY: tuple[OpDef[Any], ...] = (DOT_GENERAL,)
