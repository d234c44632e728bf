"""Reshards of every kind, each of a negated tensor."""

from __future__ import annotations

import gspmd
from tests.xla.single.program import X2, X2Y3, X2Y4, X3, X4, XY, Single, op

XYZ = gspmd.Mesh({"x": 2, "y": 2, "z": 2})


def between(name: str, mesh: gspmd.Mesh, shape: tuple[int, ...], source: str, target: str) -> Single:
    """From one sharding of a shape to another."""
    held = zip(shape, source.split(", "), strict=True)
    split = (str(n) if axes == "_" else f"{n}@{axes}" for n, axes in held)
    return op(f"reshard:{name}", mesh, f"negate(f32[{', '.join(split)}])", target)


FLAT, CUBE = (64, 48), (16, 24, 32)

SINGLES = (
    between("gather", X4, FLAT, "x, _", "_, _"),
    between("gather_ragged", X3, FLAT, "x, _", "_, _"),
    between("gather_minor", X4, FLAT, "_, x", "_, _"),
    between("slice", X4, FLAT, "_, _", "x, _"),
    between("slice_ragged", X3, FLAT, "_, _", "x, _"),
    between("exchange", X2, FLAT, "x, _", "_, x"),
    between("exchange_4", X4, FLAT, "x, _", "_, x"),
    between("exchange_ragged", X3, FLAT, "x, _", "_, x"),
    between("exchange_ragged_both", X3, (65, 49), "x, _", "_, x"),
    between("swap", XY, FLAT, "x, y", "y, x"),
    between("swap_wide", X2Y4, FLAT, "x, y", "y, x"),
    between("swap_ragged", X2Y3, FLAT, "x, y", "y, x"),
    between("order", XY, FLAT, "x+y, _", "y+x, _"),
    between("order_wide", X2Y4, FLAT, "x+y, _", "y+x, _"),
    between("order_ragged", X2Y3, FLAT, "x+y, _", "y+x, _"),
    between("replaced", XY, FLAT, "x, _", "y, _"),
    between("replaced_wide", X2Y4, FLAT, "x, _", "y, _"),
    between("replaced_back", X2Y4, FLAT, "y, _", "x, _"),
    between("moved_axis", XY, FLAT, "x, _", "_, y"),
    between("both_to_one", XY, FLAT, "x, y", "x+y, _"),
    between("one_to_both", XY, FLAT, "x+y, _", "x, y"),
    between("one_to_both_swapped", XY, FLAT, "x+y, _", "y, x"),
    between("both_to_other", XY, FLAT, "x, y", "_, x+y"),
    between("both_to_other_reversed", XY, FLAT, "x, y", "_, y+x"),
    between("both_moved", XY, FLAT, "x+y, _", "_, x+y"),
    between("both_moved_reversed", XY, FLAT, "x+y, _", "_, y+x"),
    between("coarser", XY, FLAT, "x+y, _", "x, _"),
    between("coarser_minor_kept", XY, FLAT, "x+y, _", "y, _"),
    between("finer", XY, FLAT, "x, _", "x+y, _"),
    between("finer_major", XY, FLAT, "x, _", "y+x, _"),
    between("one_gathered", XY, FLAT, "x, y", "x, _"),
    between("one_gathered_other_moved", XY, FLAT, "x, y", "_, x"),
    between("one_added", XY, FLAT, "x, _", "x, y"),
    between("sub_axis_to_other", X4, FLAT, "x, _", "x:(1)2, x:(2)2"),
    between("sub_axis_swapped", X4, FLAT, "x, _", "x:(2)2, x:(1)2"),
    between("sub_axis_order", X4, FLAT, "x, _", "x:(2)2+x:(1)2, _"),
    between("sub_axis_replaced", X4, FLAT, "x:(1)2, _", "x:(2)2, _"),
    between("sub_axis_gathered", X4, FLAT, "x, _", "x:(1)2, _"),
    between("sub_axis_kept_minor", X4, FLAT, "x, _", "x:(2)2, _"),
    between("cube_rotated", XYZ, CUBE, "x, y, z", "y, z, x"),
    between("cube_swapped", XYZ, CUBE, "x, y, z", "x, z, y"),
    between("cube_packed", XYZ, CUBE, "x, y, z", "x+y+z, _, _"),
    between("cube_unpacked", XYZ, CUBE, "x+y+z, _, _", "x, y, z"),
    between("cube_gathered", XYZ, CUBE, "x, y, z", "_, y, _"),
    between("cube_moved", XYZ, CUBE, "x, y, _", "_, x, y"),
    between("cube_sequence_to_heads", X4, CUBE, "_, x, _", "_, _, x"),
    between("ragged_2d_rows", X2Y3, (63, 50), "x, y", "x+y, _"),
    between("ragged_2d_replaced", X2Y3, (63, 50), "x, _", "y, _"),
    between("ragged_2d_moved", X2Y3, (63, 50), "x, y", "_, x"),
    between("ragged_finer", X2Y3, (65, 50), "x, _", "x+y, _"),
    between("ragged_coarser", X2Y3, (65, 50), "x+y, _", "x, _"),
)
