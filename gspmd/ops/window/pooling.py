"""The records of reduce_window and select_and_scatter, each the other's gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gspmd.ir.attrs import Window
from gspmd.ir.builder import Builder
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Gradient, OpDef
from gspmd.ir.types import TensorType
from gspmd.kernels import monoids
from gspmd.ops.elementwise import COMPARE, SELECT
from gspmd.ops.literal import scalar
from gspmd.ops.moving import PAD, SLICE
from gspmd.ops.reduce import CUSTOM
from gspmd.ops.rules import differentiable
from gspmd.ops.window import reduce_window as reducing
from gspmd.ops.window import select_and_scatter as selecting
from gspmd.ops.window.reduce_window import ReduceWindowAttrs
from gspmd.ops.window.select_and_scatter import SelectAndScatterAttrs
from gspmd.ops.window.sides import gradient_padding

# -- reduce_window ---------------------------------------------------------------------------------------------------


def _reduce_window_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    attrs, b = node.attrs, gradient.builder
    assert isinstance(attrs, ReduceWindowAttrs)
    ct, x = cotangents[0], node.operands[0]
    if all(c is None or not differentiable(c.type) for c in cotangents):
        return (None,) * len(node.operands)
    if attrs.monoid not in ("add", "max", "min"):
        raise TypeRuleError(
            f"a windowed reduction by {attrs.monoid} has no gradient",
            rule="reduce_window.D1",
            loc=node.loc,
            fix="reduce windows by add, max or min",
        )
    assert ct is not None
    return (_sum_cotangent(b, ct, x, attrs) if attrs.monoid == "add" else _extreme_cotangent(b, ct, x, attrs),)


def _sum_cotangent(b: Builder, ct: Value, x: Value, attrs: ReduceWindowAttrs) -> Value:
    """Each element gets the sum over the windows that it lies in: windows over the cotangent, dilated by the stride."""
    pads = gradient_padding(attrs.window, x.type.shape, ct.type.shape)
    window = Window(
        replace(s, stride=s.base_dilation, base_dilation=s.stride, low=low, high=high)
        for s, (low, high) in zip(attrs.window, pads, strict=True)
    )
    return REDUCE_WINDOW(b, ct, window=window)


def _extreme_cotangent(b: Builder, ct: Value, x: Value, attrs: ReduceWindowAttrs) -> Value:
    """Each window's first extreme element gets its cotangent; the holes of a dilated operand are made explicit."""
    dilated = any(s.base_dilation > 1 for s in attrs.window)
    none = (0,) * x.type.rank
    steps = tuple(s.base_dilation for s in attrs.window)
    spread = x
    if dilated:
        fill = scalar(b, monoids.identity(attrs.monoid, x.type.dtype), x.type.dtype)
        spread = PAD(b, x, fill, low=none, high=none, interior=tuple(n - 1 for n in steps))
    window = Window(replace(s, base_dilation=1) for s in attrs.window)
    select = "GE" if attrs.monoid == "max" else "LE"
    found = SELECT_AND_SCATTER(b, spread, ct, window=window, select=select)
    return SLICE(b, found, start=none, limit=found.type.shape, stride=steps) if dilated else found


REDUCE_WINDOW = OpDef(
    "reduce_window",
    ReduceWindowAttrs,
    reducing.reduce_window_infer,
    rule=reducing.reduce_window_rule,
    kernel=reducing.reduce_window_kernel,
    execute=reducing.reduce_window_execute,
    fold=reducing.reduce_window_fold,
    vjp=_reduce_window_vjp,
    examples=(
        "reduce_window(f32[9, 4]) window={size=[3, 1] stride=[2, 1] low=[1, 0] high=[1, 0]}",
        "reduce_window(f32[13]) window={size=[11] low=[5] high=[5]}",
        "reduce_window(f32[2, 8, 7]) window={size=[1, 2, 3] stride=[1, 2, 1] high=[0, 0, 2]} monoid=max",
        "reduce_window(f64[12, 5]) window={size=[3, 2] window_dilation=[2, 1] low=[-1, 0] high=[2, 1]} monoid=min",
        "reduce_window(f64[7]) window={size=[3] stride=[2] base_dilation=[3] low=[2] high=[1]} monoid=max",
        "reduce_window(f64[8, 3]) window={size=[4, 1] stride=[3, 1] base_dilation=[2, 1] low=[1, 0] high=[-1, 0]}",
        "reduce_window(bf16[10]) window={size=[4] stride=[1] low=[3]} monoid=add",
        "reduce_window(i32[9]) window={size=[2] stride=[2] high=[1]} monoid=mul",
        "reduce_window(i64[10]) window={size=[3] low=[1] high=[1]} monoid=min",
        "reduce_window(bool[9]) window={size=[2] low=[1]} monoid=and",
        "reduce_window(u8[9]) window={size=[3] low=[1] high=[2]} monoid=or",
        "reduce_window(i16[8]) window={size=[3] stride=[2]} monoid=xor",
        "reduce_window(f32[9, 3], i32[9, 3], f32[], i32[]) window={size=[3, 1] stride=[2, 1] low=[2, 0] high=[1, 0]} "
        "monoid=custom (%a: f32[], %i: i32[], %b: f32[], %j: i32[]) { "
        "%ge = compare(%a, %b) direction=GE : bool[] "
        "%v = select(%ge, %a, %b) : f32[] "
        "%k = select(%ge, %i, %j) : i32[] "
        "return %v, %k }",
    ),
    doc="Combines the elements in each window, by a monoid or by a region.",
)


