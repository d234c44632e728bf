"""Data that moves along split dimensions: shifts, slices, padding, concatenation, stencils."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from tests.xla.case import Case
from tests.xla.judge_programs.meshes import RAGGED, X8, XY


def rolled(a: Any) -> Any:
    return gnp.roll(a, 1, axis=0) + a


def middle(a: Any) -> Any:
    return a[256:768] * 2.0


def every_other(a: Any) -> Any:
    return a[::2] * 2.0


def padded(a: Any) -> Any:
    return gnp.pad(a, ((2, 2), (0, 0)))[: a.shape[0]] + a


def joined(a: Any, b: Any) -> Any:
    return gnp.concatenate([a, b], axis=0) * 2.0


def reversed_rows(a: Any) -> Any:
    return gnp.flip(a, axis=0) * 2.0


def second_difference(a: Any) -> Any:
    wide = gnp.pad(a, ((1, 1), (0, 0)))
    return wide[2:] - 2.0 * a + wide[:-2]


def laplacian(a: Any) -> Any:
    wide = gnp.pad(a, ((1, 1), (1, 1)))
    return wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2] - 4.0 * a


def pairs(a: Any) -> Any:
    """The difference between halves of the rows, as in a rotary embedding."""
    half = a.shape[1] // 2
    return gnp.concatenate([-a[:, half:], a[:, :half]], axis=1)


CASES = (
    Case("window_roll", X8, rolled, ("f32[1024@x, 512]",), ("x, _",)),
    Case("window_roll_ragged", X8, rolled, ("f32[1001@x, 512]",), ("x, _",)),
    Case("window_slice", X8, middle, ("f32[1024@x, 512]",), ("x, _",)),
    Case("window_strided_slice", X8, every_other, ("f32[1024@x, 512]",), ("x, _",)),
    Case("window_pad", X8, padded, ("f32[1024@x, 512]",), ("x, _",)),
    Case("window_concatenate", X8, joined, ("f32[512@x, 512]", "f32[512@x, 512]"), ("x, _",)),
    Case("window_reverse", XY, reversed_rows, ("f32[1024@x, 512@y]",), ("x, y",)),
    Case("window_reverse_ragged", X8, reversed_rows, ("f32[1001@x, 256]",), ("x, _",)),
    Case("stencil_rows", X8, second_difference, ("f32[1024@x, 512]",), ("x, _",)),
    Case("stencil_rows_ragged", X8, second_difference, ("f32[1001@x, 512]",), ("x, _",)),
    Case("stencil_2d", XY, laplacian, ("f32[1024@x, 1024@y]",), ("x, y",)),
    Case("stencil_2d_ragged", RAGGED, laplacian, ("f32[1001@data, 1000@model]",), ("data, model",)),
    Case("rotate_halves", XY, pairs, ("f32[512@x, 1024@y]",), ("x, y",)),
)
