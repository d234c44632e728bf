"""Constants and counting: ops without operands, and the helpers by which other ops' gradients write numbers.

StableHLO: constant, iota.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, Dense, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DType, as_dtype, dtype_name
from gspmd.ir.graph import Region, Value
from gspmd.ir.opdef import Array, Localizer, OpDef, Trait, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import layout as kernels
from gspmd.ops import layout
from gspmd.ops.rules import require, require_count, require_kind


@dataclass(frozen=True, slots=True)
class ConstantAttrs(Attrs):
    """The array."""

    value: Dense


@dataclass(frozen=True, slots=True)
class IotaAttrs(Attrs):
    """The result's shape and dtype, and the dimension that it counts along."""

    shape: ResultShape
    dtype: DType
    dimension: int = 0


def _constant_infer(types: Types, attrs: ConstantAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("constant", types, 0)
    return (TensorType(attrs.value.array.dtype, attrs.value.array.shape),)


def _is_splat(value: Dense) -> bool:
    flat = value.array.reshape(-1)
    return flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size


def _constant_rule(types: Types, results: Types, attrs: ConstantAttrs) -> Rule:
    """Equal elements can be split freely. Other arrays are whole on every device, where slicing them is free too."""
    kind = "pass" if _is_splat(attrs.value) else "whole"
    shape = results[0].shape
    return Rule(tuple(Factor(n, kind) for n in shape), (), (identity_map(len(shape)),))


def _constant_kernel(attrs: ConstantAttrs) -> Array:
    return attrs.value.array


def _constant_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    attrs = ctx.node.attrs
    assert isinstance(attrs, ConstantAttrs)
    array, shape = attrs.value.array, ctx.local_result().shape
    if array.shape != shape:
        array = np.full(shape, array.reshape(-1)[0], array.dtype)
    return (CONSTANT(ctx.builder, value=Dense(array)),)


CONSTANT = OpDef(
    "constant",
    ConstantAttrs,
    _constant_infer,
    rule=_constant_rule,
    kernel=_constant_kernel,
    localize=_constant_localize,
    traits=frozenset({Trait.LITERAL}),
    examples=(
        "constant() value=dense<[1.0, 2.5, -3.0] : f32[3]>",
        "constant() value=dense<7 : i32[4,6]>",
        "constant() value=dense<true : bool[]>",
    ),
    doc="An array that is the same on every device.",
)


def _iota_infer(types: Types, attrs: IotaAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("iota", types, 0)
    rank = len(attrs.shape)
    require(0 <= attrs.dimension < rank, "iota.C1", f"dimension {attrs.dimension} of a result of rank {rank}")
    result = TensorType(attrs.dtype, attrs.shape)
    require_kind("iota", "C2", result, "iufc")
    return (result,)


def _iota_rule(types: Types, results: Types, attrs: IotaAttrs) -> Rule:
    shape = results[0].shape
    factors = tuple(Factor(n, position=d == attrs.dimension) for d, n in enumerate(shape))
    return Rule(factors, (), (identity_map(len(shape)),))


def _iota_kernel(attrs: IotaAttrs) -> Array:
    return kernels.iota(attrs.shape, attrs.dtype, attrs.dimension)


def _iota_fast(types: Types, attrs: IotaAttrs) -> str | None:
    """The index along the dimension, as the dtype."""
    return f"np.{attrs.dtype.name}({{0}})" if dtype_name(attrs.dtype) in ("i32", "i64", "u32", "f32", "f64") else None


IOTA = OpDef(
    "iota",
    IotaAttrs,
    _iota_infer,
    rule=_iota_rule,
    kernel=_iota_kernel,
    fast=_iota_fast,
    examples=(
        "iota() shape=[6] dtype=i32 dimension=0",
        "iota() shape=[4, 7] dtype=f32 dimension=1",
        "iota() shape=[5, 4] dtype=u8 dimension=0",
    ),
    doc="The index along one dimension.",
)


def scalar(builder: Builder, value: Any, dtype: Any) -> Value:
    """A scalar constant of a dtype."""
    return CONSTANT(builder, value=Dense(np.array(value).astype(as_dtype(dtype))))


def full(builder: Builder, value: Any, dtype: Any, shape: Sequence[int]) -> Value:
    """A tensor of equal elements: a scalar constant, broadcast."""
    one = scalar(builder, value, dtype)
    return one if not shape else layout.BROADCAST_IN_DIM(builder, one, shape=ResultShape(shape), dims=())


FAMILY: tuple[OpDef[Any], ...] = (CONSTANT, IOTA)
