"""Start indices that are data, made safe for arithmetic."""

from __future__ import annotations

from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES, dtype_kind, dtype_name
from gspmd.ir.graph import Value
from gspmd.ops.elementwise import CONVERT, MAXIMUM, MINIMUM
from gspmd.ops.literal import full

_I32 = DTYPES["i32"]


def as_i32(builder: Builder, indices: Value, size: int) -> Value:
    """Indices into a dimension of a global size, as i32 in [-1, size] or near it; none moves into or out of the range.

    Narrow dtypes (u8) cannot hold a negative distance or a global size. Wide ones are clamped first, since they hold
    what i32 does not and what would overflow when an offset is subtracted.
    """
    dtype, shape = indices.type.dtype, indices.type.shape
    if dtype.itemsize < 4:
        return CONVERT(builder, indices, dtype=_I32)
    name = dtype_name(dtype)
    near = MINIMUM(builder, indices, full(builder, size, name, shape))
    if dtype_kind(dtype) == "int":
        near = MAXIMUM(builder, near, full(builder, -1, name, shape))
    return near if name == "i32" else CONVERT(builder, near, dtype=_I32)
