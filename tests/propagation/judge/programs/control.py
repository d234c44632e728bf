"""Loops, branches, tuples, barriers: shardings pass into bodies and out of them."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.propagation.judge.programs.make import ODD, XYZ, case, marked


def powers(x: Any, w: Any) -> Any:
    return gspmd.fori_loop(0, 4, lambda i, a: gnp.tanh(a @ w), x)


def annotated_body(x: Any) -> Any:
    return gspmd.fori_loop(0, 4, lambda i, a: marked(gnp.tanh(a), "x", "y"), x)


def swapped(a: Any, b: Any) -> Any:
    """Carries that change places: both are split alike."""
    return gspmd.fori_loop(0, 4, lambda i, c: (c[1] * 0.5, c[0]), (a, b))


def stacked(x: Any, w: Any, v: Any) -> Any:
    return gspmd.scan(lambda c, p: (c + gnp.maximum(c @ p[0], 0.0) @ p[1], None), x, (w, v))[0]


def stacked_gradient(x: Any, w: Any, v: Any) -> Any:
    return gspmd.grad(lambda a, b: (stacked(x, a, b) ** 2).mean(), argnums=(0, 1))(w, v)


def saved_rows(x: Any, w: Any) -> Any:
    """The gradient of a loop over layers: the rows that it saves are split as its carry is."""

    def run(p: Any) -> Any:
        return (gspmd.scan(lambda h, q: (gnp.tanh(h @ q), None), x, p)[0] ** 2).sum()

    return gspmd.grad(run)(w)


def rnn(xs: Any, h: Any, w: Any, u: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        after = gnp.tanh(x @ w + state @ u)
        return after, after

    return gspmd.scan(step, h, xs)


def gru(xs: Any, h: Any, w: Any, u: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        z, r, n = gnp.split(x @ w + state @ u, 3, axis=-1)
        gate = gnp.sigmoid(z)
        after = gate * state + (1.0 - gate) * gnp.tanh(gnp.sigmoid(r) * n)
        return after, after

    return gspmd.scan(step, h, xs)[1]


def branch(p: Any, a: Any, b: Any) -> Any:
    return gspmd.cond(p > 0, lambda x, y: x + y, lambda x, y: x * 2.0, a, b)


def branch_annotated(p: Any, a: Any) -> Any:
    return gspmd.cond(p > 0, lambda x: marked(gnp.tanh(x), "x", "y"), lambda x: x, a)


def nested(x: Any, w: Any) -> Any:
    return gspmd.fori_loop(0, 2, lambda i, a: gspmd.fori_loop(0, 3, lambda j, b: gnp.tanh(b @ w), a), x)


def until_small(a: Any, w: Any) -> Any:
    return gspmd.while_loop(lambda c: (c * c).sum() > 1e-3, lambda x: 0.1 * (x @ w), a)


WEIGHTS = ("f32[4, 256, 1024@y]", "f32[4, 1024, 256]")

CASES = (
    case("loop_rows", powers, "f32[512@x, 256]", "f32[256, 256]"),
    case("loop_weights", powers, "f32[512, 256]", "f32[256@x, 256@y]"),
    case("loop_both", powers, "f32[512@x, 256@y]", "f32[256, 256@y]"),
    case("loop_told_back", powers, "f32[512, 256]", "f32[256, 256]", out=("x, y",)),
    case("loop_annotated_body", annotated_body, "f32[512, 256]"),
    case("loop_swapped", swapped, "f32[512@x, 256]", "f32[512, 256@y]"),
    case("loop_swapped_clash", swapped, "f32[512@x, 256]", "f32[512, 256@x]"),
    case("loop_nested", nested, "f32[512@x, 256]", "f32[256, 256@y]"),
    case("loop_while", until_small, "f32[512@x, 256]", "f32[256@y, 256]"),
    case("scan_layers", stacked, "f32[512@x, 256]", *WEIGHTS),
    case("scan_layers_stages", stacked, "f32[512@x, 256]", "f32[4@y, 256, 1024]", "f32[4@y, 1024, 256]"),
    case("scan_layers_fsdp", stacked, "f32[512@x, 256]", "f32[4, 256@x, 1024@y]", "f32[4, 1024@y, 256@x]"),
    case("scan_layers_3d", stacked, "f32[512@x, 256@z]", "f32[4, 256, 1024@y]", "f32[4, 1024, 256]", mesh=XYZ),
    case("scan_layers_gradient", stacked_gradient, "f32[512@x, 256]", *WEIGHTS),
    case("scan_layers_ragged", stacked, "f32[509@x, 250]", "f32[4, 250, 1000@y]", "f32[4, 1000, 250]", mesh=ODD),
    case("scan_saved_rows", saved_rows, "f32[512@y, 256@x]", "f32[4@?, 256@?, 256@?]"),
    case("rnn_batch", rnn, "f32[16, 64@x, 256]", "f32[64, 512]", "f32[256, 512]", "f32[512, 512]"),
    case("rnn_model", rnn, "f32[16, 64@x, 256]", "f32[64, 512]", "f32[256, 512@y]", "f32[512, 512@y]"),
    case("gru_batch", gru, "f32[16, 64@x, 256]", "f32[64, 512]", "f32[256, 1536]", "f32[512, 1536]"),
    case("gru_model", gru, "f32[16, 64@x, 256]", "f32[64, 512@y]", "f32[256, 1536@y]", "f32[512, 1536@y]"),
    case("cond_operands", branch, "f32[]", "f32[512@x, 256]", "f32[512, 256@y]"),
    case("cond_told_back", branch, "f32[]", "f32[512, 256]", "f32[512, 256]", out=("x, y",)),
    case("cond_annotated", branch_annotated, "f32[]", "f32[512, 256]"),
)
