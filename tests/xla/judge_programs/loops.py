"""Loops whose carries are split: repeated products, stacked layers, recurrences, relaxation."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.xla.case import Case
from tests.xla.judge_programs.meshes import DATA_MODEL, RAGGED, X8, XY


def powers(x: Any, w: Any) -> Any:
    return gspmd.fori_loop(0, 5, lambda i, a: a @ w, x)


def stacked(x: Any, w1: Any, w2: Any) -> Any:
    """Layers with weights [layer, features, hidden], one after the other."""

    def layer(carry: Any, w: Any) -> Any:
        return carry + gnp.maximum(carry @ w[0], 0.0) @ w[1], None

    return gspmd.scan(layer, x, (w1, w2))[0]


def stacked_gradient(x: Any, w1: Any, w2: Any) -> Any:
    return gspmd.grad(lambda a, b: (stacked(x, a, b) ** 2).mean(), argnums=(0, 1))(w1, w2)


def recurrent(xs: Any, state: Any, w: Any, u: Any) -> Any:
    """A recurrence over time; all states come out."""

    def step(h: Any, x: Any) -> Any:
        after = gnp.tanh(x @ w + h @ u)
        return after, after

    return gspmd.scan(step, state, xs)


def relaxed(a: Any) -> Any:
    def sweep(i: Any, x: Any) -> Any:
        wide = gnp.pad(x, ((1, 1), (0, 0)))
        return 0.5 * x + 0.25 * (wide[2:] + wide[:-2])

    return gspmd.fori_loop(0, 10, sweep, a)


def until_small(a: Any, w: Any) -> Any:
    """As long as the norm is large; XLA and we both count the body once."""

    def large(carry: Any) -> Any:
        return (carry * carry).sum() > 1e-3

    return gspmd.while_loop(large, lambda x: 0.1 * (x @ w), a)


CASES = (
    Case("loop_contracting", X8, powers, ("f32[256, 512@x]", "f32[512@x, 512]"), ("_, x",)),
    Case("loop_2d", XY, powers, ("f32[512@x, 512@y]", "f32[512, 512@y]"), ("x, y",)),
    Case("loop_while", X8, until_small, ("f32[512@x, 256]", "f32[256, 256@x]"), ("x, _",)),
    Case("loop_relaxation", X8, relaxed, ("f32[1024@x, 256]",), ("x, _",)),
    Case("loop_relaxation_ragged", X8, relaxed, ("f32[1001@x, 256]",), ("x, _",)),
    Case(
        "scan_layers_model",
        DATA_MODEL,
        stacked,
        ("f32[1024@data, 256]", "f32[4, 256, 1024@model]", "f32[4, 1024@model, 256]"),
        ("data, _",),
    ),
    Case(
        "scan_layers_gradient",
        DATA_MODEL,
        stacked_gradient,
        ("f32[1024@data, 256]", "f32[4, 256, 1024@model]", "f32[4, 1024@model, 256]"),
        ("_, _, model", "_, model, _"),
    ),
    Case(
        "scan_layers_ragged",
        RAGGED,
        stacked,
        ("f32[1001@data, 250]", "f32[4, 250, 1000@model]", "f32[4, 1000@model, 250]"),
        ("data, _",),
    ),
    Case(
        "scan_recurrence",
        DATA_MODEL,
        recurrent,
        ("f32[16, 64@data, 256]", "f32[64@data, 512@model]", "f32[256, 512@model]", "f32[512, 512@model]"),
        ("data, model", "_, data, model"),
    ),
)
