"""Convolution (StableHLO: convolution), and its gradients, which are convolutions again (as in JAX's transpose rules).

The factors are batch, feature and spatial loop indices: `x[n, s+k, i] * w[k, i, o] -> y[n, s, o]`, where k and i are
summed. Groups are a major factor g of two dimensions each: of both features (`feature_group_count`), or of the batch
and the output feature (`batch_group_count`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from gspmd.ir.attrs import Attrs, Groups, ResultShape, Window, WindowDim
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.rule import DimMap, Factor, Rule
from gspmd.ir.types import TensorType
from gspmd.kernels import convolution as kernels
from gspmd.ops.elementwise import conversion
from gspmd.ops.layout import RESHAPE, TRANSPOSE
from gspmd.ops.literal import full
from gspmd.ops.moving import REVERSE
from gspmd.ops.rules import require, require_count, require_dims, require_kind
from gspmd.ops.window.sides import access, counts, gradient_padding

Spec = tuple[int, ...]
_OP = "convolution"
_ONE = Groups(1)


@dataclass(frozen=True, slots=True)
class ConvolutionAttrs(Attrs):
    """How the window moves over the spatial dimensions, and which dimension is which.

    `lhs_spec`: batch, feature, spatial dims of the operand; `rhs_spec`: output feature, input feature, spatial dims of
    the kernel; `out_spec`: batch, feature, spatial dims of the result. `dtype`: the result's (None: the operands').
    """

    window: Window
    lhs_spec: Spec
    rhs_spec: Spec
    out_spec: Spec
    feature_group_count: Groups = _ONE
    batch_group_count: Groups = _ONE
    dtype: DType | None = None


def _convolution_infer(types: Types, attrs: ConvolutionAttrs, regions: tuple[Region, ...]) -> Types:
    require_count(_OP, types, 2)
    x, w = types
    rank = x.rank
    require(w.rank == rank >= 2, f"{_OP}.C1", f"operand and kernel need one rank from 2 on: {x.bare}, {w.bare}")
    for name, spec in (("lhs_spec", attrs.lhs_spec), ("rhs_spec", attrs.rhs_spec), ("out_spec", attrs.out_spec)):
        require(len(spec) == rank, f"{_OP}.C2", f"{name} names {len(spec)} dimensions of {rank}")
        require_dims(_OP, "C2", name, spec, rank)
    require_kind(_OP, "C3", x, "iufc")
    require(x.dtype == w.dtype, f"{_OP}.C4", f"operand {x.bare} and kernel {w.bare} differ in dtype", "convert one")
    batch, features, *space = (x.shape[d] for d in attrs.lhs_spec)
    outs, ins, *taps = (w.shape[d] for d in attrs.rhs_spec)
    for i, (side, n) in enumerate(zip(attrs.window, taps, strict=False)):
        require(side.size == n, f"{_OP}.C5", f"window dimension {i} has size {side.size}, the kernel {n} taps there")
    places = counts(_OP, attrs.window, space, rank - 2)
    groups, batch_groups = attrs.feature_group_count, attrs.batch_group_count
    require(groups >= 1 <= batch_groups, f"{_OP}.C6", f"group counts must be positive: {groups}, {batch_groups}")
    require(1 in (groups, batch_groups), f"{_OP}.C6", "features and batch cannot both be divided into groups")
    require(
        features == ins * groups,
        f"{_OP}.C7",
        f"{features} features in {groups} groups do not fit a kernel of {ins} input features",
    )
    require(batch % batch_groups == 0, f"{_OP}.C8", f"a batch of {batch} is not {batch_groups} equal groups")
    count = groups * batch_groups
    require(outs % count == 0, f"{_OP}.C9", f"{outs} output features are not {count} equal groups")
    shape = [0] * rank
    for d, n in zip(attrs.out_spec, (batch // batch_groups, outs, *places), strict=True):
        shape[d] = n
    return (TensorType(x.dtype if attrs.dtype is None else attrs.dtype, shape),)


def _convolution_rule(types: Types, results: Types, attrs: ConvolutionAttrs) -> Rule:
    x, w = types
    groups, batch_groups = int(attrs.feature_group_count), int(attrs.batch_group_count)
    n, i, o, g = 0, 1, 2, 3
    ins, outs = w.shape[attrs.rhs_spec[1]], w.shape[attrs.rhs_spec[0]]
    count = groups * batch_groups
    factors = [Factor(results[0].shape[attrs.out_spec[0]]), Factor(ins, "reduce", "add"), Factor(outs // count)]
    if count > 1:
        factors.append(Factor(count))
    lhs: dict[int, DimMap] = {attrs.lhs_spec[0]: (g, n) if batch_groups > 1 else (n,)}
    lhs[attrs.lhs_spec[1]] = (g, i) if groups > 1 else (i,)
    rhs: dict[int, DimMap] = {attrs.rhs_spec[0]: (g, o) if count > 1 else (o,), attrs.rhs_spec[1]: (i,)}
    out: dict[int, DimMap] = {attrs.out_spec[0]: (n,), attrs.out_spec[1]: (g, o) if count > 1 else (o,)}
    for number, side in enumerate(attrs.window):
        a, b, c = attrs.lhs_spec[number + 2], attrs.rhs_spec[number + 2], attrs.out_spec[number + 2]
        place, tap = len(factors), len(factors) + 1
        factors += [Factor(results[0].shape[c]), Factor(side.size, "reduce", "add")]
        lhs[a], rhs[b], out[c] = access(x.shape[a], number, side, place, tap, 0.0), (tap,), (place,)
    maps = [tuple(m[d] for d in range(x.rank)) for m in (lhs, rhs, out)]
    flops = 2 * prod(f.size for f in factors)
    return Rule(tuple(factors), (maps[0], maps[1]), (maps[2],), ((0,), (1,)), flops)


def _convolution_kernel(attrs: ConvolutionAttrs, x: Array, w: Array) -> Array:
    specs = (attrs.lhs_spec, attrs.rhs_spec, attrs.out_spec)
    dtype = x.dtype if attrs.dtype is None else attrs.dtype
    return kernels.convolution(x, w, attrs.window, specs, attrs.feature_group_count, attrs.batch_group_count, dtype)


# -- gradients -------------------------------------------------------------------------------------------------------


def _convolution_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    (ct,), (x, w), attrs = cotangents, node.operands, node.attrs
    assert isinstance(attrs, ConvolutionAttrs)
    if ct is None:
        return (None, None)
    b = gradient.builder
    if 0 in ct.type.shape:
        return [full(b, 0, v.type.dtype, v.type.shape) for v in (x, w)]
    return [_operand_cotangent(b, ct, x, w, attrs), _kernel_cotangent(b, ct, x, w, attrs)]


def _like(b: Builder, ct: Value, other: Value) -> Value:
    """The other operand in the cotangent's dtype."""
    same = other.type.dtype == ct.type.dtype
    return other if same else conversion.CONVERT(b, other, dtype=ct.type.dtype)


