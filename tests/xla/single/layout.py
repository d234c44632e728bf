"""Broadcasts, transpositions, reshapes, iota, element-wise ops whose operands are laid out differently."""

from __future__ import annotations

from tests.xla.single.program import X2, X2Y3, X2Y4, X3, X4, XY, op

BROADCASTS = (
    op("broadcast:new_rows", X4, "broadcast_in_dim(f32[32]) shape=[64, 32] dims=[1]", "x, _"),
    op("broadcast:split_kept", X4, "broadcast_in_dim(f32[32@x]) shape=[64, 32] dims=[1]", "_, x"),
    op("broadcast:split_to_rows", X4, "broadcast_in_dim(f32[32@x]) shape=[64, 32] dims=[1]", "x, _"),
    op("broadcast:to_whole", X4, "broadcast_in_dim(f32[32@x]) shape=[64, 32] dims=[1]", "_, _"),
    op("broadcast:ragged", X3, "broadcast_in_dim(f32[32@x]) shape=[64, 32] dims=[1]", "_, x"),
    op("broadcast:of_one", X4, "broadcast_in_dim(f32[64@x, 1]) shape=[64, 32] dims=[0, 1]", "x, _"),
    op("broadcast:of_one_split", X4, "broadcast_in_dim(f32[64, 1]) shape=[64, 32] dims=[0, 1]", "_, x"),
    op("broadcast:transposed", XY, "broadcast_in_dim(f32[64@x, 32@y]) shape=[32, 8, 64] dims=[2, 0]", "y, _, x"),
    op("broadcast:transposed_moved", XY, "broadcast_in_dim(f32[64@x, 32@y]) shape=[32, 8, 64] dims=[2, 0]", "x, _, y"),
    op("broadcast:scalar", X4, "broadcast_in_dim(f32[]) shape=[64, 32]", "x, _"),
    op("broadcast:free", X4, "broadcast_in_dim(f32[32@x]) shape=[64, 32] dims=[1]"),
)

TRANSPOSES = (
    op("transpose:followed", X4, "transpose(f32[64@x, 32]) permutation=[1, 0]", "_, x"),
    op("transpose:moved", X4, "transpose(f32[64@x, 32]) permutation=[1, 0]", "x, _"),
    op("transpose:moved_ragged", X3, "transpose(f32[64@x, 32]) permutation=[1, 0]", "x, _"),
    op("transpose:2d_swapped", XY, "transpose(f32[64@x, 32@y]) permutation=[1, 0]", "x, y"),
    op("transpose:2d_followed", XY, "transpose(f32[64@x, 32@y]) permutation=[1, 0]", "y, x"),
    op("transpose:2d_wide", X2Y4, "transpose(f32[64@x, 32@y]) permutation=[1, 0]", "x, y"),
    op("transpose:three", XY, "transpose(f32[16@x, 8@y, 32]) permutation=[2, 0, 1]", "x, _, y"),
    op("transpose:to_whole", X4, "transpose(f32[64@x, 32]) permutation=[1, 0]", "_, _"),
    op("transpose:free", X4, "transpose(f32[64@x, 32]) permutation=[1, 0]"),
)

RESHAPES = (
    op("reshape:merge_major", X4, "reshape(f32[16@x, 8, 32]) shape=[128, 32]", "x, _"),
    op("reshape:merge_minor", X4, "reshape(f32[16, 8@x, 32]) shape=[128, 32]", "x, _"),
    op("reshape:merge_minor_to_columns", X4, "reshape(f32[16, 8@x, 32]) shape=[128, 32]", "_, x"),
    op("reshape:merge_both", XY, "reshape(f32[16@x, 8@y, 32]) shape=[128, 32]", "x, _"),
    op("reshape:merge_both_full", XY, "reshape(f32[2@x, 64@y, 32]) shape=[128, 32]", "x+y, _"),
    op("reshape:split_major", X4, "reshape(f32[128@x, 32]) shape=[16, 8, 32]", "x, _, _"),
    op("reshape:split_to_minor", X4, "reshape(f32[128@x, 32]) shape=[16, 8, 32]", "_, x, _"),
    op("reshape:split_few_major", X4, "reshape(f32[128@x, 32]) shape=[2, 64, 32]", "_, x, _"),
    op("reshape:split_two_axes", XY, "reshape(f32[128@x+y, 32]) shape=[2, 64, 32]", "x, y, _"),
    op("reshape:uneven_merge", X4, "reshape(f32[62@x, 8]) shape=[496]", "x"),
    op("reshape:uneven_split", X4, "reshape(f32[496@x]) shape=[62, 8]", "x, _"),
    op("reshape:uneven_both", X3, "reshape(f32[64@x, 6]) shape=[48, 8]", "x, _"),
    op("reshape:uneven_minor", X3, "reshape(f32[10, 8@x, 16]) shape=[80, 16]", "x, _"),
    op("reshape:uneven_2d", X2Y3, "reshape(f32[31@x, 8, 32@y]) shape=[248, 32]", "x, y"),
    op("reshape:whole_to_uneven", X4, "reshape(f32[62, 8]) shape=[496]", "x"),
    op("reshape:whole_to_uneven_split", X3, "reshape(f32[256, 8]) shape=[32, 64]", "x, _"),
    op("reshape:whole_to_uneven_minor", X3, "reshape(f32[256, 8]) shape=[32, 64]", "_, x"),
    op("reshape:whole_to_minor", X4, "reshape(f32[128, 8]) shape=[16, 64]", "_, x"),
    op("reshape:uneven_to_whole", X3, "reshape(f32[64@x, 8]) shape=[512]", "_"),
    op("reshape:regrouped", X4, "reshape(f32[12@x, 32]) shape=[16, 24]", "x, _"),
    op("reshape:regrouped_ragged", X4, "reshape(f32[10@x, 32]) shape=[16, 20]", "x, _"),
    op("reshape:of_ones", X4, "reshape(f32[1, 64@x, 1, 32]) shape=[64, 32]", "x, _"),
    op("reshape:free", X4, "reshape(f32[16, 8@x, 32]) shape=[128, 32]"),
)