# -- select_and_scatter ----------------------------------------------------------------------------------------------


def _select_and_scatter_vjp(
    gradient: Gradient, node: Node, cotangents: Sequence[Value | None]
) -> Sequence[Value | None]:
    """Each source gets the cotangent of the element that its window selects; which one that is does not change."""
    (ct,), (x, *others), attrs, b = cotangents, node.operands, node.attrs, gradient.builder
    assert isinstance(attrs, SelectAndScatterAttrs)
    if ct is None or not differentiable(ct.type):
        return (None,) * len(node.operands)
    if attrs.scatter != "add" or len(others) > 1:
        raise TypeRuleError(
            "select_and_scatter has a gradient only if it adds what all elements may select",
            rule="select_and_scatter.D1",
            loc=node.loc,
        )
    worst = monoids.identity("max" if attrs.select in ("GE", "GT") else "min", x.type.dtype)
    inits = (scalar(b, worst, x.type.dtype), scalar(b, 0, ct.type.dtype))
    region = _selector(b, x.type.with_shape(()).bare, attrs.select)
    _, found = REDUCE_WINDOW.emit(b, (x, ct, *inits), ReduceWindowAttrs(attrs.window, CUSTOM), (region,))
    return (None, found)


def _selector(outer: Builder, one: TensorType, direction: str) -> Region:
    """Of two (element, cotangent) pairs the one that the comparison keeps."""
    b = Builder(outer.loc)
    x, i, y, j = b.param(one), b.param(one), b.param(one), b.param(one)
    keep = COMPARE(b, x, y, direction=direction)
    return b.region([SELECT(b, keep, x, y), SELECT(b, keep, i, j)])


SELECT_AND_SCATTER = OpDef(
    "select_and_scatter",
    SelectAndScatterAttrs,
    selecting.select_and_scatter_infer,
    rule=selecting.select_and_scatter_rule,
    kernel=selecting.select_and_scatter_kernel,
    execute=selecting.select_and_scatter_execute,
    localize=selecting.select_and_scatter_localize,
    vjp=_select_and_scatter_vjp,
    examples=(
        "select_and_scatter(f32[9, 4], f32[5, 4]) window={size=[3, 1] stride=[2, 1] low=[1, 0] high=[1, 0]}",
        "select_and_scatter(f64[12], f64[6]) window={size=[2] stride=[2]} select=GT",
        "select_and_scatter(f32[2, 8, 7], f32[2, 4, 7]) window={size=[1, 2, 3] stride=[1, 2, 1] low=[0, 0, 2]} "
        "select=LE",
        "select_and_scatter(f64[11], f64[5]) window={size=[2] stride=[3] window_dilation=[2] low=[3] high=[1]}",
        "select_and_scatter(bf16[10], bf16[6]) window={size=[3] stride=[2] low=[2] high=[1]}",
        "select_and_scatter(i32[8], i32[8], bool[8]) window={size=[3] low=[1] high=[1]} select=LT scatter=max",
        "select_and_scatter(i64[9], i64[5], bool[9], bool[5]) window={size=[2] stride=[2] high=[1]}",
        "select_and_scatter(i32[9], i32[4], i32[]) window={size=[3] stride=[2]} select=custom scatter=custom "
        "(%a: i32[], %b: i32[]) { %0 = compare(%a, %b) direction=GE : bool[] return %0 } "
        "(%c: i32[], %d: i32[]) { %1 = add(%c, %d) : i32[] return %1 }",
    ),
    doc="Each window selects an element of the operand, which receives the window's source; all others are zero.",
)

FAMILY: tuple[OpDef[Any], ...] = (REDUCE_WINDOW, SELECT_AND_SCATTER)
