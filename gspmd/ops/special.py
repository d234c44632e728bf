"""Special functions element by element (CHLO), and inverse and hyperbolic trigonometry."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import TYPE_CHECKING, Any

from gspmd.ir.dtypes import DTYPES
from gspmd.ir.opdef import OpDef
from gspmd.kernels import scientific as kernels
from gspmd.ops.elementwise import EXPONENTIAL, RSQRT, SIGN
from gspmd.ops.elementwise.record import pointwise_op

if TYPE_CHECKING:
    from gspmd.ops.elementwise.expression import Expression as E

_BOOL = DTYPES["bool"]

ACOS = pointwise_op(
    "acos", 1, "fc", kernels.acos, "The inverse of the cosine.",
    vjp=lambda ct, x, y: [-(ct * (1 - x * x).apply(RSQRT))], fast={"f": "math.acos({0})"}, dtypes="f32 bf16 f64 c64",
)  # fmt: skip
ACOSH = pointwise_op(
    "acosh", 1, "fc", kernels.acosh, "The inverse of the hyperbolic cosine.",
    vjp=lambda ct, x, y: [ct * (x - 1).apply(RSQRT) * (x + 1).apply(RSQRT)],
    fast={"f": "math.acosh({0})"}, dtypes="f32 f64",
)  # fmt: skip
ASIN = pointwise_op(
    "asin", 1, "fc", kernels.asin, "The inverse of the sine.",
    vjp=lambda ct, x, y: [ct * (1 - x * x).apply(RSQRT)], fast={"f": "math.asin({0})"}, dtypes="f32 f64 c64",
)  # fmt: skip
ASINH = pointwise_op(
    "asinh", 1, "fc", kernels.asinh, "The inverse of the hyperbolic sine.",
    vjp=lambda ct, x, y: [ct * (x * x + 1).apply(RSQRT)], fast={"f": "math.asinh({0})"}, dtypes="f32 bf16 f64",
)  # fmt: skip
ATAN = pointwise_op(
    "atan", 1, "fc", kernels.atan, "The inverse of the tangent.",
    vjp=lambda ct, x, y: [ct / (x * x + 1)], fast={"f": "math.atan({0})"}, dtypes="f32 f64 c64",
)  # fmt: skip
ATANH = pointwise_op(
    "atanh", 1, "fc", kernels.atanh, "The inverse of the hyperbolic tangent.",
    vjp=lambda ct, x, y: [ct / (1 - x * x)], fast={"f": "math.atanh({0})"}, dtypes="f32 f64",
)  # fmt: skip
COSH = pointwise_op(
    "cosh", 1, "fc", kernels.cosh, "The hyperbolic cosine.",
    vjp=lambda ct, x, y: [ct * x.apply(SINH)], fast={"f": "math.cosh({0})"}, dtypes="f32 f16 c64",
)  # fmt: skip
SINH = pointwise_op(
    "sinh", 1, "fc", kernels.sinh, "The hyperbolic sine.",
    vjp=lambda ct, x, y: [ct * x.apply(COSH)], fast={"f": "math.sinh({0})"}, dtypes="f32 bf16 c64",
)  # fmt: skip
SQUARE = pointwise_op(
    "square", 1, "iufc", kernels.square, "The operand times itself.",
    vjp=lambda ct, x, y: [ct * x * 2], fast={"iuf": "{0} * {0}"}, dtypes="f32 i32 bf16 c64",
)  # fmt: skip


def _conj_vjp(ct: E, x: E, y: E) -> Sequence[E | None]:
    return [ct.apply(CONJ)]


CONJ = pointwise_op(
    "conj", 1, "iufc", kernels.conj, "The complex conjugate; real numbers are their own.",
    linear=((0,),), vjp=_conj_vjp, dtypes="c64 f32 i32 c128",
)  # fmt: skip
ERFC = pointwise_op(
    "erfc", 1, "f", kernels.erfc, "1 - erf(x), exact where that is small.",
    vjp=lambda ct, x, y: [ct * (-(x * x)).apply(EXPONENTIAL) * (-2 / sqrt(pi))],
    fast={"f": "math.erfc({0})"}, dtypes="f32 bf16 f64",
)  # fmt: skip
ERF_INV = pointwise_op(
    "erf_inv", 1, "f", kernels.erf_inv, "The inverse of the error function.",
    vjp=lambda ct, x, y: [ct * (y * y).apply(EXPONENTIAL) * (sqrt(pi) / 2)], dtypes="f32 bf16 f64",
)  # fmt: skip
LGAMMA = pointwise_op(
    "lgamma", 1, "f", kernels.lgamma, "The logarithm of the gamma function's magnitude.",
    vjp=lambda ct, x, y: [ct * x.apply(DIGAMMA)], dtypes="f32 bf16 f64",
)  # fmt: skip
DIGAMMA = pointwise_op(
    "digamma", 1, "f", kernels.digamma, "The derivative of lgamma.",
    vjp=lambda ct, x, y: [ct * x.number(1).apply(POLYGAMMA, x)], dtypes="f32 bf16 f64",
)  # fmt: skip


def _polygamma_vjp(ct: E, n: E, x: E, y: E) -> Sequence[E | None]:
    """The order counts: it has no derivative."""
    return [None, ct * (n + 1).apply(POLYGAMMA, x)]


POLYGAMMA = pointwise_op(
    "polygamma", 2, "f", kernels.polygamma, "The derivative of digamma (operand 1) of an order (operand 0).",
    vjp=_polygamma_vjp, dtypes="f32 f64",
)  # fmt: skip


def _zeta_vjp(ct: E, x: E, q: E, y: E) -> Sequence[E | None]:
    """In x there is no formula in closed form; as in JAX it is held constant."""
    return [None, -(ct * x * (x + 1).apply(ZETA, q))]


ZETA = pointwise_op(
    "zeta", 2, "f", kernels.zeta, "The Hurwitz zeta function of an exponent (operand 0) from a start (operand 1).",
    vjp=_zeta_vjp, dtypes="f32 f64",
)  # fmt: skip


def _bessel_i1e_vjp(ct: E, x: E, y: E) -> Sequence[E | None]:
    """The quotient y / x is 1/2 at 0."""
    zero = x.compare("EQ", 0)
    quotient = zero.select(x.number(0.5), y / zero.select(x.number(1), x))
    return [ct * (x.apply(BESSEL_I0E) - quotient - y * x.apply(SIGN))]


BESSEL_I0E = pointwise_op(
    "bessel_i0e", 1, "f", kernels.bessel_i0e, "The modified Bessel function of order 0 times exp(-|x|).",
    vjp=lambda ct, x, y: [ct * (x.apply(BESSEL_I1E) - y * x.apply(SIGN))], dtypes="f32 bf16 f64",
)  # fmt: skip
BESSEL_I1E = pointwise_op(
    "bessel_i1e", 1, "f", kernels.bessel_i1e, "The modified Bessel function of order 1 times exp(-|x|).",
    vjp=_bessel_i1e_vjp, dtypes="f32 bf16 f64",
)  # fmt: skip
IS_INF = pointwise_op(
    "is_inf", 1, "f", kernels.is_inf, "Whether infinite.", result=lambda dtype: _BOOL,
    fast={"f": "math.isinf({0})"}, dtypes="f32 bf16",
)  # fmt: skip
IS_POS_INF = pointwise_op(
    "is_pos_inf", 1, "f", kernels.is_pos_inf, "Whether infinite and positive.", result=lambda dtype: _BOOL,
    fast={"f": "{0} == math.inf"}, dtypes="f32 f16",
)  # fmt: skip
IS_NEG_INF = pointwise_op(
    "is_neg_inf", 1, "f", kernels.is_neg_inf, "Whether infinite and negative.", result=lambda dtype: _BOOL,
    fast={"f": "{0} == -math.inf"}, dtypes="f32 f64",
)  # fmt: skip


def _next_after_vjp(ct: E, x: E, y: E, z: E) -> Sequence[E | None]:
    """A step between neighbours is no function to differentiate."""
    return [None, None]


NEXT_AFTER = pointwise_op(
    "next_after", 2, "f", kernels.next_after, "The next float from the first operand towards the second.",
    vjp=_next_after_vjp, dtypes="f32 bf16 f64",
)  # fmt: skip

FAMILY: tuple[OpDef[Any], ...] = (
    ACOS, ACOSH, ASIN, ASINH, ATAN, ATANH, COSH, SINH, SQUARE, CONJ, ERFC, ERF_INV, LGAMMA, DIGAMMA, POLYGAMMA, ZETA,
    BESSEL_I0E, BESSEL_I1E, IS_INF, IS_POS_INF, IS_NEG_INF, NEXT_AFTER,
)  # fmt: skip
