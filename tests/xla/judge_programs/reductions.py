"""Reductions along dimensions that are split."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from gspmd.frontend.nn import layer_norm, softmax
from tests.xla.case import Case
from tests.xla.judge_programs.meshes import DATA_MODEL, RAGGED, X8, XY


def column_sums(a: Any) -> Any:
    return a.sum(axis=0)


def scaled_by_total(a: Any) -> Any:
    return a / gnp.sqrt((a * a).sum())


def row_softmax(a: Any) -> Any:
    return softmax(a, axis=-1)


def normalized(a: Any, scale: Any, offset: Any) -> Any:
    return layer_norm(a, scale, offset)


def best(a: Any) -> Any:
    return gnp.argmax(a, axis=1)


def centred(a: Any) -> Any:
    return (a - a.mean(axis=0)) / gnp.sqrt(a.var(axis=0) + 1e-5)


NORM = ("f32[512@data, 1024@model]", "f32[1024@model]", "f32[1024@model]")

CASES = (
    Case("reduce_columns", XY, column_sums, ("f32[1024@x, 4096@y]",), ("y",)),
    Case("reduce_columns_scattered", X8, column_sums, ("f32[64@x, 65536]",), ("x",)),
    Case("reduce_two_axes_scattered", XY, column_sums, ("f32[64@x+y, 65536]",), ("x+y",)),
    Case("reduce_everything", XY, scaled_by_total, ("f32[1024@x, 1024@y]",), ("x, y",)),
    Case("softmax_split", DATA_MODEL, row_softmax, ("f32[512@data, 4096@model]",), ("data, model",)),
    Case("softmax_ragged", RAGGED, row_softmax, ("f32[511@data, 1000@model]",), ("data, model",)),
    Case("layer_norm_split", DATA_MODEL, normalized, NORM, ("data, model",)),
    Case("argmax_split", DATA_MODEL, best, ("f32[512@data, 4096@model]",), ("data",)),
    Case("batch_norm_ragged", RAGGED, centred, ("f32[1001@data, 500@model]",), ("data, model",)),
)
