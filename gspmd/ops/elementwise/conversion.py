"""Between kinds of numbers: convert, reduce_precision, complex numbers and their parts, magnitude, sign, rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DTYPES, DType, dtype_kind, dtype_name
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Region
from gspmd.ir.opdef import Array, OpDef, Types
from gspmd.ir.rule import Rule, elementwise_rule
from gspmd.ir.types import TensorType
from gspmd.kernels import conversion as conversions
from gspmd.kernels import elementwise as kernels
from gspmd.ops.elementwise.record import pointwise_op, pullback, template
from gspmd.ops.rules import real_part_dtype, require, require_count, require_kind, scalar_type

if TYPE_CHECKING:
    from gspmd.ops.elementwise.expression import Expression as E

BOOL = DTYPES["bool"]


@dataclass(frozen=True, slots=True)
class ConvertAttrs(Attrs):
    """The result's dtype."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class ReducePrecisionAttrs(Attrs):
    """The widths of the exponent and of the mantissa to round to."""

    exponent_bits: int
    mantissa_bits: int


def _convert_infer(types: Types, attrs: ConvertAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("convert", types, 1)
    return (TensorType(attrs.dtype, types[0].shape),)


def _convert_rule(types: Types, results: Types, attrs: ConvertAttrs) -> Rule:
    """Rounding commutes with sums up to rounding; truncating to integers does not."""
    real = all(dtype_kind(t.dtype) in ("float", "complex") for t in (types[0], results[0]))
    return elementwise_rule(types[0].shape, 1, linear=((0,),) if real else ())


def _convert_kernel(attrs: ConvertAttrs, x: Array) -> Array:
    return conversions.convert(x, attrs.dtype)


def _convert_fast(types: Types, attrs: ConvertAttrs) -> str | None:
    kinds = {"biu": "{0}"} if dtype_kind(attrs.dtype) in ("int", "uint") else {"biuf": "{0}"}
    if template(kinds)((types[0].with_shape(()), TensorType(attrs.dtype, ())), attrs) is None:
        return None
    if dtype_kind(attrs.dtype) == "bool":
        return "({0} != 0)"
    return f"{scalar_type(attrs.dtype)}({{0}})"


CONVERT = OpDef(
    "convert",
    ConvertAttrs,
    _convert_infer,
    rule=_convert_rule,
    kernel=_convert_kernel,
    fast=_convert_fast,
    vjp=pullback(lambda ct, x, y: [ct.convert(x.dtype) if dtype_kind(y.dtype) in ("float", "complex") else None]),
    examples=(
        "convert(f32[4, 7]) dtype=bf16",
        "convert(bf16[6, 5]) dtype=f32",
        "convert(f32[4, 7]) dtype=i8",
        "convert(f64[9]) dtype=u32",
        "convert(i32[4, 7]) dtype=u8",
        "convert(i64[4, 7]) dtype=f32",
        "convert(bool[6, 5]) dtype=f32",
        "convert(f32[6, 5]) dtype=bool",
        "convert(f32[4, 7]) dtype=c64",
        "convert(c64[4, 7]) dtype=f32",
    ),
    doc="The operand in another element type.",
)


def _reduce_precision_infer(types: Types, attrs: ReducePrecisionAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("reduce_precision", types, 1)
    require_kind("reduce_precision", "C1", types[0], "f")
    require(attrs.exponent_bits >= 1, "reduce_precision.C2", f"exponent_bits is {attrs.exponent_bits}, not 1 or more")
    require(attrs.mantissa_bits >= 0, "reduce_precision.C3", f"mantissa_bits is {attrs.mantissa_bits}, not 0 or more")
    return (types[0].bare,)


def _reduce_precision_kernel(attrs: ReducePrecisionAttrs, x: Array) -> Array:
    return conversions.reduce_precision(x, attrs.exponent_bits, attrs.mantissa_bits)


def _reduce_precision_vjp(ct: E, x: E, y: E) -> Sequence[E | None]:
    """The cotangent is cut like the value."""
    return [ct]


REDUCE_PRECISION = OpDef(
    "reduce_precision",
    ReducePrecisionAttrs,
    _reduce_precision_infer,
    rule=lambda types, results, attrs: elementwise_rule(types[0].shape, 1),
    kernel=_reduce_precision_kernel,
    vjp=pullback(_reduce_precision_vjp),
    examples=(
        "reduce_precision(f32[4, 7]) exponent_bits=5 mantissa_bits=10",
        "reduce_precision(f64[6, 5]) exponent_bits=8 mantissa_bits=7",
        "reduce_precision(bf16[9]) exponent_bits=8 mantissa_bits=3",
    ),
    doc="The operand rounded as if it were stored with fewer bits.",
)


def _complex_dtype(dtype: DType) -> DType:
    found = {DTYPES["f32"]: DTYPES["c64"], DTYPES["f64"]: DTYPES["c128"]}.get(dtype)
    if found is None:
        raise TypeRuleError(
            f"parts are f32 or f64, got {dtype_name(dtype)}", rule="complex.C3", fix="convert them first"
        )
    return found


COMPLEX = pointwise_op(
    "complex",
    2,
    "f",
    kernels.make_complex,
    "Complex numbers from their real and imaginary parts.",
    result=_complex_dtype,
    linear=((0, 1),),
    vjp=lambda ct, x, y, z: [ct.apply(REAL), -ct.apply(IMAG)],
    dtypes="f32 f64",
)
REAL = pointwise_op(
    "real",
    1,
    "fc",
    kernels.real,
    "The real part.",
    result=real_part_dtype,
    linear=((0,),),
    vjp=lambda ct, x, y: [ct.apply(COMPLEX, ct.number(0)) if x.dtype.kind == "c" else ct],
    dtypes="c64 c128 f32",
)
IMAG = pointwise_op(
    "imag",
    1,
    "fc",
    kernels.imag,
    "The imaginary part, zero for real numbers.",
    result=real_part_dtype,
    linear=((0,),),
    vjp=lambda ct, x, y: [ct.number(0).apply(COMPLEX, -ct) if x.dtype.kind == "c" else None],
    dtypes="c64 c128 f32",
)


def _abs_vjp(ct: E, x: E, y: E) -> Sequence[E | None]:
    if x.dtype.kind != "c":
        return [ct * x.apply(SIGN)]
    safe = y.compare("EQ", 0).select(y.number(1), y)
    return [(ct * x.apply(REAL) / safe).apply(COMPLEX, -(ct * x.apply(IMAG) / safe))]


ABS = pointwise_op(
    "abs",
    1,
    "iufc",
    kernels.absolute,
    "The magnitude; the least integer keeps its sign.",
    result=real_part_dtype,
    vjp=_abs_vjp,
    fast={"if": "abs({0})", "u": "{0}"},
    dtypes="f32 i8 c64 bf16",
)


def _sign_vjp(ct: E, x: E, y: E) -> Sequence[E | None]:
    if x.dtype.kind == "c":
        raise TypeRuleError("the sign of complex numbers has no gradient", rule="sign.D1", fix="divide x by abs(x)")
    return [None]


SIGN = pointwise_op(
    "sign",
    1,
    "iufc",
    kernels.sign,
    "-1, 0 or 1; zeros keep their sign, NaN stays.",
    vjp=_sign_vjp,
    fast={"f": "$t(1) if {0} > 0 else ($t(-1) if {0} < 0 else {0})", "iu": "1 if {0} > 0 else (-1 if {0} < 0 else 0)"},
    dtypes="f32 i8 c64 bf16",
)
CEIL = pointwise_op(
    "ceil", 1, "f", kernels.ceil, "The least integer not below.", fast={"f": "np.ceil({0})"}, dtypes="f32 bf16"
)
FLOOR = pointwise_op(
    "floor", 1, "f", kernels.floor, "The greatest integer not above.", fast={"f": "np.floor({0})"}, dtypes="f32 f16"
)
ROUND_NEAREST_AFZ = pointwise_op(
    "round_nearest_afz",
    1,
    "f",
    kernels.round_nearest_afz,
    "The nearest integer, ties from zero.",
    dtypes="f32 f64",
)
ROUND_NEAREST_EVEN = pointwise_op(
    "round_nearest_even",
    1,
    "f",
    kernels.round_nearest_even,
    "The nearest integer, ties to the even one.",
    fast={"f": "np.rint({0})"},
    dtypes="f32 bf16",
)
IS_FINITE = pointwise_op(
    "is_finite",
    1,
    "f",
    kernels.is_finite,
    "Whether neither infinite nor NaN.",
    result=lambda dtype: BOOL,
    fast={"f": "math.isfinite({0})"},
    dtypes="f32 bf16",
)

FAMILY: tuple[OpDef[Any], ...] = (
    CONVERT, REDUCE_PRECISION, COMPLEX, REAL, IMAG, ABS, SIGN, CEIL, FLOOR, ROUND_NEAREST_AFZ, ROUND_NEAREST_EVEN,
    IS_FINITE,
)  # fmt: skip
