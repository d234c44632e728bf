"""Ops that only rearrange elements: each result element is an operand element.

StableHLO: broadcast_in_dim, reshape, transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.rule import Factor, Rule, TensorMap, identity_map
from gspmd.kernels import layout as kernels
from gspmd.ops import reduce
from gspmd.ops.rules import copied, require, require_count, require_dims


@dataclass(frozen=True, slots=True)
class BroadcastInDimAttrs(Attrs):
    """The result's shape, and the result dimension along which each operand dimension lies."""

    shape: ResultShape
    dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReshapeAttrs(Attrs):
    """The result's shape."""

    shape: ResultShape


@dataclass(frozen=True, slots=True)
class TransposeAttrs(Attrs):
    """For each result dimension the operand dimension that it is."""

    permutation: tuple[int, ...]


Cotangents = Sequence[Value | None]


def _broadcast_infer(types: Types, attrs: BroadcastInDimAttrs, regions: tuple[Region, ...]) -> Types:
    op = "broadcast_in_dim"
    require_count(op, types, 1)
    x = types[0]
    require(len(attrs.dims) == x.rank, f"{op}.C1", f"{len(attrs.dims)} dims for an operand of rank {x.rank}")
    require_dims(op, "C2", "dims", attrs.dims, len(attrs.shape))
    for i, d in enumerate(attrs.dims):
        require(
            x.shape[i] in (1, attrs.shape[d]),
            f"{op}.C3",
            f"operand dim {i} is {x.shape[i]}, result dim {d} is {attrs.shape[d]}",
            "an operand dimension is 1 or as large as the result's",
        )
    return (x.with_shape(attrs.shape),)


def _broadcast_rule(types: Types, results: Types, attrs: BroadcastInDimAttrs) -> Rule:
    shape = results[0].shape
    factors = [Factor(n) for n in shape]
    operand: list[tuple[int, ...]] = []
    for n, d in zip(types[0].shape, attrs.dims, strict=True):
        if n == shape[d]:
            operand.append((d,))
        else:
            operand.append((len(factors),))
            factors.append(Factor(n, "whole"))
    return Rule(tuple(factors), (tuple(operand),), (identity_map(len(shape)),), ((0,),))


def _broadcast_kernel(attrs: BroadcastInDimAttrs, x: Array) -> Array:
    return kernels.broadcast_in_dim(x, attrs.shape, attrs.dims)


def _broadcast_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    (ct,), x, attrs = cotangents, node.operands[0].type, node.attrs
    assert isinstance(attrs, BroadcastInDimAttrs)
    if ct is None:
        return (None,)
    kept = {d for n, d in zip(x.shape, attrs.dims, strict=True) if n == attrs.shape[d]}
    lost = tuple(d for d in range(len(attrs.shape)) if d not in kept)
    if lost:
        ct = reduce.REDUCE(gradient.builder, ct, dims=lost)
    order = sorted(kept)
    permutation = tuple(order.index(d) for d in attrs.dims if d in kept)
    if permutation != tuple(range(len(permutation))):
        ct = TRANSPOSE(gradient.builder, ct, permutation=permutation)
    return (ct if ct.type.shape == x.shape else RESHAPE(gradient.builder, ct, shape=ResultShape(x.shape)),)


BROADCAST_IN_DIM = OpDef(
    "broadcast_in_dim",
    BroadcastInDimAttrs,
    _broadcast_infer,
    rule=_broadcast_rule,
    kernel=_broadcast_kernel,
    fast=copied,
    vjp=_broadcast_vjp,
    examples=(
        "broadcast_in_dim(f32[]) shape=[4, 6]",
        "broadcast_in_dim(f32[6]) shape=[4, 6, 8] dims=[1]",
        "broadcast_in_dim(i32[1, 7]) shape=[5, 7] dims=[0, 1]",
        "broadcast_in_dim(f64[4, 6]) shape=[6, 5, 4] dims=[2, 0]",
        "broadcast_in_dim(bf16[4, 1]) shape=[4, 1, 7] dims=[0, 1]",
    ),
    doc="Repeats the operand along new dimensions and along dimensions of size 1.",
)


