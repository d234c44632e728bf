"""Reductions by every monoid, of several operands, to split and whole results; arg-max; norms."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from tests.xla.single.program import X2, X2Y3, X2Y4, X3, X4, XY, chain, op

FIRST_LARGEST = (
    "(%a: f32[], %i: i32[], %b: f32[], %j: i32[]) { %g = compare(%a, %b) direction=GE : bool[] "
    "%v = select(%g, %a, %b) : f32[] %k = select(%g, %i, %j) : i32[] return %v, %k }"
)
MAX_AND_MIN = (
    "(%a: f32[], %i: f32[], %b: f32[], %j: f32[]) { %s = maximum(%a, %b) : f32[] %p = minimum(%i, %j) : f32[] "
    "return %s, %p }"
)


def arg_max(axis: int) -> Any:
    """The place of the largest."""
    return lambda a: gnp.argmax(a, axis=axis)


def mean_and_variance(a: Any) -> Any:
    """Two statistics of the rows."""
    return gnp.mean(a, axis=0), gnp.var(a, axis=0)


MONOIDS = tuple(
    op(f"reduce:{monoid}", X4, f"reduce({dtype}[64@x, 32]) dims=[0] monoid={monoid}", "_")
    for monoid, dtype in (
        ("add", "f32"), ("mul", "f32"), ("max", "f32"), ("min", "f32"), ("and", "i32"), ("or", "bool"), ("xor", "i32")
    )
)  # fmt: skip

SHARDINGS = (
    op("reduce:pairs", X2, "reduce(f32[64@x, 32]) dims=[0]", "_"),
    op("reduce:ragged", X3, "reduce(f32[64@x, 32]) dims=[0]", "_"),
    op("reduce:ragged_max", X3, "reduce(f32[64@x, 32]) dims=[0] monoid=max", "_"),
    op("reduce:scattered", X4, "reduce(f32[64@x, 32, 16]) dims=[0]", "x, _"),
    op("reduce:scattered_ragged", X3, "reduce(f32[64@x, 32, 16]) dims=[0]", "x, _"),
    op("reduce:scattered_max", X4, "reduce(f32[64@x, 32, 16]) dims=[0] monoid=max", "x, _"),
    op("reduce:scattered_minor", X4, "reduce(f32[64@x, 32, 16]) dims=[0]", "_, x"),
    op("reduce:other_dim", X4, "reduce(f32[64@x, 32]) dims=[1]", "x"),
    op("reduce:other_dim_to_whole", X4, "reduce(f32[64@x, 32]) dims=[1]", "_"),
    op("reduce:everything", X4, "reduce(f32[64@x, 32]) dims=[0, 1]", ""),
    op("reduce:everything_2d", XY, "reduce(f32[64@x, 32@y]) dims=[0, 1]", ""),
    op("reduce:2d_rows", XY, "reduce(f32[64@x, 32@y]) dims=[0]", "y"),
    op("reduce:2d_rows_to_x", XY, "reduce(f32[64@x, 32@y]) dims=[0]", "x"),
    op("reduce:2d_rows_to_both", XY, "reduce(f32[64@x, 32@y]) dims=[0]", "y+x"),
    op("reduce:2d_rows_to_whole", XY, "reduce(f32[64@x, 32@y]) dims=[0]", "_"),
    op("reduce:2d_one_dim_two_axes", X2Y4, "reduce(f32[64@x+y, 32, 16]) dims=[0]", "y, x"),
    op("reduce:2d_partly_scattered", X2Y4, "reduce(f32[64@x+y, 32, 16]) dims=[0]", "y, _"),
    op("reduce:2d_ragged", X2Y3, "reduce(f32[63@x, 32@y, 16]) dims=[0]", "y, _"),
    op("reduce:idle_axis", XY, "reduce(f32[64@x, 32]) dims=[0]", "_"),
    op("reduce:idle_axis_to_result", XY, "reduce(f32[64@x, 32]) dims=[0]", "y"),
    op("reduce:from_whole", X4, "reduce(f32[64, 32]) dims=[0]", "x"),
    op("reduce:from_whole_to_whole", X4, "reduce(f32[64, 32]) dims=[0]", "_"),
    op("reduce:low_precision", X4, "reduce(bf16[64@x, 32]) dims=[0]", "_"),
    op("reduce:free", X4, "reduce(f32[64@x, 32]) dims=[0]"),
    op("reduce:free_other_dim", X4, "reduce(f32[64@x, 32]) dims=[1]"),
)

SEVERAL = (
    op(
        "reduce:arg_max",
        X4,
        f"reduce(f32[64@x, 32], i32[64@x, 32], f32[], i32[]) dims=[0] monoid=custom {FIRST_LARGEST}",
        "_",
        "_",
        below=64,
    ),
    op(
        "reduce:arg_max_other_dim",
        X4,
        f"reduce(f32[64@x, 32], i32[64@x, 32], f32[], i32[]) dims=[1] monoid=custom {FIRST_LARGEST}",
        "x",
        "x",
        below=64,
    ),
    op(
        "reduce:arg_max_ragged",
        X3,
        f"reduce(f32[64@x, 32], i32[64@x, 32], f32[], i32[]) dims=[0] monoid=custom {FIRST_LARGEST}",
        "_",
        "_",
        below=64,
    ),
    op(
        "reduce:arg_max_scattered",
        X4,
        f"reduce(f32[64@x, 32], i32[64@x, 32], f32[], i32[]) dims=[0] monoid=custom {FIRST_LARGEST}",
        "x",
        "x",
        below=64,
    ),
    op(
        "reduce:max_and_min",
        X4,
        f"reduce(f32[64@x, 32], f32[64@x, 32], f32[], f32[]) dims=[0] monoid=custom {MAX_AND_MIN}",
        "_",
        "_",
    ),
    op(
        "reduce:arg_max_mismatched",
        X4,
        f"reduce(f32[64@x, 32], i32[64, 32@x], f32[], i32[]) dims=[0] monoid=custom {FIRST_LARGEST}",
        "x",
        "x",
        below=64,
    ),
    chain("arg_max:split", X4, arg_max(1), "f32[64, 32@x]", "_"),
    chain("arg_max:split_ragged", X3, arg_max(1), "f32[64, 32@x]", "_"),
    chain("arg_max:split_2d", XY, arg_max(1), "f32[64@x, 32@y]", "x"),
    chain("arg_max:rows", X4, arg_max(1), "f32[64@x, 32]", "x"),
    chain("arg_max:two_axes", XY, arg_max(0), "f32[64@x+y, 32]", "_"),
    chain("arg_max:mean_and_variance", X4, mean_and_variance, "f32[64@x, 32]", "_", "_"),
)

SINGLES = (*MONOIDS, *SHARDINGS, *SEVERAL)
