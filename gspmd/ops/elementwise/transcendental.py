"""Roots, powers, exponentials, logarithms, trigonometry, and the error function (CHLO's erf)."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import TYPE_CHECKING, Any

from gspmd.ir.opdef import OpDef
from gspmd.kernels import elementwise as kernels
from gspmd.ops.elementwise.record import pointwise_op

if TYPE_CHECKING:
    from gspmd.ops.elementwise.expression import Expression as E


def _power_vjp(ct: E, x: E, y: E, z: E) -> Sequence[E | None]:
    """x**0 is 1 whatever x is, and 0**y does not depend on y > 0: neither may give NaN."""
    one = x.number(1)
    slope = y.compare("EQ", 0).select(y.number(0), y * (x.apply(POWER, y - 1)))
    safe = x.compare("EQ", 0).select(one, x)
    return [ct * slope, ct * safe.apply(LOG) * z]


def _atan2_vjp(ct: E, x: E, y: E, z: E) -> Sequence[E | None]:
    square = x * x + y * y
    return [ct * y / square, -(ct * x / square)]


CBRT = pointwise_op(
    "cbrt", 1, "fc", kernels.cbrt, "The cube root.", vjp=lambda ct, x, y: [ct / (y * y * 3)], dtypes="f32 bf16 f64"
)
COSINE = pointwise_op(
    "cosine",
    1,
    "fc",
    kernels.cosine,
    "The cosine.",
    vjp=lambda ct, x, y: [-(ct * x.apply(SINE))],
    fast={"f": "math.cos({0})"},
    dtypes="f32 f64 c64",
)
SINE = pointwise_op(
    "sine",
    1,
    "fc",
    kernels.sine,
    "The sine.",
    vjp=lambda ct, x, y: [ct * x.apply(COSINE)],
    fast={"f": "math.sin({0})"},
    dtypes="f32 f64 c64",
)
TAN = pointwise_op(
    "tan",
    1,
    "fc",
    kernels.tan,
    "The tangent.",
    vjp=lambda ct, x, y: [ct * (y * y + 1)],
    fast={"f": "math.tan({0})"},
    dtypes="f32 f64",
)
TANH = pointwise_op(
    "tanh",
    1,
    "fc",
    kernels.tanh,
    "The hyperbolic tangent.",
    vjp=lambda ct, x, y: [ct * (1 - y * y)],
    fast={"f": "math.tanh({0})"},
    dtypes="f32 bf16 c64",
)
EXPONENTIAL = pointwise_op(
    "exponential",
    1,
    "fc",
    kernels.exponential,
    "e to the operand.",
    vjp=lambda ct, x, y: [ct * y],
    fast={"f": "math.exp({0})"},
    dtypes="f32 bf16 c64",
)
EXPONENTIAL_MINUS_ONE = pointwise_op(
    "exponential_minus_one",
    1,
    "fc",
    kernels.exponential_minus_one,
    "e to the operand, minus 1, exact near 0.",
    vjp=lambda ct, x, y: [ct * (y + 1)],
    fast={"f": "math.expm1({0})"},
    dtypes="f32 f64",
)
LOG = pointwise_op(
    "log",
    1,
    "fc",
    kernels.log,
    "The natural logarithm.",
    vjp=lambda ct, x, y: [ct / x],
    fast={"f": "math.log({0})"},
    dtypes="f32 bf16 c64",
)
LOG_PLUS_ONE = pointwise_op(
    "log_plus_one",
    1,
    "fc",
    kernels.log_plus_one,
    "The logarithm of 1 plus the operand, exact near 0.",
    vjp=lambda ct, x, y: [ct / (x + 1)],
    fast={"f": "math.log1p({0})"},
    dtypes="f32 f64",
)
LOGISTIC = pointwise_op(
    "logistic",
    1,
    "fc",
    kernels.logistic,
    "1 / (1 + exp(-x)).",
    vjp=lambda ct, x, y: [ct * (y * (1 - y))],
    fast={"f": "$t(1) / ($t(1) + math.exp(-{0}))"},
    dtypes="f32 bf16 f64",
)
RSQRT = pointwise_op(
    "rsqrt",
    1,
    "fc",
    kernels.rsqrt,
    "One over the square root.",
    vjp=lambda ct, x, y: [ct * -0.5 * (y / x)],
    fast={"f": "$t(1) / math.sqrt({0})"},
    dtypes="f32 bf16 f64",
)
SQRT = pointwise_op(
    "sqrt",
    1,
    "fc",
    kernels.sqrt,
    "The square root.",
    vjp=lambda ct, x, y: [ct * 0.5 / y],
    fast={"f": "math.sqrt({0})"},
    dtypes="f32 bf16 c64",
)
ERF = pointwise_op(
    "erf",
    1,
    "f",
    kernels.erf,
    "The error function.",
    vjp=lambda ct, x, y: [ct * (-(x * x)).apply(EXPONENTIAL) * (2 / sqrt(pi))],
    fast={"f": "math.erf({0})"},
    dtypes="f32 bf16 f64",
)
POWER = pointwise_op(
    "power",
    2,
    "iufc",
    kernels.power,
    "The first operand to the second.",
    vjp=_power_vjp,
    fast={"f": "math.pow({0}, {1})"},
    dtypes="f32 i32 u8 bf16 c64",
)
ATAN2 = pointwise_op(
    "atan2",
    2,
    "fc",
    kernels.atan2,
    "The angle of the point (second operand, first operand); of complex x and y -i log((y + ix) / sqrt(x^2 + y^2)).",
    vjp=_atan2_vjp,
    fast={"f": "math.atan2({0}, {1})"},
    dtypes="f32 bf16 f64 c64",
)

FAMILY: tuple[OpDef[Any], ...] = (
    CBRT, COSINE, SINE, TAN, TANH, EXPONENTIAL, EXPONENTIAL_MINUS_ONE, LOG, LOG_PLUS_ONE, LOGISTIC, RSQRT, SQRT, ERF,
    POWER, ATAN2,
)  # fmt: skip
