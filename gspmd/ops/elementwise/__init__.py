"""Element-wise ops: each result element is a function of the operands' at its place, without broadcasting."""

from __future__ import annotations

from typing import Any

from gspmd.ir.opdef import OpDef
from gspmd.ops.elementwise.arithmetic import (
    ADD,
    CLAMP,
    COMPARE,
    DIVIDE,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    NEGATE,
    REMAINDER,
    SELECT,
    SUBTRACT,
)
from gspmd.ops.elementwise.arithmetic import FAMILY as ARITHMETIC
from gspmd.ops.elementwise.bits import (
    AND,
    COUNT_LEADING_ZEROS,
    MULHI,
    NOT,
    OR,
    POPCNT,
    SHIFT_LEFT,
    SHIFT_RIGHT_ARITHMETIC,
    SHIFT_RIGHT_LOGICAL,
    XOR,
)
from gspmd.ops.elementwise.bits import FAMILY as BITS
from gspmd.ops.elementwise.conversion import (
    ABS,
    CEIL,
    COMPLEX,
    CONVERT,
    FLOOR,
    IMAG,
    IS_FINITE,
    REAL,
    REDUCE_PRECISION,
    ROUND_NEAREST_AFZ,
    ROUND_NEAREST_EVEN,
    SIGN,
)
from gspmd.ops.elementwise.conversion import FAMILY as CONVERSION
from gspmd.ops.elementwise.transcendental import (
    ATAN2,
    CBRT,
    COSINE,
    ERF,
    EXPONENTIAL,
    EXPONENTIAL_MINUS_ONE,
    LOG,
    LOG_PLUS_ONE,
    LOGISTIC,
    POWER,
    RSQRT,
    SINE,
    SQRT,
    TAN,
    TANH,
)
from gspmd.ops.elementwise.transcendental import FAMILY as TRANSCENDENTAL

__all__ = [
    "ABS",
    "ADD",
    "AND",
    "ATAN2",
    "CBRT",
    "CEIL",
    "CLAMP",
    "COMPARE",
    "COMPLEX",
    "CONVERT",
    "COSINE",
    "COUNT_LEADING_ZEROS",
    "DIVIDE",
    "ERF",
    "EXPONENTIAL",
    "EXPONENTIAL_MINUS_ONE",
    "FAMILY",
    "FLOOR",
    "IMAG",
    "IS_FINITE",
    "LOG",
    "LOGISTIC",
    "LOG_PLUS_ONE",
    "MAXIMUM",
    "MINIMUM",
    "MULHI",
    "MULTIPLY",
    "NEGATE",
    "NOT",
    "OR",
    "POPCNT",
    "POWER",
    "REAL",
    "REDUCE_PRECISION",
    "REMAINDER",
    "ROUND_NEAREST_AFZ",
    "ROUND_NEAREST_EVEN",
    "RSQRT",
    "SELECT",
    "SHIFT_LEFT",
    "SHIFT_RIGHT_ARITHMETIC",
    "SHIFT_RIGHT_LOGICAL",
    "SIGN",
    "SINE",
    "SQRT",
    "SUBTRACT",
    "TAN",
    "TANH",
    "XOR",
]

FAMILY: tuple[OpDef[Any], ...] = ARITHMETIC + BITS + CONVERSION + TRANSCENDENTAL
