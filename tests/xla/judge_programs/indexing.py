"""Gathers and scatters: embeddings with their gradients, picking by index, caches."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.xla.case import Case
from tests.xla.judge_programs.meshes import DATA_MODEL, RAGGED, X8


def lookup(table: Any, ids: Any) -> Any:
    return gnp.take(table, ids, axis=0)


def lookup_gradient(table: Any, ids: Any, upstream: Any) -> Any:
    return gspmd.grad(lambda t: (gnp.take(t, ids, axis=0) * upstream).sum())(table)


def picked(logits: Any, labels: Any) -> Any:
    return gnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]


def cached(cache: Any, new: Any, position: Any) -> Any:
    zero = position * 0
    return gnp.dynamic_update_slice(cache, new, (zero, zero, position, zero))


IDS = "i32[64@data, 128]"
CACHE = ("f32[8@data, 16@model, 128, 64]", "f32[8@data, 16@model, 1, 64]", "i32[]")

CASES = (
    Case("embed_features_split", DATA_MODEL, lookup, ("f32[8000, 512@model]", IDS), ("data, _, model",), below=8000),
    Case("embed_vocabulary_split", DATA_MODEL, lookup, ("f32[8000@model, 256]", IDS), ("data, _, _",), below=8000),
    Case("embed_ragged", RAGGED, lookup, ("f32[8000@model, 256]", "i32[63@data, 64]"), ("data, _, _",), below=8000),
    Case(
        "embed_gradient_features_split",
        DATA_MODEL,
        lookup_gradient,
        ("f32[8000, 512@model]", IDS, "f32[64@data, 128, 512@model]"),
        ("_, model",),
        below=8000,
    ),
    Case(
        "embed_gradient_vocabulary_split",
        DATA_MODEL,
        lookup_gradient,
        ("f32[8000@model, 256]", IDS, "f32[64@data, 128, 256]"),
        ("model, _",),
        below=8000,
    ),
    Case(
        "pick_features_split",
        DATA_MODEL,
        picked,
        ("f32[2048@data, 1000@model]", "i32[2048@data]"),
        ("data",),
        below=1000,
    ),
    Case("cache_update", DATA_MODEL, cached, CACHE, ("data, model, _, _",), below=128),
    Case("embed_all_split", X8, lookup, ("f32[8000@x, 256]", "i32[64@x, 128]"), ("x, _, _",), below=8000),
)
