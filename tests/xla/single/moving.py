"""Slices, padding, concatenation, reversal, shifts and rolls along split dimensions."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from tests.xla.single.program import X2, X2Y3, X3, X4, XY, chain, op


def rolled(places: int, axis: int = 0) -> Any:
    """A rotation, as a slice and a concatenation."""
    return lambda a: gnp.roll(a, places, axis=axis)


def shifted(places: int) -> Any:
    """A shift by padding and cutting."""
    return lambda a: gnp.pad(a, ((places, 0), (0, 0)))[: a.shape[0]]


def stencil(a: Any) -> Any:
    """Two neighbours, from one padded tensor."""
    wide = gnp.pad(a, ((1, 1), (0, 0)))
    return wide[2:] + wide[:-2]


def padded_twice(a: Any) -> Any:
    """Padding of what is padded."""
    return gnp.pad(gnp.pad(a, ((3, 0), (0, 0))), ((0, 5), (1, 1)))


def cut_twice(a: Any) -> Any:
    """A slice of a slice."""
    return a[8:][: a.shape[0] - 16]


def halves_swapped(a: Any) -> Any:
    """The two halves of the columns change places."""
    half = a.shape[1] // 2
    return gnp.concatenate([a[:, half:], a[:, :half]], axis=1)


def every_third_backwards(a: Any) -> Any:
    """Rows from a place on, the last of them first."""
    return a[7:89][::-3]


def interleaved(a: Any) -> Any:
    """Even rows before odd rows."""
    return gnp.concatenate([a[::2], a[1::2]], axis=0)


SLICES = (
    op("slice:strided", X4, "slice(f32[64@x, 32]) start=[0, 0] limit=[64, 32] stride=[2, 1]", "x, _"),
    op("slice:strided_offset", X4, "slice(f32[96@x, 32]) start=[5, 0] limit=[96, 32] stride=[3, 1]", "x, _"),
    op("slice:strided_ragged", X3, "slice(f32[100@x, 32]) start=[1, 0] limit=[99, 32] stride=[2, 1]", "x, _"),
    op("slice:strided_to_whole", X4, "slice(f32[64@x, 32]) start=[0, 0] limit=[64, 32] stride=[4, 1]", "_, _"),
    op("slice:strided_2d", XY, "slice(f32[64@x, 48@y]) start=[3, 2] limit=[63, 46] stride=[2, 2]", "x, y"),
    op("slice:head", X4, "slice(f32[64@x, 32]) start=[0, 0] limit=[16, 32] stride=[1, 1]", "x, _"),
    op("slice:head_to_whole", X4, "slice(f32[64@x, 32]) start=[0, 0] limit=[16, 32] stride=[1, 1]", "_, _"),
    op("slice:tail", X4, "slice(f32[64@x, 32]) start=[48, 0] limit=[64, 32] stride=[1, 1]", "x, _"),
    op("slice:middle", X2, "slice(f32[64@x, 32]) start=[16, 0] limit=[48, 32] stride=[1, 1]", "x, _"),
    op("slice:one_row", X4, "slice(f32[64@x, 32]) start=[17, 0] limit=[18, 32] stride=[1, 1]", "_, _"),
    op("slice:one_row_split_columns", X4, "slice(f32[64@x, 32]) start=[17, 0] limit=[18, 32] stride=[1, 1]", "_, x"),
    op("slice:off_by_one", X4, "slice(f32[64@x, 32]) start=[1, 0] limit=[64, 32] stride=[1, 1]", "x, _"),
    op("slice:ragged", X3, "slice(f32[70@x, 32]) start=[3, 0] limit=[64, 32] stride=[1, 1]", "x, _"),
    op("slice:whole_dim", X4, "slice(f32[64@x, 32]) start=[0, 4] limit=[64, 20] stride=[1, 1]", "x, _"),
    op("slice:moves_axis", X4, "slice(f32[64@x, 32]) start=[0, 0] limit=[32, 32] stride=[1, 1]", "_, x"),
    op("slice:from_whole", X4, "slice(f32[64, 32]) start=[8, 0] limit=[56, 32] stride=[1, 1]", "x, _"),
    op("slice:idle_axis", XY, "slice(f32[64@x, 32]) start=[8, 0] limit=[56, 32] stride=[1, 1]", "x, _"),
    op("slice:two_axes_one_dim", XY, "slice(f32[64@x+y, 32]) start=[8, 0] limit=[56, 32] stride=[1, 1]", "x+y, _"),
    op("slice:strided_middle", X4, "slice(f32[63, 48@x]) start=[13, 7] limit=[63, 23] stride=[1, 2]", "_, x"),
    op("slice:strided_2d_to_whole", XY, "slice(f32[64@x, 48@y]) start=[9, 3] limit=[41, 46] stride=[4, 3]", "_, _"),
    chain("slice:strided_backwards", X4, every_third_backwards, "f32[96@x, 32]", "x, _"),
    op("slice:free", X4, "slice(f32[64@x, 32]) start=[8, 0] limit=[56, 32] stride=[1, 1]"),
)

PADS = (
    op("pad:low", X4, "pad(f32[64@x, 32], f32[]) low=[4, 0] high=[0, 0] interior=[0, 0]", "x, _"),
    op("pad:both", X4, "pad(f32[64@x, 32], f32[]) low=[2, 0] high=[2, 0] interior=[0, 0]", "x, _"),
    op("pad:wide", X4, "pad(f32[64@x, 32], f32[]) low=[32, 0] high=[32, 0] interior=[0, 0]", "x, _"),
    op("pad:interior", X4, "pad(f32[64@x, 32], f32[]) low=[0, 0] high=[0, 0] interior=[1, 0]", "x, _"),
    op("pad:interior_ragged", X3, "pad(f32[50@x, 32], f32[]) low=[1, 0] high=[2, 0] interior=[2, 0]", "x, _"),
    op("pad:interior_even", X4, "pad(f32[64@x, 32], f32[]) low=[0, 0] high=[1, 0] interior=[1, 0]", "x, _"),
    op("pad:negative", X4, "pad(f32[64@x, 32], f32[]) low=[-4, 0] high=[-4, 0] interior=[0, 0]", "x, _"),
    op("pad:shift", X4, "pad(f32[64@x, 32], f32[]) low=[3, 0] high=[-3, 0] interior=[0, 0]", "x, _"),
    op("pad:shift_ragged", X3, "pad(f32[64@x, 32], f32[]) low=[-3, 0] high=[3, 0] interior=[0, 0]", "x, _"),
    op("pad:negative_interior", X4, "pad(f32[64@x, 32], f32[]) low=[-2, 0] high=[3, 0] interior=[1, 0]", "x, _"),
    op("pad:2d", XY, "pad(f32[64@x, 32@y], f32[]) low=[1, 1] high=[1, 1] interior=[0, 0]", "x, y"),
    op("pad:2d_ragged", X2Y3, "pad(f32[63@x, 32@y], f32[]) low=[1, 2] high=[0, 1] interior=[0, 0]", "x, y"),
    op("pad:from_whole", X4, "pad(f32[64, 32], f32[]) low=[2, 0] high=[2, 0] interior=[0, 0]", "x, _"),
    op("pad:to_whole", X4, "pad(f32[64@x, 32], f32[]) low=[2, 0] high=[2, 0] interior=[0, 0]", "_, _"),
    op("pad:unsplit_dim", X4, "pad(f32[64@x, 32], f32[]) low=[0, 2] high=[0, 2] interior=[0, 0]", "x, _"),
    op("pad:free", X4, "pad(f32[64@x, 32], f32[]) low=[2, 0] high=[2, 0] interior=[0, 0]"),
)

CONCATENATIONS = (
    op("concatenate:split", X4, "concatenate(f32[64@x, 32], f32[64@x, 32]) dimension=0", "x, _"),
    op("concatenate:split_uneven", X4, "concatenate(f32[64@x, 32], f32[32@x, 32]) dimension=0", "x, _"),
    op("concatenate:three_ragged", X3, "concatenate(f32[20@x, 32], f32[31@x, 32], f32[9@x, 32]) dimension=0", "x, _"),
    op("concatenate:other_dim", X4, "concatenate(f32[64@x, 32], f32[64@x, 16]) dimension=1", "x, _"),
    op("concatenate:mismatched", X4, "concatenate(f32[64@x, 32], f32[64, 32@x]) dimension=0", "_, x"),
    op("concatenate:mismatched_rows", X4, "concatenate(f32[64@x, 32], f32[64, 32@x]) dimension=0", "x, _"),
    op("concatenate:2d", XY, "concatenate(f32[64@x, 32@y], f32[64@x, 32@y]) dimension=0", "x, y"),
    op("concatenate:one_row", X4, "concatenate(f32[63@x, 32], f32[1, 32]) dimension=0", "x, _"),
    op("concatenate:whole_parts", X4, "concatenate(f32[32, 32], f32[32, 32]) dimension=0", "x, _"),
    op("concatenate:to_whole", X4, "concatenate(f32[32@x, 32], f32[32@x, 32]) dimension=0", "_, _"),
    op("concatenate:idle_axis", XY, "concatenate(f32[64@x, 32], f32[64@x, 32]) dimension=0", "x, _"),
    op("concatenate:free", X4, "concatenate(f32[64@x, 32], f32[64@x, 32]) dimension=0"),
)

REVERSES = (
    op("reverse:rows", X4, "reverse(f32[64@x, 32]) dims=[0]", "x, _"),
    op("reverse:rows_2", X2, "reverse(f32[64@x, 32]) dims=[0]", "x, _"),
    op("reverse:ragged", X3, "reverse(f32[64@x, 32]) dims=[0]", "x, _"),
    op("reverse:both", XY, "reverse(f32[64@x, 32@y]) dims=[0, 1]", "x, y"),
    op("reverse:two_axes", XY, "reverse(f32[64@x+y, 32]) dims=[0]", "x+y, _"),
    op("reverse:three", X2Y3, "reverse(f32[64@x, 33@y, 4]) dims=[0, 1, 2]", "x, y, _"),
    op("reverse:other_dim", X4, "reverse(f32[64@x, 32]) dims=[1]", "x, _"),
    op("reverse:to_columns", X4, "reverse(f32[64@x, 32]) dims=[0]", "_, x"),
    op("reverse:to_whole", X4, "reverse(f32[64@x, 32]) dims=[0]", "_, _"),
)

SHIFTS = (
    chain("shift:roll_1", X4, rolled(1), "f32[64@x, 32]", "x, _"),
    chain("shift:roll_1_of_2", X2, rolled(1), "f32[64@x, 32]", "x, _"),
    chain("shift:roll_back", X4, rolled(-3), "f32[64@x, 32]", "x, _"),
    chain("shift:roll_chunk", X4, rolled(16), "f32[64@x, 32]", "x, _"),
    chain("shift:roll_more_than_chunk", X4, rolled(20), "f32[64@x, 32]", "x, _"),
    chain("shift:roll_half", X4, rolled(32), "f32[64@x, 32]", "x, _"),
    chain("shift:roll_ragged", X3, rolled(1), "f32[64@x, 32]", "x, _"),
    chain("shift:roll_columns", XY, rolled(1, 1), "f32[64@x, 32@y]", "x, y"),
    chain("shift:pad_and_cut", X4, shifted(1), "f32[64@x, 32]", "x, _"),
    chain("shift:pad_and_cut_ragged", X3, shifted(5), "f32[64@x, 32]", "x, _"),
    chain("shift:stencil", X4, stencil, "f32[64@x, 32]", "x, _"),
    chain("shift:stencil_ragged", X3, stencil, "f32[64@x, 32]", "x, _"),
    chain("shift:padded_twice", X4, padded_twice, "f32[64@x, 30]", "x, _"),
    chain("shift:cut_twice", X4, cut_twice, "f32[64@x, 32]", "x, _"),
    chain("shift:halves_swapped", X4, halves_swapped, "f32[64, 32@x]", "_, x"),
    chain("shift:halves_swapped_ragged", X3, halves_swapped, "f32[64, 32@x]", "_, x"),
    chain("shift:interleaved", X4, interleaved, "f32[64@x, 32]", "x, _"),
)

SINGLES = (*SLICES, *PADS, *CONCATENATIONS, *REVERSES, *SHIFTS)
