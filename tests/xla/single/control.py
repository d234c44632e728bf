"""Loops, branches and calls whose bodies hold split values."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.xla.single.program import X3, X4, XY, Single, chain, op


def looped(body: Any, trips: int = 5) -> Any:
    """A loop of so many trips over the first argument; the others stay."""
    return lambda a, *rest: gspmd.fori_loop(0, trips, lambda i, c: body(c, *rest), a)


def branched(first: Any, second: Any) -> Any:
    """One of two functions, as a predicate says."""
    return lambda p, *arguments: gspmd.cond(p, first, second, *arguments)


def case(name: str, mesh: gspmd.Mesh, function: Any, inputs: str, *outputs: str) -> Single:
    """A row of control flow."""
    return chain(f"control:{name}", mesh, function, inputs, *outputs)


def scanned(a: Any, rows: Any) -> Any:
    """A recurrence over rows."""
    return gspmd.scan(lambda c, r: (c * 0.5 + r, c.sum()), a, rows)


SINGLES = (
    case("while_elementwise", X4, looped(lambda c: gnp.tanh(c)), "f32[64@x, 32]", "x, _"),
    case("while_product", X4, looped(lambda c, w: c @ w), "f32[64@x, 32]; f32[32, 32]", "x, _"),
    case("while_product_columns", X4, looped(lambda c, w: c @ w), "f32[64, 32@x]; f32[32@x, 32]", "_, x"),
    case("while_weights_gathered", X4, looped(lambda c, w: c @ w), "f32[64@x, 32]; f32[32@x, 32]", "x, _"),
    case("while_weights_columns", X4, looped(lambda c, w: c @ w), "f32[64@x, 32]; f32[32, 32@x]", "x, _"),
    case("while_2d", XY, looped(lambda c, w: c @ w), "f32[64@x, 32@y]; f32[32@y, 32]", "x, y"),
    case("while_ragged", X3, looped(lambda c, w: c @ w), "f32[64@x, 32]; f32[32@x, 32]", "x, _"),
    case("while_sum", X4, looped(lambda c, x: c + x.sum(axis=0)), "f32[32]; f32[64@x, 32]", "_"),
    case("while_sum_scattered", X4, looped(lambda c, x: c + x.sum(axis=0)), "f32[32@x]; f32[64@x, 32]", "x"),
    case("while_norm", X4, looped(lambda c: c / gnp.sqrt((c * c).sum())), "f32[64@x, 32]", "x, _"),
    case("while_shift", X4, looped(lambda c: gnp.roll(c, 1, axis=0)), "f32[64@x, 32]", "x, _"),
    case("while_transposed", XY, looped(lambda c: c.T @ c), "f32[32@x, 32@y]", "x, y"),
    case("case_product", X4, branched(lambda a, w: a @ w, lambda a, w: a), "bool[]; f32[64@x, 32]; f32[32@x, 32]",
         "x, _"),
    case("case_sums", X4, branched(lambda a: a.sum(axis=0), lambda a: a.max(axis=0)), "bool[]; f32[64@x, 32]", "_"),
    case("case_moved", X4, branched(lambda a: a * 2.0, lambda a: a + 1.0), "bool[]; f32[64@x, 32]", "_, x"),
    case("case_free", X4, branched(lambda a: a * 2.0, lambda a: a + 1.0), "bool[]; f32[64@x, 32]"),
    op("control:call", X4, "call(f32[64@x, 32], f32[64, 32@x]) (%a: f32[64, 32], %b: f32[64, 32]) "
       "{ %s = add(%a, %b) : f32[64, 32] return %s }", "x, _"),
    case("scan", X4, scanned, "f32[32@x]; f32[16, 32@x]", "x", "_"),
    case("scan_rows", X4, scanned, "f32[32]; f32[16@x, 32]", "_", "_"),
)  # fmt: skip