IOTAS = (
    op("iota:along_split", X4, "iota() shape=[64, 32] dtype=i32 dimension=0", "x, _"),
    op("iota:along_split_ragged", X3, "iota() shape=[64, 32] dtype=i32 dimension=0", "x, _"),
    op("iota:across_split", X4, "iota() shape=[64, 32] dtype=f32 dimension=1", "x, _"),
    op("iota:2d", XY, "iota() shape=[64, 32] dtype=i32 dimension=1", "x, y"),
)

ELEMENTWISE = (
    op("elementwise:alike", X4, "add(f32[64@x, 32], f32[64@x, 32])", "x, _"),
    op("elementwise:rows_and_columns", X4, "add(f32[64@x, 32], f32[64, 32@x])", "x, _"),
    op("elementwise:rows_and_columns_whole", X4, "multiply(f32[64@x, 32], f32[64, 32@x])", "_, _"),
    op("elementwise:rows_and_whole", X4, "add(f32[64@x, 32], f32[64, 32])", "x, _"),
    op("elementwise:rows_and_whole_to_whole", X4, "maximum(f32[64@x, 32], f32[64, 32])", "_, _"),
    op("elementwise:alike_to_columns", X4, "subtract(f32[64@x, 32], f32[64@x, 32])", "_, x"),
    op("elementwise:alike_to_whole", X4, "subtract(f32[64@x, 32], f32[64@x, 32])", "_, _"),
    op("elementwise:two_axes", XY, "add(f32[64@x, 32], f32[64, 32@y])", "x, y"),
    op("elementwise:two_axes_one", XY, "add(f32[64@x, 32@y], f32[64@x, 32])", "x, _"),
    op("elementwise:swapped_axes", XY, "add(f32[64@x, 32@y], f32[64@y, 32@x])", "x, y"),
    op("elementwise:finer", XY, "add(f32[64@x+y, 32], f32[64@x, 32])", "x, _"),
    op("elementwise:ragged", X3, "add(f32[64@x, 32], f32[64, 32@x])", "x, _"),
    op("elementwise:select", X4, "select(bool[64@x, 32], f32[64, 32@x], f32[64@x, 32])", "x, _"),
    op("elementwise:select_scalar", X4, "select(bool[], f32[64@x, 32], f32[64@x, 32])", "x, _"),
    op("elementwise:clamp", X4, "clamp(f32[], f32[64@x, 32], f32[64, 32@x])", "x, _"),
    op("elementwise:compare", X2, "compare(f32[64@x, 32], f32[64, 32@x]) direction=LT", "_, x"),
    op("elementwise:narrowed", X4, "convert(f32[64@x, 32]) dtype=bf16", "_, _"),
    op("elementwise:widened", X4, "convert(bf16[64@x, 32]) dtype=f32", "_, _"),
    op("elementwise:widened_to_columns", X4, "convert(bf16[64@x, 32]) dtype=f32", "_, x"),
    op("elementwise:narrowed_to_columns", X4, "convert(f32[64@x, 32]) dtype=bf16", "_, x"),
    op("elementwise:compared_to_whole", X4, "compare(f32[64@x, 32], f32[64@x, 32]) direction=LT", "_, _"),
    op("elementwise:complex", X4, "complex(f32[64@x, 32], f32[64@x, 32])", "_, _"),
    op("elementwise:real", X4, "real(c64[64@x, 32])", "_, _"),
    op("elementwise:free", X4, "add(f32[64@x, 32], f32[64, 32@x])"),
)

SINGLES = (*BROADCASTS, *TRANSPOSES, *RESHAPES, *IOTAS, *ELEMENTWISE)
