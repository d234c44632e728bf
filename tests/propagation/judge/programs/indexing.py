"""Addressed by data: gather, scatter, embeddings, dynamic slices, sorting, top-k."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.propagation.judge.programs.make import ODD, X4, case


def embed(t: Any, i: Any) -> Any:
    return gnp.take(t, i, axis=0)


def embed_gradient(t: Any, i: Any) -> Any:
    return gspmd.grad(lambda w: (embed(w, i) ** 2).sum())(t)


def one_hot_embed(t: Any, i: Any) -> Any:
    return gnp.one_hot(i, t.shape[0]) @ t


def cache(c: Any, new: Any, at: Any) -> Any:
    return gnp.dynamic_update_slice(c, new, (0, at, 0))


TABLE, IDS = "f32[1024@x, 256]", "i32[64, 32]"

CASES = (
    case("embed_rows", embed, TABLE, IDS),
    case("embed_features", embed, "f32[1024, 256@y]", IDS),
    case("embed_ids", embed, "f32[1024, 256]", "i32[64@x, 32]"),
    case("embed_ids_features", embed, "f32[1024, 256@y]", "i32[64@x, 32]"),
    case("embed_rows_ids", embed, "f32[1024@y, 256]", "i32[64@x, 32]"),
    case("embed_clash", embed, "f32[1024, 256@x]", "i32[64@x, 32]"),
    case("embed_told_back", embed, "f32[1024, 256]", IDS, out=("x, _, y",)),
    case("embed_gradient", embed_gradient, "f32[1024, 256@y]", "i32[64@x, 32]"),
    case("embed_gradient_rows", embed_gradient, "f32[1024@y, 256]", "i32[64@x, 32]"),
    case("embed_one_hot", one_hot_embed, "f32[1024@y, 256]", "i32[64@x, 32]"),
    case("embed_ragged", embed, "f32[1000@y, 250]", "i32[63@x, 32]", mesh=ODD),
    case("take_along", lambda a, i: gnp.take_along_axis(a, i, axis=1), "f32[256@x, 128]", "i32[256, 16]"),
    case("cache_update", cache, "f32[16@x, 128, 64@y]", "f32[16, 1, 64]", "i32[]"),
    case("cache_update_told", cache, "f32[16, 128, 64]", "f32[16@x, 1, 64@y]", "i32[]"),
    case("cache_clash", cache, "f32[16, 128@y, 64@x]", "f32[16, 1, 64@x+y]", "i32[]"),
    case("dynamic_slice", lambda a, i: gnp.dynamic_slice(a, (i, 0), (16, 128)), "f32[256, 128@y]", "i32[]"),
    case("dynamic_slice_split", lambda a, i: gnp.dynamic_slice(a, (i, 0), (16, 128)), "f32[256@x, 128@y]", "i32[]"),
    case("sort_other", lambda a: gnp.sort(a, axis=1), "f32[256@x, 128]"),
    case("sort_split", lambda a: gnp.sort(a, axis=1), "f32[256@x, 128@y]"),
    case("sort_split_one", lambda a: gnp.sort(a, axis=0) * 2.0, "f32[256@x, 128]", mesh=X4),
    case("argsort", lambda a: gnp.argsort(a, axis=1), "f32[256@x, 128]"),
    case("top_k", lambda a: gnp.top_k(a, 8), "f32[256@x, 128@y]"),
    case("top_k_vocabulary", lambda a, b: gnp.top_k(a @ b, 8)[0], "f32[64@x, 256]", "f32[256, 1024@y]"),
)
