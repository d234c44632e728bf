"""Windows: convolution, reduce_window, running reductions and select_and_scatter, as `import_window` reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gspmd.interop.export_monoid import combination, comparison, start
from gspmd.interop.export_taps import by_taps
from gspmd.interop.export_writer import Block, Emitter, Writer
from gspmd.interop.stablehlo_text import integers, table, truths
from gspmd.ir.attrs import Window, WindowDim
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import Types
from gspmd.kernels.window import around
from gspmd.ops.reduce import CUSTOM
from gspmd.ops.window.convolution import ConvolutionAttrs
from gspmd.ops.window.cumulative import CumulativeReduceAttrs
from gspmd.ops.window.reduce_window import ReduceWindowAttrs
from gspmd.ops.window.select_and_scatter import SelectAndScatterAttrs


def _padding(window: Window) -> str:
    return table([(s.low, s.high) for s in window], 2)


def _letters(spec: Sequence[int], first: str, second: str) -> str:
    """The dimensions of an array by their roles: `[b, 0, 1, f]`."""
    roles = [""] * len(spec)
    for d, role in zip(spec, (first, second, *range(len(spec) - 2)), strict=True):
        roles[d] = str(role)
    return f"[{', '.join(roles)}]"


def convolution(attrs: ConvolutionAttrs, types: Types) -> dict[str, str]:
    """The attributes of a convolution."""
    w = attrs.window
    lhs, rhs, out = (
        _letters(attrs.lhs_spec, "b", "f"),
        _letters(attrs.rhs_spec, "o", "i"),
        _letters(attrs.out_spec, "b", "f"),
    )
    return {
        "dimension_numbers": f"#stablehlo.conv<{lhs}x{rhs}->{out}>",
        "feature_group_count": f"{int(attrs.feature_group_count)} : i64",
        "batch_group_count": f"{int(attrs.batch_group_count)} : i64",
        "window_strides": integers(s.stride for s in w),
        "padding": _padding(w),
        "lhs_dilation": integers(s.base_dilation for s in w),
        "rhs_dilation": integers(s.window_dilation for s in w),
        "window_reversal": truths(s.reversed for s in w),
    }


def _window(writer: Writer, node: Node, operands: Sequence[Value], window: Window, region: Block) -> None:
    attributes = {
        "window_dimensions": integers(s.size for s in window),
        "window_strides": integers(s.stride for s in window),
        "base_dilations": integers(s.base_dilation for s in window),
        "window_dilations": integers(s.window_dilation for s in window),
        "padding": _padding(window),
    }
    writer.op("stablehlo.reduce_window", operands, node.results, attributes, (region,))


def _reduce_window(writer: Writer, node: Node) -> None:
    attrs = node.attrs
    assert isinstance(attrs, ReduceWindowAttrs)
    if attrs.monoid == CUSTOM:
        _window(writer, node, node.operands, attrs.window, node.regions[0])
        return
    (x,) = node.operands
    init = start(writer, attrs.monoid, x.type.dtype)
    _window(writer, node, (x, init), attrs.window, combination(writer, attrs.monoid, x.type))


def _cumulative_reduce(writer: Writer, node: Node) -> None:
    """A window that reaches back to the first element, or on to the last."""
    attrs, (x,) = node.attrs, node.operands
    assert isinstance(attrs, CumulativeReduceAttrs)
    n = x.type.shape[attrs.dim]
    if n <= 1:
        writer.alias(node.results, (x,))
        return
    reach = WindowDim(n, low=0 if attrs.reverse else n - 1, high=n - 1 if attrs.reverse else 0)
    window = Window(reach if d == attrs.dim else WindowDim() for d in range(x.type.rank))
    init = start(writer, attrs.monoid, x.type.dtype)
    _window(writer, node, (x, init), window, combination(writer, attrs.monoid, x.type))


def _select_and_scatter(writer: Writer, node: Node) -> None:
    """Windows with holes, and elements that may not be selected, are only in our op: those tap by tap."""
    attrs = node.attrs
    assert isinstance(attrs, SelectAndScatterAttrs)
    custom = attrs.select == CUSTOM
    if len(node.operands) > 2 + custom or any(s.window_dilation > 1 and s.size > 1 for s in attrs.window):
        writer.expand(node, by_taps(node.regions))
        return
    operands, regions = node.operands, tuple[Block, ...](node.regions)
    if not custom:
        type_ = operands[0].type
        operands = (*operands, writer.constant(np.asarray(around(attrs.scatter, type_.dtype)).astype(type_.dtype)))
        regions = comparison(writer, attrs.select, type_), combination(writer, attrs.scatter, type_)
    attributes = {
        "window_dimensions": integers(s.size for s in attrs.window),
        "window_strides": integers(s.stride for s in attrs.window),
        "padding": _padding(attrs.window),
    }
    writer.op("stablehlo.select_and_scatter", operands, node.results, attributes, regions)


EMITTERS: Mapping[str, Emitter] = {
    "reduce_window": _reduce_window,
    "cumulative_reduce": _cumulative_reduce,
    "select_and_scatter": _select_and_scatter,
}
