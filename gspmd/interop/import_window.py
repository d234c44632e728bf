"""Windows: convolution, reduce_window and select_and_scatter as StableHLO writes them."""

from __future__ import annotations

from typing import Any

from gspmd.interop.import_mlir import bindings
from gspmd.interop.import_types import bools, matrix
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import Groups, Window, WindowDim
from gspmd.ops.window.convolution import ConvolutionAttrs


def read_window(v: Visit, sizes: tuple[int, ...], names: dict[str, str]) -> Window:
    """The window of an op; `names` maps stride, base and window dilation to the attributes that hold them."""
    rank = len(sizes)
    ones = (1,) * rank
    strides = v.ints(names["stride"], ones)
    base = v.ints(names["base"], ones) if "base" in names else ones
    dilation = v.ints(names["window"], ones) if "window" in names else ones
    padding = matrix(v.attribute("padding")).reshape(rank, 2) if v.has("padding") else [(0, 0)] * rank
    flipped = bools(v.attribute("window_reversal")) if v.has("window_reversal") else (False,) * rank
    sides = zip(sizes, strides, base, dilation, padding, flipped, strict=True)
    return Window(WindowDim(n, s, b, d, int(p[0]), int(p[1]), r) for n, s, b, d, p, r in sides)


def read_convolution(v: Visit) -> ConvolutionAttrs:
    """The attributes of a convolution."""
    n: Any = bindings().stablehlo.ConvDimensionNumbers(v.attribute("dimension_numbers"))
    kernel = v.operands[1].type.shape
    sizes = tuple(kernel[int(d)] for d in n.kernel_spatial_dimensions)
    names = {"stride": "window_strides", "base": "lhs_dilation", "window": "rhs_dilation"}
    dtype = v.result.dtype
    return ConvolutionAttrs(
        read_window(v, sizes, names),
        (n.input_batch_dimension, n.input_feature_dimension, *n.input_spatial_dimensions),
        (n.kernel_output_feature_dimension, n.kernel_input_feature_dimension, *n.kernel_spatial_dimensions),
        (n.output_batch_dimension, n.output_feature_dimension, *n.output_spatial_dimensions),
        Groups(v.value("feature_group_count")),
        Groups(v.value("batch_group_count")),
        None if dtype == v.operands[0].type.dtype else dtype,
    )