def _result_dtype(ct: Value, mine: Value) -> DType | None:
    return None if ct.type.dtype == mine.type.dtype else mine.type.dtype


def _operand_cotangent(b: Builder, ct: Value, x: Value, w: Value, attrs: ConvolutionAttrs) -> Value:
    """The cotangent, dilated by the stride, under the reversed kernel with its features exchanged."""
    outs, ins, *_ = attrs.rhs_spec
    space = [x.type.shape[d] for d in attrs.lhs_spec[2:]]
    places = [ct.type.shape[d] for d in attrs.out_spec[2:]]
    count = attrs.feature_group_count * attrs.batch_group_count
    kernel = _like(b, ct, w)
    if count > 1:
        kernel = _move_groups(b, kernel, outs, ins, count)
    pads = gradient_padding(attrs.window, space, places)
    window = Window(
        replace(s, stride=s.base_dilation, base_dilation=s.stride, low=low, high=high, reversed=not s.reversed)
        for s, (low, high) in zip(attrs.window, pads, strict=True)
    )
    found = CONVOLUTION(
        b,
        ct,
        kernel,
        window=window,
        lhs_spec=attrs.out_spec,
        rhs_spec=(ins, outs, *attrs.rhs_spec[2:]),
        out_spec=attrs.lhs_spec,
        feature_group_count=Groups(count),
        dtype=_result_dtype(ct, x),
    )
    if attrs.batch_group_count > 1:
        found = _move_groups(b, found, attrs.lhs_spec[1], attrs.lhs_spec[0], count)
    return found


def _move_groups(b: Builder, x: Value, source: int, target: int, groups: int) -> Value:
    """The groups that are major in one dimension made major in another."""
    shape = list(x.type.shape)
    parted = [*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]]
    split = RESHAPE(b, x, shape=ResultShape(parted))
    order = [d for d in range(len(parted)) if d != source]
    at = order.index(target if target < source else target + 1)
    order.insert(at, source)
    turned = TRANSPOSE(b, split, permutation=tuple(order))
    shape[source] //= groups
    shape[target] *= groups
    return RESHAPE(b, turned, shape=ResultShape(shape))