def _reshape_infer(types: Types, attrs: ReshapeAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("reshape", types, 1)
    (x,) = types
    require(
        prod(attrs.shape) == x.size,
        "reshape.C1",
        f"the operand {x.bare.text()} has {x.size} elements, the result {list(attrs.shape)} {prod(attrs.shape)}",
    )
    return (x.with_shape(attrs.shape),)


def _reshape_rule(types: Types, results: Types, attrs: ReshapeAttrs) -> Rule:
    """Both shapes as products of common factors, major to minor; what has none in common is `whole`.

    Dimensions pair up in groups, the smallest runs with equal products: `[6, 4, 5] -> [4, 6, 5]` is `[6, 4] -> [4, 6]`
    with the common leading factor 2, and `[5] -> [5]`.
    """
    source, target = types[0].shape, results[0].shape
    factors: list[Factor] = []
    maps: tuple[list[list[int]], list[list[int]]] = ([[] for _ in source], [[] for _ in target])

    def add(size: int, kind: Any, *places: list[int]) -> None:
        if size != 1:
            for place in places:
                place.append(len(factors))
            factors.append(Factor(size, kind))

    if 0 in source:
        for shape, side in ((source, maps[0]), (target, maps[1])):
            for n, place in zip(shape, side, strict=True):
                add(n, "whole", place)
    for left, right in _groups(source, target):
        sizes = [source[i] for i in left], [target[j] for j in right]
        i = j = 0
        a, b = sizes[0][0], sizes[1][0]
        while (g := gcd(a, b)) > 1:
            add(g, "pass", maps[0][left[i]], maps[1][right[j]])
            a, b = a // g, b // g
            if a == 1 and i + 1 < len(left):
                i, a = i + 1, sizes[0][i + 1]
            if b == 1 and j + 1 < len(right):
                j, b = j + 1, sizes[1][j + 1]
        for rest, numbers, k, place in ((a, left, i, maps[0]), (b, right, j, maps[1])):
            shape = sizes[0] if numbers is left else sizes[1]
            for m in range(k, len(numbers)):
                add(rest if m == k else shape[m], "whole", place[numbers[m]])
    operand, result = (tuple(tuple(d) for d in m) for m in maps)
    return Rule(tuple(factors), (operand,), (result,), ((0,),))


def _groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest runs of dims with equal products, dims of size 1 left out; none if a dim is empty."""
    left = [i for i, n in enumerate(source) if n != 1]
    right = [j for j, n in enumerate(target) if n != 1]
    if 0 in source:
        return []
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left):
        first, second = i, j
        a, b = source[left[i]], target[right[j]]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * source[left[i]], i + 1
            else:
                b, j = b * target[right[j]], j + 1
        groups.append((left[first:i], right[second:j]))
    return groups


def _reshape_kernel(attrs: ReshapeAttrs, x: Array) -> Array:
    return x.reshape(attrs.shape)


def _reshape_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    (ct,), shape = cotangents, ResultShape(node.operands[0].type.shape)
    return (None if ct is None else RESHAPE(gradient.builder, ct, shape=shape),)


RESHAPE = OpDef(
    "reshape",
    ReshapeAttrs,
    _reshape_infer,
    rule=_reshape_rule,
    kernel=_reshape_kernel,
    fast=copied,
    vjp=_reshape_vjp,
    examples=(
        "reshape(f32[4, 6]) shape=[24]",
        "reshape(f32[24]) shape=[4, 6]",
        "reshape(i32[12, 5]) shape=[4, 3, 5]",
        "reshape(f32[6, 4, 5]) shape=[4, 6, 5]",
        "reshape(f32[8, 6]) shape=[4, 12]",
        "reshape(f32[1, 6, 1]) shape=[6, 1]",
        "reshape(bool[1]) shape=[]",
        "reshape(f32[0, 4]) shape=[0, 2, 2]",
    ),
    doc="The same elements in the same row-major order under another shape.",
)


def _transpose_infer(types: Types, attrs: TransposeAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("transpose", types, 1)
    (x,) = types
    require(
        sorted(attrs.permutation) == list(range(x.rank)),
        "transpose.C1",
        f"permutation {list(attrs.permutation)} does not permute the {x.rank} dimensions of the operand",
    )
    return (x.with_shape([x.shape[d] for d in attrs.permutation]),)


def _transpose_rule(types: Types, results: Types, attrs: TransposeAttrs) -> Rule:
    factors = tuple(Factor(n) for n in types[0].shape)
    result: TensorMap = tuple((d,) for d in attrs.permutation)
    return Rule(factors, (identity_map(types[0].rank),), (result,), ((0,),))


def _transpose_kernel(attrs: TransposeAttrs, x: Array) -> Array:
    return x.transpose(attrs.permutation)


def _transpose_vjp(gradient: Gradient, node: Node, cotangents: Cotangents) -> Cotangents:
    (ct,), attrs = cotangents, node.attrs
    assert isinstance(attrs, TransposeAttrs)
    inverse = tuple(attrs.permutation.index(d) for d in range(len(attrs.permutation)))
    return (None if ct is None else TRANSPOSE(gradient.builder, ct, permutation=inverse),)


TRANSPOSE = OpDef(
    "transpose",
    TransposeAttrs,
    _transpose_infer,
    rule=_transpose_rule,
    kernel=_transpose_kernel,
    vjp=_transpose_vjp,
    examples=(
        "transpose(f32[4, 6]) permutation=[1, 0]",
        "transpose(f32[4, 6, 5]) permutation=[2, 0, 1]",
        "transpose(i32[5, 4, 7]) permutation=[1, 2, 0]",
    ),
    doc="The operand with its dimensions in another order.",
)

FAMILY: tuple[OpDef[Any], ...] = (BROADCAST_IN_DIM, RESHAPE, TRANSPOSE)
