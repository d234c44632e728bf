"""The four operations and what chooses between values: compare, select, clamp, maximum, minimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Region
from gspmd.ir.opdef import Array, OpDef, Types
from gspmd.ir.rule import Factor, Rule, elementwise_rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import conversion as conversions
from gspmd.kernels import elementwise as kernels
from gspmd.ops import reduce
from gspmd.ops.elementwise.record import on_arrays, pointwise_op, pullback, template
from gspmd.ops.rules import require, require_count, require_equal, require_kind, scalar_type

if TYPE_CHECKING:
    from gspmd.ops.elementwise.expression import Expression as E

NEGATE = pointwise_op(
    "negate",
    1,
    "iufc",
    kernels.negate,
    "The operand times -1; integers wrap.",
    linear=((0,),),
    vjp=lambda ct, x, y: [-ct],
    fast={"iuf": "-{0}"},
    dtypes="f32 i8 u16 c64",
)
ADD = pointwise_op(
    "add",
    2,
    "biufc",
    kernels.add,
    "The sum; the or of bools.",
    linear=((0, 1),),
    vjp=lambda ct, x, y, z: [ct, ct],
    fast={"iuf": "{0} + {1}", "b": "{0} or {1}"},
    dtypes="f32 i8 bool bf16 c64",
)
SUBTRACT = pointwise_op(
    "subtract",
    2,
    "iufc",
    kernels.subtract,
    "The difference.",
    linear=((0, 1),),
    vjp=lambda ct, x, y, z: [ct, -ct],
    fast={"iuf": "{0} - {1}"},
    dtypes="f32 u8 i64 f16",
)
MULTIPLY = pointwise_op(
    "multiply",
    2,
    "biufc",
    kernels.multiply,
    "The product; the and of bools.",
    linear=((0,), (1,)),
    vjp=lambda ct, x, y, z: [ct * y, ct * x],
    fast={"iuf": "{0} * {1}", "b": "{0} and {1}"},
    dtypes="f32 i16 bool bf16 c128",
)


DIVIDE = pointwise_op(
    "divide",
    2,
    "iufc",
    kernels.divide,
    "The quotient, of integers truncated; an integer divided by zero gives all ones bits.",
    linear=((0,),),
    linear_kinds="fc",
    vjp=lambda ct, x, y, z: [ct / y, -(ct * z / y)],
    fast={"f": "{0} / {1}"},
    dtypes="f32 i32 u8 c64",
)
REMAINDER = pointwise_op(
    "remainder",
    2,
    "iuf",
    kernels.remainder,
    "What the truncated quotient leaves, with the dividend's sign.",
    vjp=lambda ct, x, y, z: [ct, -(ct * ((x - z) / y))],
    dtypes="f32 i32 u8 bf16",
)


def _extremum_vjp(ct: E, x: E, y: E, z: E) -> Sequence[E | None]:
    """Ties share the cotangent equally."""

    def share(a: E, b: E) -> E:
        part = b.compare("EQ", z).select(ct * 0.5, ct)
        return a.compare("EQ", z).select(part, ct.number(0))

    return [share(x, y), share(y, x)]


MAXIMUM = pointwise_op(
    "maximum",
    2,
    "biufc",
    kernels.maximum,
    "The greater operand; NaN if either is; +0 is greater than -0.",
    vjp=_extremum_vjp,
    fast={"f": "maximum({0}, {1})", "iu": "{0} if {0} >= {1} else {1}", "b": "{0} or {1}"},
    dtypes="f32 i8 bool f16",
)
MINIMUM = pointwise_op(
    "minimum",
    2,
    "biufc",
    kernels.minimum,
    "The lesser operand; NaN if either is; -0 is less than +0.",
    vjp=_extremum_vjp,
    fast={"f": "minimum({0}, {1})", "iu": "{0} if {0} <= {1} else {1}", "b": "{0} and {1}"},
    dtypes="f32 u32 bool bf16",
)


# -- compare ---------------------------------------------------------------------------------------------------------

_SIGNS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
TOTALORDER = "TOTALORDER"


@dataclass(frozen=True, slots=True)
class CompareAttrs(Attrs):
    """EQ, NE, LT, LE, GT or GE; the order of floats is partial unless `compare_type` is TOTALORDER."""

    direction: str
    compare_type: str = ""


def _compare_infer(types: Types, attrs: CompareAttrs, regions: tuple[Region, ...]) -> Types:
    require_count("compare", types, 2)
    require_equal("compare", "C1", types)
    require(attrs.direction in _SIGNS, "compare.C2", f"direction {attrs.direction!r} is none of {', '.join(_SIGNS)}")
    if attrs.direction not in ("EQ", "NE"):
        require_kind("compare", "C3", types[0], "biuf")
    require(attrs.compare_type in ("", TOTALORDER), "compare.C4", f"unknown compare_type {attrs.compare_type!r}")
    if attrs.compare_type:
        require_kind("compare", "C5", types[0], "f")
    return (TensorType("bool", types[0].shape),)


def _compare_rule(types: Types, results: Types, attrs: Attrs) -> Rule:
    return elementwise_rule(types[0].shape, 2)


def _compare_kernel(attrs: CompareAttrs, x: Array, y: Array) -> Array:
    return conversions.compare(x, y, attrs.direction, attrs.compare_type == TOTALORDER)


def _compare_fast(types: Types, attrs: CompareAttrs) -> str | None:
    form = template({"biuf": f"{{0}} {_SIGNS[attrs.direction]} {{1}}"})(types, attrs)
    if form is None or attrs.compare_type:
        return None
    return form.removeprefix(scalar_type(types[0].dtype))


COMPARE = OpDef(
    "compare",
    CompareAttrs,
    _compare_infer,
    rule=_compare_rule,
    kernel=_compare_kernel,
    fast=_compare_fast,
    examples=(
        "compare(f32[4, 7], f32[4, 7]) direction=EQ",
        "compare(i32[4, 7], i32[4, 7]) direction=NE",
        "compare(u8[6, 5], u8[6, 5]) direction=LT",
        "compare(bf16[6, 5], bf16[6, 5]) direction=LE",
        "compare(bool[9], bool[9]) direction=GT",
        "compare(f64[4, 7], f64[4, 7]) direction=GE",
        "compare(f32[4, 7], f32[4, 7]) direction=LT compare_type=TOTALORDER",
        "compare(c64[4, 7], c64[4, 7]) direction=EQ",
    ),
    doc="Whether a relation holds between elements; NaN differs from everything.",
)


# -- select and clamp ------------------------------------------------------------------------------------------------


def _select_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    require_count("select", types, 3)
    require_kind("select", "C1", types[0], "b")
    require_equal("select", "C2", types[1:], 1)
    _require_scalar_or_full("select", "C3", types[0], types[1], 0)
    return (types[1].bare,)


def _require_scalar_or_full(op: str, constraint: str, t: TensorType, full: TensorType, number: int) -> None:
    require(
        t.shape in ((), full.shape),
        f"{op}.{constraint}",
        f"operand {number} is {t.bare.text()}: neither a scalar nor of shape {list(full.shape)}",
    )


def _spread_rule(types: Types, results: Types, linear: tuple[tuple[int, ...], ...]) -> Rule:
    """Element-wise, but that some operands may be scalars."""
    shape = results[0].shape
    whole = identity_map(len(shape))
    return Rule(tuple(map(Factor, shape)), tuple(whole if t.shape else () for t in types), (whole,), linear)


def _select_rule(types: Types, results: Types, attrs: Attrs) -> Rule:
    return _spread_rule(types, results, () if results[0].dtype.kind == "b" else ((1, 2),))


def _select_fast(types: Types, attrs: Attrs) -> str | None:
    form = template({"biuf": "{1} if {0} else {2}"})(types[1:], attrs)
    return None if form is None else "({1} if {0} else {2})"


def _select_vjp(ct: E, pred: E, on_true: E, on_false: E, y: E) -> Sequence[E | None]:
    zero = ct.number(0)
    return [None, pred.select(ct, zero), pred.select(zero, ct)]


SELECT = OpDef(
    "select",
    Attrs,
    _select_infer,
    rule=_select_rule,
    kernel=on_arrays(kernels.select),
    fast=_select_fast,
    vjp=pullback(_select_vjp),
    examples=(
        "select(bool[4, 7], f32[4, 7], f32[4, 7])",
        "select(bool[], f64[6, 5], f64[6, 5])",
        "select(bool[9], i32[9], i32[9])",
        "select(bool[4, 7], c64[4, 7], c64[4, 7])",
    ),
    doc="The second operand where the first holds, else the third.",
)


def _clamp_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    require_count("clamp", types, 3)
    low, x, high = types
    require_kind("clamp", "C1", x, "iuf", 1)
    for number, bound in ((0, low), (2, high)):
        _require_scalar_or_full("clamp", "C2", bound, x, number)
        require(
            bound.dtype == x.dtype, "clamp.C3", f"operand {number} is {bound.bare.text()}, operand 1 {x.bare.text()}"
        )
    return (x.bare,)


def _clamp_vjp(ct: E, low: E, x: E, high: E, y: E) -> Sequence[E | None]:
    """At a bound the operand gets nothing, as in JAX; the bounds get where they are strictly inside."""
    zero = ct.number(0)
    low_wide, high_wide = (_widen(b, x) for b in (low, high))
    above, below = low_wide.compare("LT", x), x.compare("LT", high_wide)
    inner = above.select(below.select(ct, zero), zero)
    at_low = x.compare("LT", low_wide).select(ct, zero)
    at_high = high_wide.compare("LT", x).select(ct, zero)
    return [_narrow(at_low, low), inner, _narrow(at_high, high)]


def _widen(bound: E, x: E) -> E:
    wide = x.value.type.shape
    return bound if bound.value.type.shape == wide else bound.spread(wide)


def _narrow(ct: E, bound: E) -> E:
    rank = ct.value.type.rank
    return ct if bound.value.type.rank == rank else ct.apply(reduce.REDUCE, dims=tuple(range(rank)))


CLAMP = OpDef(
    "clamp",
    Attrs,
    _clamp_infer,
    rule=lambda types, results, attrs: _spread_rule(types, results, ()),
    kernel=on_arrays(kernels.clamp),
    vjp=pullback(_clamp_vjp),
    examples=(
        "clamp(f32[], f32[4, 7], f32[])",
        "clamp(f64[6, 5], f64[6, 5], f64[])",
        "clamp(i32[9], i32[9], i32[9])",
        "clamp(bf16[], bf16[4, 7], bf16[4, 7])",
    ),
    doc="The second operand, held between the first and the third.",
)

FAMILY: tuple[OpDef[Any], ...] = (
    NEGATE, ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, MAXIMUM, MINIMUM, COMPARE, SELECT, CLAMP,
)  # fmt: skip