def _kernel_cotangent(b: Builder, ct: Value, x: Value, w: Value, attrs: ConvolutionAttrs) -> Value:
    """The operand under the cotangent, whose dilation is the stride: batch and features have changed places."""
    space = [x.type.shape[d] for d in attrs.lhs_spec[2:]]
    places = [ct.type.shape[d] for d in attrs.out_spec[2:]]
    window = Window(map(_kernel_side, attrs.window, space, places))
    found = CONVOLUTION(
        b,
        _like(b, ct, x),
        ct,
        window=window,
        lhs_spec=_swapped(attrs.lhs_spec),
        rhs_spec=_swapped(attrs.out_spec),
        out_spec=_swapped(attrs.rhs_spec),
        feature_group_count=Groups(attrs.batch_group_count),
        batch_group_count=Groups(attrs.feature_group_count),
        dtype=_result_dtype(ct, w),
    )
    turned = tuple(d for d, s in zip(attrs.rhs_spec[2:], attrs.window, strict=True) if s.reversed)
    return REVERSE(b, found, dims=turned) if turned else found


def _swapped(spec: Spec) -> Spec:
    return (spec[1], spec[0], *spec[2:])


def _kernel_side(side: WindowDim, n: int, count: int) -> WindowDim:
    spread = (count - 1) * side.stride + 1
    whole = (n - 1) * side.base_dilation + 1 if n else 0
    high = spread - whole + side.window_dilation * (side.size - 1) - side.low
    return WindowDim(count, side.window_dilation, side.base_dilation, side.stride, side.low, high)


CONVOLUTION = OpDef(
    _OP,
    ConvolutionAttrs,
    _convolution_infer,
    rule=_convolution_rule,
    kernel=_convolution_kernel,
    vjp=_convolution_vjp,
    examples=(
        "convolution(f32[4, 9, 6], f32[3, 6, 5]) window={size=[3] low=[1] high=[1]} "
        "lhs_spec=[0, 2, 1] rhs_spec=[2, 1, 0] out_spec=[0, 2, 1]",
        "convolution(f32[2, 12, 7, 4], f32[4, 3, 4, 5]) window={size=[4, 3] stride=[2, 1] low=[1, 1] high=[2, 1]} "
        "lhs_spec=[0, 3, 1, 2] rhs_spec=[3, 2, 0, 1] out_spec=[0, 3, 1, 2]",
        "convolution(f64[3, 4, 8], f64[6, 4, 5]) window={size=[5] base_dilation=[2] window_dilation=[3] low=[4] "
        "high=[-1] reversed=[true]} lhs_spec=[0, 1, 2] rhs_spec=[0, 1, 2] out_spec=[2, 1, 0]",
        "convolution(f32[11, 2, 3], f32[5, 3, 4]) window={size=[5] stride=[3] base_dilation=[2] low=[-1] high=[3]} "
        "lhs_spec=[1, 2, 0] rhs_spec=[2, 1, 0] out_spec=[0, 2, 1]",
        "convolution(f32[3, 8, 6], f32[3, 2, 9]) window={size=[3] low=[2]} lhs_spec=[0, 2, 1] rhs_spec=[2, 1, 0] "
        "out_spec=[0, 2, 1] feature_group_count=3",
        "convolution(f32[2, 8, 4], f32[3, 1, 4]) window={size=[3] low=[1] high=[1]} lhs_spec=[0, 2, 1] "
        "rhs_spec=[2, 1, 0] out_spec=[0, 2, 1] feature_group_count=4",
        "convolution(f32[6, 7, 4], f32[2, 4, 9]) window={size=[2] window_dilation=[2]} lhs_spec=[0, 2, 1] "
        "rhs_spec=[2, 1, 0] out_spec=[0, 2, 1] batch_group_count=3",
        "convolution(bf16[3, 10, 4], bf16[10, 4, 5]) window={size=[10] low=[1] high=[1]} lhs_spec=[0, 2, 1] "
        "rhs_spec=[2, 1, 0] out_spec=[0, 2, 1] dtype=f32",
        "convolution(i8[4, 6, 3], i8[1, 3, 5]) window={size=[1]} lhs_spec=[0, 2, 1] rhs_spec=[2, 1, 0] "
        "out_spec=[0, 2, 1] dtype=i32",
        "convolution(c64[4, 5], c64[5, 6]) window={size=[]} lhs_spec=[0, 1] rhs_spec=[1, 0] out_spec=[0, 1]",
    ),
    doc="A kernel moved over the spatial dimensions: products summed over its taps and the input features.",
)
