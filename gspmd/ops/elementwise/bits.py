"""Logic on bools and on the bits of integers."""

from __future__ import annotations

from typing import Any

from gspmd.ir.opdef import OpDef
from gspmd.kernels import elementwise as kernels
from gspmd.ops.elementwise.record import pointwise_op

AND = pointwise_op(
    "and",
    2,
    "biu",
    kernels.bit_and,
    "Bits set in both.",
    fast={"b": "{0} and {1}", "iu": "{0} & {1}"},
    dtypes="bool i32 u8",
)
OR = pointwise_op(
    "or",
    2,
    "biu",
    kernels.bit_or,
    "Bits set in either.",
    fast={"b": "{0} or {1}", "iu": "{0} | {1}"},
    dtypes="bool i32 u8",
)
XOR = pointwise_op(
    "xor",
    2,
    "biu",
    kernels.bit_xor,
    "Bits set in one of the two.",
    fast={"b": "{0} != {1}", "iu": "{0} ^ {1}"},
    dtypes="bool i32 u8",
)
NOT = pointwise_op(
    "not",
    1,
    "biu",
    kernels.bit_not,
    "Every bit flipped.",
    fast={"b": "not {0}", "iu": "~{0}"},
    dtypes="bool i32 u8",
)
MULHI = pointwise_op(
    "mulhi", 2, "iu", kernels.mulhi, "The upper half of the bits of the product of integers.", dtypes="i32 u8 i64 u64"
)
POPCNT = pointwise_op("popcnt", 1, "iu", kernels.popcnt, "The number of bits set.", dtypes="i32 u8 i64")
COUNT_LEADING_ZEROS = pointwise_op(
    "count_leading_zeros", 1, "iu", kernels.count_leading_zeros, "Zero bits above the highest set.", dtypes="i32 u8 u64"
)
SHIFT_LEFT = pointwise_op(
    "shift_left", 2, "iu", kernels.shift_left, "Bits moved up; none are left beyond the width.", dtypes="i32 u8 i64"
)
SHIFT_RIGHT_ARITHMETIC = pointwise_op(
    "shift_right_arithmetic", 2, "iu", kernels.shift_right_arithmetic, "Bits moved down below copies of the top bit.",
    dtypes="i32 u8 i64",
)  # fmt: skip
SHIFT_RIGHT_LOGICAL = pointwise_op(
    "shift_right_logical", 2, "iu", kernels.shift_right_logical, "Bits moved down below zeros.", dtypes="i32 u8 i64"
)

FAMILY: tuple[OpDef[Any], ...] = (
    AND, OR, XOR, NOT, MULHI, POPCNT, COUNT_LEADING_ZEROS, SHIFT_LEFT, SHIFT_RIGHT_ARITHMETIC, SHIFT_RIGHT_LOGICAL,
)  # fmt: skip
