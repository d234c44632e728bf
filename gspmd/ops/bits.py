"""The same bits as numbers of another dtype (StableHLO: bitcast_convert)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DType, dtype_kind, dtype_name
from gspmd.ir.graph import Region
from gspmd.ir.opdef import Array, OpDef, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import conversion as kernels
from gspmd.kernels.finite import bit_width
from gspmd.ops.rules import require, require_count


@dataclass(frozen=True, slots=True)
class BitcastConvertAttrs(Attrs):
    """The result's dtype."""

    dtype: DType


def _bitcast_infer(types: Types, attrs: BitcastConvertAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: complex stays complex. C2: truth values keep their width. C3: widths divide. C4: a minor dim of the ratio."""
    require_count("bitcast_convert", types, 1)
    x, old, new = types[0].bare, bit_width(types[0].dtype), bit_width(attrs.dtype)
    both = f"{x.text()} as {dtype_name(attrs.dtype)}"
    alike = (dtype_kind(x.dtype) == "complex") == (dtype_kind(attrs.dtype) == "complex")
    require(alike, "bitcast_convert.C1", f"complex numbers only become complex numbers: {both}")
    require(old == new or min(old, new) > 1, "bitcast_convert.C2", f"truth values are no bits of numbers: {both}")
    require(max(old, new) % min(old, new) == 0, "bitcast_convert.C3", f"neither width is a multiple: {both}")
    if old == new:
        return (TensorType(attrs.dtype, x.shape),)
    if old > new:
        return (TensorType(attrs.dtype, (*x.shape, old // new)),)
    ratio = new // old
    require(x.rank > 0 and x.shape[-1] == ratio, "bitcast_convert.C4", f"the last dim must be {ratio}: {both}")
    return (TensorType(attrs.dtype, x.shape[:-1]),)


def _bitcast_rule(types: Types, results: Types, attrs: BitcastConvertAttrs) -> Rule:
    """The parts of an element stay together."""
    x, y = types[0], results[0]
    longer, common = max(x.shape, y.shape, key=len), min(x.rank, y.rank)
    factors = tuple(Factor(n, "pass" if d < common else "whole") for d, n in enumerate(longer))
    return Rule(factors, (identity_map(x.rank),), (identity_map(y.rank),))


def _bitcast_kernel(attrs: BitcastConvertAttrs, x: Array) -> Array:
    return kernels.bitcast(x, attrs.dtype)


BITCAST_CONVERT = OpDef(
    "bitcast_convert",
    BitcastConvertAttrs,
    _bitcast_infer,
    rule=_bitcast_rule,
    kernel=_bitcast_kernel,
    examples=(
        "bitcast_convert(f32[4, 7]) dtype=u32",
        "bitcast_convert(u16[9]) dtype=bf16",
        "bitcast_convert(i32[]) dtype=f32",
        "bitcast_convert(f64[6, 5]) dtype=u16",
        "bitcast_convert(u8[5, 6, 4]) dtype=f32",
        "bitcast_convert(c128[5, 2]) dtype=c64",
        "bitcast_convert(i4[6]) dtype=u4",
        "bitcast_convert(i16[5, 6]) dtype=u4",
        "bitcast_convert(i4[5, 6, 8]) dtype=f32",
    ),
    doc="The same bits as another dtype; a narrower one adds a minor dim, low bits first, a wider one removes it.",
)

FAMILY: tuple[OpDef[Any], ...] = (BITCAST_CONVERT,)
