"""Convolutions, pooling, cumulative ops: window positions, taps and features split."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd.frontend.conv import conv as convolved
from tests.xla.single.program import X2, X2Y3, X3, X4, XY, Single, chain, op

ROWS = "lhs_spec=[0, 2, 1] rhs_spec=[2, 1, 0] out_spec=[0, 2, 1]"
PLANE = "lhs_spec=[0, 3, 1, 2] rhs_spec=[3, 2, 0, 1] out_spec=[0, 3, 1, 2]"


def conv(name: str, mesh: gspmd.Mesh, operands: str, window: str, output: str | None, more: str = "") -> Single:
    """A convolution of [batch, rows, features] or [batch, rows, columns, features]."""
    spec = PLANE if operands.count(",") > 5 else ROWS
    line = f"convolution({operands}) window={{{window}}} {spec} {more}"
    return op(f"convolution:{name}", mesh, line, *(() if output is None else (output,)))


SAME = "size=[3] low=[1] high=[1]"
SAME_2D = "size=[3, 3] low=[1, 1] high=[1, 1]"

CONVOLUTIONS = (
    conv("rows", X4, "f32[4, 64@x, 16], f32[3, 16, 24]", SAME, "_, x, _"),
    conv("rows_2", X2, "f32[4, 64@x, 16], f32[3, 16, 24]", SAME, "_, x, _"),
    conv("rows_ragged", X3, "f32[4, 64@x, 16], f32[3, 16, 24]", SAME, "_, x, _"),
    conv("rows_valid", X4, "f32[4, 64@x, 16], f32[5, 16, 24]", "size=[5]", "_, x, _"),
    conv("rows_strided", X4, "f32[4, 64@x, 16], f32[3, 16, 24]", "size=[3] stride=[2] low=[1] high=[1]", "_, x, _"),
    conv("rows_strided_3", X3, "f32[4, 66@x, 16], f32[3, 16, 24]", "size=[3] stride=[3]", "_, x, _"),
    conv(
        "rows_dilated_kernel",
        X4,
        "f32[4, 64@x, 16], f32[3, 16, 24]",
        "size=[3] window_dilation=[4] low=[4] high=[4]",
        "_, x, _",
    ),
    conv(
        "rows_dilated_input",
        X4,
        "f32[4, 32@x, 16], f32[3, 16, 24]",
        "size=[3] base_dilation=[2] low=[1] high=[2]",
        "_, x, _",
    ),
    conv(
        "rows_dilated_input_ragged",
        X3,
        "f32[4, 32@x, 16], f32[3, 16, 24]",
        "size=[3] base_dilation=[2] low=[1] high=[1]",
        "_, x, _",
    ),
    conv(
        "rows_both_dilated",
        X4,
        "f32[4, 32@x, 16], f32[3, 16, 24]",
        "size=[3] base_dilation=[2] window_dilation=[2] low=[2] high=[2]",
        "_, x, _",
    ),
    conv("rows_reversed", X4, "f32[4, 64@x, 16], f32[3, 16, 24]", "size=[3] low=[2] reversed=[true]", "_, x, _"),
    conv("plane", XY, "f32[2, 32@x, 32@y, 16], f32[3, 3, 16, 24]", SAME_2D, "_, x, y, _"),
    conv("plane_ragged", X2Y3, "f32[2, 31@x, 32@y, 16], f32[3, 3, 16, 24]", SAME_2D, "_, x, y, _"),
    conv("plane_idle_axis", XY, "f32[2, 32@x, 32, 16], f32[3, 3, 16, 24]", SAME_2D, "_, x, _, _"),
    conv("plane_batch_and_rows", XY, "f32[4@y, 32@x, 32, 16], f32[3, 3, 16, 24]", SAME_2D, "y, x, _, _"),
    conv("plane_rows_and_features", XY, "f32[2, 32@x, 32, 16], f32[3, 3, 16, 24@y]", SAME_2D, "_, x, _, y"),
    conv("batch", X4, "f32[8@x, 64, 16], f32[3, 16, 24]", SAME, "x, _, _"),
    conv("input_features", X4, "f32[4, 64, 16@x], f32[3, 16@x, 24]", SAME, "_, _, _"),
    conv("input_features_scattered", X4, "f32[4, 64, 16@x], f32[3, 16@x, 24]", SAME, "_, _, x"),
    conv("output_features", X4, "f32[4, 64, 16], f32[3, 16, 24@x]", SAME, "_, _, x"),
    conv("kernel_rows", X4, "f32[4, 64@x, 16], f32[64@x, 16, 24]", "size=[64] low=[1] high=[1]", "_, _, _"),
    conv("kernel_rows_input_whole", X4, "f32[4, 64, 16], f32[64@x, 16, 24]", "size=[64] low=[1] high=[1]", "_, _, _"),
    conv("output_rows_only", X4, "f32[4, 64, 16], f32[3, 16, 24]", SAME, "_, x, _"),
    conv("mismatched", X4, "f32[4, 64@x, 16], f32[3, 16, 24@x]", SAME, "_, _, x"),
    conv("groups", X4, "f32[4, 64, 16@x], f32[3, 2, 24@x]", SAME, "_, _, x", "feature_group_count=8"),
    conv("depthwise", X4, "f32[4, 64, 16@x], f32[3, 1, 16@x]", SAME, "_, _, x", "feature_group_count=16"),
    conv("depthwise_rows", X4, "f32[4, 64@x, 16], f32[3, 1, 16]", SAME, "_, x, _", "feature_group_count=16"),
    conv(
        "groups_fewer_than_devices", X4, "f32[4, 64, 16@x], f32[3, 8, 24@x]", SAME, "_, _, x", "feature_group_count=2"
    ),
    conv("batch_groups", X4, "f32[8@x, 64, 16], f32[3, 16, 24@x]", SAME, "_, _, x", "batch_group_count=4"),
    conv("batch_groups_rows", X4, "f32[8, 64@x, 16], f32[3, 16, 24]", SAME, "_, x, _", "batch_group_count=4"),
    conv("free", X4, "f32[4, 64@x, 16], f32[3, 16, 24]", SAME, None),
)


def gradient_of_kernel(x: Any, w: Any, ct: Any) -> Any:
    """What reaches the kernel of a convolution."""
    return gspmd.grad(lambda k: (convolved(x, k, order="NCH", kernel_order="OIH") * ct).sum())(w)


def gradient_of_input(x: Any, w: Any, ct: Any) -> Any:
    """What reaches the input of a convolution."""
    return gspmd.grad(lambda a: (convolved(a, w, order="NCH", kernel_order="OIH") * ct).sum())(x)


POOL = "window={size=[1, 3, 1] stride=[1, 2, 1] low=[0, 1, 0] high=[0, 1, 0]}"

POOLING = (
    op(
        "reduce_window:sum",
        X4,
        "reduce_window(f32[4, 64@x, 16]) window={size=[1, 3, 1] low=[0, 1, 0] high=[0, 1, 0]}",
        "_, x, _",
    ),
    op("reduce_window:max", X4, f"reduce_window(f32[4, 64@x, 16]) {POOL} monoid=max", "_, x, _"),
    op("reduce_window:min_ragged", X3, f"reduce_window(f32[4, 64@x, 16]) {POOL} monoid=min", "_, x, _"),
    op(
        "reduce_window:apart", X4, "reduce_window(f32[4, 64@x, 16]) window={size=[1, 4, 1] stride=[1, 4, 1]}", "_, x, _"
    ),
    op(
        "reduce_window:dilated",
        X4,
        "reduce_window(f32[4, 64@x, 16]) "
        "window={size=[1, 3, 1] window_dilation=[1, 2, 1] low=[0, 2, 0] high=[0, 2, 0]} monoid=max",
        "_, x, _",
    ),
    op(
        "reduce_window:base_dilated",
        X4,
        "reduce_window(f32[4, 32@x, 16]) window={size=[1, 3, 1] base_dilation=[1, 2, 1] low=[0, 1, 0] high=[0, 2, 0]}",
        "_, x, _",
    ),
    op(
        "reduce_window:plane",
        XY,
        "reduce_window(f32[32@x, 32@y, 8]) "
        "window={size=[3, 3, 1] stride=[2, 2, 1] low=[1, 1, 0] high=[1, 1, 0]} monoid=max",
        "x, y, _",
    ),
    op("reduce_window:whole_window", X4, "reduce_window(f32[64@x, 16]) window={size=[64, 1]}", "_, _"),
    op("reduce_window:batch", X4, f"reduce_window(f32[8@x, 64, 16]) {POOL} monoid=max", "x, _, _"),
    op("reduce_window:cumulative", X4, "reduce_window(f32[64@x, 16]) window={size=[64, 1] low=[63, 0]}", "x, _"),
    op(
        "select_and_scatter:rows",
        X4,
        "select_and_scatter(f32[64@x, 16], f32[32@x, 16]) window={size=[2, 1] stride=[2, 1]} select=GE",
        "x, _",
    ),
    op(
        "select_and_scatter:overlapping",
        X4,
        "select_and_scatter(f32[64@x, 16], f32[32@x, 16]) "
        "window={size=[3, 1] stride=[2, 1] low=[1, 0] high=[0, 0]} select=GE",
        "x, _",
    ),
    op(
        "select_and_scatter:ragged",
        X3,
        "select_and_scatter(f32[64@x, 16], f32[32@x, 16]) "
        "window={size=[3, 1] stride=[2, 1] low=[1, 0] high=[0, 0]} select=GE",
        "x, _",
    ),
    op(
        "select_and_scatter:columns",
        X4,
        "select_and_scatter(f32[64, 16@x], f32[32, 16@x]) window={size=[2, 1] stride=[2, 1]} select=GE",
        "_, x",
    ),
    op(
        "select_and_scatter:batch",
        X4,
        "select_and_scatter(f32[8@x, 64, 16], f32[8@x, 32, 16]) window={size=[1, 2, 1] stride=[1, 2, 1]} select=GE",
        "x, _, _",
    ),
)

CUMULATIVE = (
    op("cumulative:sum", X4, "cumulative_reduce(f32[64@x, 32]) dim=0", "x, _"),
    op("cumulative:sum_ragged", X3, "cumulative_reduce(f32[64@x, 32]) dim=0", "x, _"),
    op("cumulative:sum_reverse", X4, "cumulative_reduce(f32[64@x, 32]) dim=0 reverse=true", "x, _"),
    op("cumulative:max", X2, "cumulative_reduce(f32[64@x, 32]) dim=0 monoid=max", "x, _"),
    op("cumulative:product", XY, "cumulative_reduce(f32[64@x, 32@y]) dim=1 monoid=mul", "x, y"),
    op("cumulative:other_dim", X4, "cumulative_reduce(f32[64@x, 32]) dim=1", "x, _"),
    op("cumulative:two_axes", XY, "cumulative_reduce(f32[64@x+y, 32]) dim=0", "x+y, _"),
    op("cumulative:to_columns", X4, "cumulative_reduce(f32[64@x, 32]) dim=0", "_, x"),
)

GRADIENTS = (
    chain(
        "convolution:kernel_gradient_rows",
        X4,
        gradient_of_kernel,
        "f32[4, 16, 64@x]; f32[24, 16, 3]; f32[4, 24, 64@x]",
        "_, _, _",
    ),
    chain(
        "convolution:kernel_gradient_batch",
        X4,
        gradient_of_kernel,
        "f32[4@x, 16, 64]; f32[24, 16, 3]; f32[4@x, 24, 64]",
        "_, _, _",
    ),
    chain(
        "convolution:kernel_gradient_ragged",
        X3,
        gradient_of_kernel,
        "f32[4, 16, 64@x]; f32[24, 16, 3]; f32[4, 24, 64@x]",
        "_, _, _",
    ),
    chain(
        "convolution:kernel_gradient_scattered",
        X4,
        gradient_of_kernel,
        "f32[4, 16, 64@x]; f32[24, 16, 3]; f32[4, 24, 64@x]",
        "x, _, _",
    ),
    chain(
        "convolution:input_gradient_rows",
        X4,
        gradient_of_input,
        "f32[4, 16, 64@x]; f32[24, 16, 3]; f32[4, 24, 64@x]",
        "_, _, x",
    ),
    chain(
        "convolution:input_gradient_features",
        X4,
        gradient_of_input,
        "f32[4, 16, 64]; f32[24@x, 16, 3]; f32[4, 24@x, 64]",
        "_, _, _",
    ),
)

SINGLES = (*CONVOLUTIONS, *GRADIENTS, *POOLING, *CUMULATIVE)
