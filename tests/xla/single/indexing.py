"""Gathers, scatters, dynamic slices: batch, offset, indexed and index dimensions split; every monoid."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.xla.single.program import X2, X2Y3, X2Y4, X3, X4, XY, Single, chain, op

ROWS = (
    "offset_dims=[1] collapsed_slice_dims=[0] operand_batching_dims=[] indices_batching_dims=[] start_index_map=[0] "
    "index_vector_dim=1 slice_sizes=[1, {}]"
)
BATCHED = (
    "offset_dims=[] collapsed_slice_dims=[1] operand_batching_dims=[0] indices_batching_dims=[0] start_index_map=[1] "
    "index_vector_dim=2 slice_sizes=[1, 1]"
)
PAIRS = (
    "offset_dims=[1] collapsed_slice_dims=[0, 1] operand_batching_dims=[] indices_batching_dims=[] "
    "start_index_map=[0, 1] index_vector_dim=1 slice_sizes=[1, 1, 16]"
)
WINDOWS = (
    "offset_dims=[1, 2] collapsed_slice_dims=[] operand_batching_dims=[] indices_batching_dims=[] "
    "start_index_map=[0] index_vector_dim=1 slice_sizes=[4, 32]"
)


def rows(name: str, mesh: gspmd.Mesh, operands: str, output: str | None, width: int = 32, n: int = 64) -> Single:
    """Rows of a table by number."""
    outputs = () if output is None else (output,)
    return op(f"gather:{name}", mesh, f"gather({operands}) {ROWS.format(width)}", *outputs, below=n)


GATHERS = (
    rows("indices", X4, "f32[64, 32], i32[96@x]", "x, _"),
    rows("indices_ragged", X3, "f32[64, 32], i32[97@x]", "x, _"),
    rows("indices_to_whole", X4, "f32[64, 32], i32[96@x]", "_, _"),
    rows("offsets", X4, "f32[64, 32@x], i32[96]", "_, x"),
    rows("offsets_ragged", X3, "f32[64, 32@x], i32[96]", "_, x"),
    rows("offsets_to_whole", X4, "f32[64, 32@x], i32[96]", "_, _"),
    rows("offsets_to_rows", X4, "f32[64, 32@x], i32[96]", "x, _"),
    rows("indexed", X4, "f32[64@x, 32], i32[96]", "_, _"),
    rows("indexed_2", X2, "f32[64@x, 32], i32[96]", "_, _"),
    rows("indexed_ragged", X3, "f32[64@x, 32], i32[96]", "_, _"),
    rows("indexed_to_rows", X4, "f32[64@x, 32], i32[96]", "x, _"),
    rows("indexed_to_columns", X4, "f32[64@x, 32], i32[96]", "_, x"),
    rows("indexed_few", X4, "f32[64@x, 32], i32[8]", "_, _"),
    rows("indexed_many", X4, "f32[64@x, 32], i32[1024]", "_, _"),
    rows("indexed_many_to_rows", X4, "f32[64@x, 32], i32[1024@x]", "x, _"),
    rows("indexed_and_indices", X4, "f32[64@x, 32], i32[96@x]", "x, _"),
    rows("indexed_and_offsets", XY, "f32[64@x, 32@y], i32[96]", "_, y"),
    rows("indices_and_offsets", XY, "f32[64, 32@y], i32[96@x]", "x, y"),
    rows("indexed_and_indices_2d", XY, "f32[64@y, 32], i32[96@x]", "x, _"),
    rows("indexed_and_indices_ragged", X2Y3, "f32[64@y, 32], i32[97@x]", "x, _"),
    rows("all_three", gspmd.Mesh({"x": 2, "y": 2, "z": 2}), "f32[64@x, 32@y], i32[96@z]", "z, y"),
    rows("idle_axis", XY, "f32[64@x, 32], i32[96]", "_, _"),
    rows("free", X4, "f32[64@x, 32], i32[96]", None),
    op("gather:batch", X4, f"gather(f32[16@x, 64], i32[16@x, 24]) {BATCHED}", "x, _", below=64),
    op("gather:batch_ragged", X3, f"gather(f32[16@x, 64], i32[16@x, 24]) {BATCHED}", "x, _", below=64),
    op("gather:batch_mismatched", X4, f"gather(f32[16@x, 64], i32[16, 24@x]) {BATCHED}", "x, _", below=64),
    op("gather:batch_indexed", X4, f"gather(f32[16, 64@x], i32[16, 24]) {BATCHED}", "_, _", below=64),
    op("gather:batch_and_indexed", XY, f"gather(f32[16@x, 64@y], i32[16@x, 24]) {BATCHED}", "x, _", below=64),
    op("gather:pairs", X4, f"gather(f32[16@x, 12, 16], i32[48, 2]) {PAIRS}", "_, _", below=12),
    op("gather:pairs_both", XY, f"gather(f32[16@x, 12@y, 16], i32[48, 2]) {PAIRS}", "_, _", below=12),
    op("gather:pairs_indices", X4, f"gather(f32[16, 12, 16], i32[48@x, 2]) {PAIRS}", "x, _", below=12),
    op("gather:pairs_index_vector", X2, f"gather(f32[16, 12, 16], i32[48, 2@x]) {PAIRS}", "_, _", below=12),
    op("gather:windows", X4, f"gather(f32[64, 32@x], i32[24, 1]) {WINDOWS}", "_, _, x", below=60),
    op("gather:windows_indexed", X4, f"gather(f32[64@x, 32], i32[24, 1]) {WINDOWS}", "_, _, _", below=60),
)

SCATTER = (
    "update_window_dims=[1] inserted_window_dims=[0] input_batching_dims=[] scatter_indices_batching_dims=[] "
    "scatter_dims_to_operand_dims=[0] index_vector_dim=1 monoid={}"
)
SCATTER_BATCHED = (
    "update_window_dims=[] inserted_window_dims=[1] input_batching_dims=[0] scatter_indices_batching_dims=[0] "
    "scatter_dims_to_operand_dims=[1] index_vector_dim=2 monoid={}"
)


def put(name: str, mesh: gspmd.Mesh, operands: str, output: str | None, monoid: str = "add", n: int = 64) -> Single:
    """Rows put into a table by number."""
    outputs = () if output is None else (output,)
    return op(f"scatter:{name}", mesh, f"scatter({operands}) {SCATTER.format(monoid)}", *outputs, below=n)


SCATTERS = (
    *(put(f"updates_{m}", X4, "i32[64, 32], i32[96@x], i32[96@x, 32]", "_, _", m) for m in
      ("add", "mul", "max", "min", "and", "or", "xor")),
    *(put(f"rows_{m}", X4, "i32[64@x, 32], i32[96], i32[96, 32]", "x, _", m) for m in ("add", "max", "set")),
    put("updates_set", X4, "f32[64, 32], i32[96@x], f32[96@x, 32]", "_, _", "set"),
    put("updates_set_few", X4, "f32[64, 32], i32[8@x], f32[8@x, 32]", "_, _", "set"),
    put("updates_few", X4, "f32[64, 32], i32[8@x], f32[8@x, 32]", "_, _"),
    put("updates_ragged", X3, "f32[64, 32], i32[97@x], f32[97@x, 32]", "_, _"),
    put("updates_to_rows", X4, "f32[64, 32], i32[96@x], f32[96@x, 32]", "x, _"),
    put("updates_into_rows", X4, "f32[64@x, 32], i32[96@x], f32[96@x, 32]", "x, _"),
    put("updates_into_columns", X4, "f32[64, 32@x], i32[96@x], f32[96@x, 32]", "_, x"),
    put("updates_many_into_rows", X4, "f32[16@x, 32], i32[512@x], f32[512@x, 32]", "x, _", n=16),
    put("columns", X4, "f32[64, 32@x], i32[96], f32[96, 32@x]", "_, x"),
    put("columns_set", X4, "f32[64, 32@x], i32[96], f32[96, 32@x]", "_, x", "set"),
    put("columns_ragged", X3, "f32[64, 32@x], i32[96], f32[96, 32@x]", "_, x"),
    put("columns_mismatched", X4, "f32[64, 32@x], i32[96], f32[96@x, 32]", "_, x"),
    put("rows_ragged", X3, "f32[64@x, 32], i32[96], f32[96, 32]", "x, _"),
    put("rows_set_ragged", X3, "f32[64@x, 32], i32[96], f32[96, 32]", "x, _", "set"),
    put("rows_and_columns", XY, "f32[64@x, 32@y], i32[96], f32[96, 32@y]", "x, y"),
    put("rows_and_updates", XY, "f32[64@x, 32], i32[96@y], f32[96@y, 32]", "x, _"),
    put("columns_and_updates", XY, "f32[64, 32@x], i32[96@y], f32[96@y, 32@x]", "_, x"),
    put("columns_and_updates_wide", X2Y4, "f32[64, 32@x], i32[96@y], f32[96@y, 32@x]", "_, x"),
    put("idle_axis", XY, "f32[64@x, 32], i32[96], f32[96, 32]", "x, _"),
    put("free", X4, "f32[64, 32], i32[96@x], f32[96@x, 32]", None),
    op("scatter:batch", X4, f"scatter(f32[16@x, 64], i32[16@x, 24, 1], f32[16@x, 24]) "
       f"{SCATTER_BATCHED.format('add')}", "x, _", below=64),
    op("scatter:batch_set", X4, f"scatter(f32[16@x, 64], i32[16@x, 24, 1], f32[16@x, 24]) "
       f"{SCATTER_BATCHED.format('set')}", "x, _", below=64),
    op("scatter:batch_indexed", X4, f"scatter(f32[16, 64@x], i32[16, 24, 1], f32[16, 24]) "
       f"{SCATTER_BATCHED.format('add')}", "_, x", below=64),
)  # fmt: skip


def embedding_gradient(ids: Any, upstream: Any) -> Any:
    """What reaches a table of 64 rows."""
    return gspmd.grad(lambda t: (gnp.take(t, ids, axis=0) * upstream).sum())(gnp.zeros((64, 32)))


def picked(a: Any, labels: Any) -> Any:
    """One column of each row."""
    return gnp.take_along_axis(a, labels[:, None], axis=1)[:, 0]


EMBEDDINGS = (
    chain("scatter:embedding", X4, embedding_gradient, "i32[16@x, 24]; f32[16@x, 24, 32]", "_, _", below=64),
    chain("scatter:embedding_rows", X4, embedding_gradient, "i32[16, 24]; f32[16, 24, 32]", "x, _", below=64),
    chain("scatter:embedding_scattered", X4, embedding_gradient, "i32[16@x, 24]; f32[16@x, 24, 32]", "x, _", below=64),
    chain("scatter:embedding_columns", X4, embedding_gradient, "i32[16, 24]; f32[16, 24, 32@x]", "_, x", below=64),
    chain("scatter:embedding_2d", XY, embedding_gradient, "i32[16@x, 24]; f32[16@x, 24, 32]", "y, _", below=64),
    chain("scatter:embedding_2d_both", XY, embedding_gradient, "i32[16@x, 24]; f32[16@x, 24, 32@y]", "_, y", below=64),
    chain("gather:picked", X4, picked, "f32[64, 32@x]; i32[64]", "_", below=32),
    chain("gather:picked_rows", X4, picked, "f32[64@x, 32]; i32[64@x]", "x", below=32),
    chain("gather:picked_2d", XY, picked, "f32[64@x, 32@y]; i32[64@x]", "x", below=32),
)


def cut(name: str, mesh: gspmd.Mesh, operand: str, sizes: str, output: str, below: int) -> Single:
    """A slice from a computed place."""
    line = f"dynamic_slice({operand}, i32[], i32[]) sizes={sizes}"
    return op(f"dynamic_slice:{name}", mesh, line, output, below=below)


def pasted(name: str, mesh: gspmd.Mesh, operands: str, output: str, below: int) -> Single:
    """A slice replaced at a computed place."""
    line = f"dynamic_update_slice({operands}, i32[], i32[])"
    return op(f"dynamic_update_slice:{name}", mesh, line, output, below=below)


DYNAMIC = (
    cut("split", X4, "f32[64@x, 32]", "[8, 32]", "_, _", 56),
    cut("split_large", X4, "f32[64@x, 32]", "[48, 32]", "_, _", 9),
    cut("split_to_split", X4, "f32[64@x, 32]", "[48, 32]", "x, _", 9),
    cut("one_row", X4, "f32[64@x, 32]", "[1, 32]", "_, _", 64),
    cut("one_row_ragged", X3, "f32[64@x, 32]", "[1, 32]", "_, _", 64),
    cut("other_dim", X4, "f32[64@x, 32]", "[64, 8]", "x, _", 20),
    cut("to_columns", X4, "f32[64@x, 32]", "[8, 32]", "_, x", 56),
    cut("2d", XY, "f32[64@x, 32@y]", "[8, 32]", "_, y", 56),
    cut("2d_other", XY, "f32[64@x, 32@y]", "[64, 8]", "x, _", 20),
    pasted("split", X4, "f32[64@x, 32], f32[8, 32]", "x, _", 56),
    pasted("ragged", X3, "f32[64@x, 32], f32[8, 32]", "x, _", 56),
    pasted("split_update", X4, "f32[64@x, 32], f32[8@x, 32]", "x, _", 56),
    pasted("other_dim", X4, "f32[64@x, 32], f32[64@x, 8]", "x, _", 20),
    pasted("columns_update", X4, "f32[64@x, 32], f32[8, 32@x]", "x, _", 56),
    pasted("2d", XY, "f32[64@x, 32@y], f32[8, 32@y]", "x, y", 56),
    pasted("to_whole", X4, "f32[64@x, 32], f32[8, 32]", "_, _", 56),
)

SINGLES = (*GATHERS, *SCATTERS, *EMBEDDINGS, *DYNAMIC)
