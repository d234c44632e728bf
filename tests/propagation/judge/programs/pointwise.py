"""Element by element: shardings meet, extend each other, and clash."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from tests.propagation.judge.programs.make import ODD, X4, XYZ, case, marked

A, B = "f32[256@x, 512]", "f32[256, 512@y]"


def diamond(a: Any) -> Any:
    """One value by two ways, annotated in one of them."""
    b = gnp.tanh(a)
    return marked(b * 2.0, None, "y") + gnp.exp(b)


def chain(a: Any) -> Any:
    for _ in range(5):
        a = gnp.tanh(a) * 0.5 + 1.0
    return a


def two_annotations(a: Any) -> Any:
    """A value annotated on its way, the argument too."""
    return gnp.exp(marked(gnp.tanh(a), "y", None))


CASES = (
    case("pointwise_unary", gnp.tanh, "f32[256@x, 512@y]"),
    case("pointwise_chain", chain, A),
    case("pointwise_backward", chain, "f32[256, 512]", out=("x, y",)),
    case("pointwise_meet", lambda a, b: a + b, A, B),
    case("pointwise_meet_three", lambda a, b, c: a * b + c, A, B, "f32[256, 512]"),
    case("pointwise_clash_dims", lambda a, b: a + b, "f32[256@x, 512]", "f32[256, 512@x]"),
    case("pointwise_clash_axes", lambda a, b: a + b, "f32[256@x, 512]", "f32[256@y, 512]"),
    case("pointwise_clash_swapped", lambda a, b: a + b, "f32[256@x, 512@y]", "f32[256@y, 512@x]"),
    case("pointwise_longer_wins", lambda a, b: a + b, "f32[256@x+y, 512]", "f32[256@x, 512]"),
    case("pointwise_longer_or_other", lambda a, b: a + b, "f32[256@x+y, 512]", "f32[256@x, 512@y]"),
    case("pointwise_three_axes", lambda a, b: a * b, "f32[256@x, 512@y]", "f32[256@x+z, 512]", mesh=XYZ),
    case("pointwise_majority", lambda a, b, c: a + b + c, "f32[256@x, 512]", "f32[256, 512@x]", "f32[256, 512@x]"),
    case("pointwise_select", lambda c, a, b: gnp.where(c > 0, a, b), A, B, "f32[256, 512]"),
    case("pointwise_scalar", lambda a, s: a * s, A, "f32[]"),
    case("pointwise_bias", lambda a, b: a + b, A, "f32[512@y]"),
    case("pointwise_bias_free", lambda a, b: gnp.tanh(a + b), "f32[256@x, 512@y]", "f32[512]"),
    case("pointwise_column", lambda a, b: a * b[:, None], "f32[256, 512@y]", "f32[256@x]"),
    case("pointwise_outer", lambda a, b: a[:, None] * b[None, :], "f32[256@x]", "f32[512@y]"),
    case("pointwise_outer_clash", lambda a, b: a[:, None] * b[None, :], "f32[256@x]", "f32[512@x]"),
    case("pointwise_ragged", lambda a, b: a + b, "f32[251@x, 509]", "f32[251, 509@y]"),
    case("pointwise_ragged_meet", lambda a, b: a + b, "f32[251@x, 500]", "f32[251@x+y, 500]", mesh=ODD),
    case("pointwise_small", lambda a: gnp.tanh(a), "f32[2@x, 3]", mesh=X4),
    case("pointwise_diamond", diamond, A),
    case("pointwise_two_annotations", two_annotations, A),
    case("pointwise_convert", lambda a: a.astype("bfloat16") + 1, A, out=("_, y",)),
    case("pointwise_clip", lambda a, lo: gnp.clip(a, lo, 3.0), B, "f32[256@x, 512]"),
)
