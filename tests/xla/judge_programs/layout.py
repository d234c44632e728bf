"""Reshapes that merge and split split dimensions, and transposes that come out laid out otherwise."""

from __future__ import annotations

from typing import Any

from tests.xla.case import Case
from tests.xla.judge_programs.meshes import DATA_MODEL, RAGGED, X4, X8, XY


def merged(a: Any) -> Any:
    return a.reshape(a.shape[0] * a.shape[1], a.shape[2]) * 2.0


def heads(a: Any) -> Any:
    return a.reshape(a.shape[0], 16, -1) * 2.0


def flat_heads(a: Any) -> Any:
    return a.reshape(a.shape[0], -1) * 2.0


def transposed(a: Any) -> Any:
    return a.T * 2.0


def same(a: Any) -> Any:
    return a * 2.0


def grouped(a: Any) -> Any:
    return a.reshape(10, -1, a.shape[1]) * 2.0


CASES = (
    Case("reshape_merge_major", XY, merged, ("f32[32@x, 64, 256@y]",), ("x, y",)),
    Case("reshape_merge_minor", X8, merged, ("f32[32, 64@x, 256]",), ("x, _",)),
    Case("reshape_merge_both", XY, merged, ("f32[32@x, 64@y, 256]",), ("x+y, _",)),
    Case("reshape_to_heads", DATA_MODEL, heads, ("f32[512@data, 1024@model]",), ("data, model, _",)),
    Case("reshape_from_heads", DATA_MODEL, flat_heads, ("f32[512@data, 16@model, 64]",), ("data, model",)),
    Case("reshape_ragged", X4, merged, ("f32[10@x, 60, 256]",), ("x, _",)),
    Case("reshape_ragged_split", RAGGED, grouped, ("f32[1000@model, 256@data]",), ("model, _, data",)),
    Case("transpose_moved", X8, transposed, ("f32[1024@x, 1024]",), ("x, _",)),
    Case("transpose_2d", XY, transposed, ("f32[1024@x, 1024@y]",), ("x, y",)),
    Case("reshard_swap", XY, same, ("f32[1024@x, 1024@y]",), ("y, x",)),
    Case("reshard_ragged", X8, same, ("f32[1001@x, 500]",), ("_, x",)),
)
