"""Forward passes: feed-forward blocks, attention, a Transformer layer, expert dispatch."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from gspmd.frontend.nn import gelu, rms_norm, softmax
from tests.xla.case import Case
from tests.xla.judge_programs.meshes import DATA_MODEL, RAGGED, X4, X8, XY

HEADS = 8


def mlp(x: Any, w1: Any, w2: Any) -> Any:
    return gelu(x @ w1) @ w2


def mlp_2d(x: Any, w1: Any, w2: Any) -> Any:
    """The paper's 2-D attempt: the hidden activations are annotated too."""
    h = gspmd.shard(gelu(x @ w1), DATA_MODEL, "data", None, "model")
    return h @ w2


def attention(q: Any, k: Any, v: Any) -> Any:
    """Batch, heads, sequence, features."""
    scores = softmax(gnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5)
    return gnp.einsum("bhqk,bhkd->bhqd", scores, v)


def self_attention(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    """Batch, sequence, features; the weights are [features, heads, head] and back."""
    q, k, v = (gnp.einsum("bsm,mhd->bshd", x, w) for w in (wq, wk, wv))
    scores = softmax(gnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5)
    mixed = gnp.einsum("bhqk,bkhd->bqhd", scores, v)
    return gnp.einsum("bqhd,hdm->bqm", mixed, wo)


def layer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    """One pre-norm Transformer layer."""
    x = x + self_attention(rms_norm(x), wq, wk, wv, wo)
    return x + mlp(rms_norm(x), w1, w2)


def experts(x: Any, gates: Any, w1: Any, w2: Any) -> Any:
    """Tokens [group, token, feature] are dispatched to experts [expert, group, slot, feature] and combined again."""
    sent = gspmd.shard(gnp.einsum("gsec,gsm->egcm", gates, x), X8, "x", None, None, None)
    hidden = gnp.maximum(gnp.einsum("egcm,emh->egch", sent, w1), 0.0)
    back = gspmd.shard(gnp.einsum("egch,ehm->gecm", hidden, w2), X8, "x", None, None, None)
    return gnp.einsum("gsec,gecm->gsm", gates, back)


def weights(m: str, h: str, features: int = 512, hidden: int = 2048, heads: int = HEADS) -> tuple[str, ...]:
    """The six weights of a layer, features over `m` and heads or hidden over `h` (`@axis` or nothing)."""
    head = features // heads
    into = f"f32[{features}{m}, {heads}{h}, {head}]"
    return (
        into,
        into,
        into,
        f"f32[{heads}{h}, {head}, {features}{m}]",
        f"f32[{features}{m}, {hidden}{h}]",
        f"f32[{hidden}{h}, {features}{m}]",
    )


QKV = ("f32[8@data, 8@model, 256, 64]",) * 3
LONG = ("f32[8@data, 8, 256@model, 64]",) * 3

CASES = (
    Case("mlp_model", X8, mlp, ("f32[1024, 512]", "f32[512, 2048@x]", "f32[2048@x, 512]"), ("_, _",)),
    Case(
        "mlp_data_model",
        DATA_MODEL,
        mlp,
        ("f32[1024@data, 512]", "f32[512, 2048@model]", "f32[2048@model, 512]"),
        ("data, _",),
    ),
    Case(
        "mlp_weights_gathered",
        XY,
        mlp,
        ("f32[4096@x+y, 512]", "f32[512@x, 1024@y]", "f32[1024@y, 512@x]"),
        ("x+y, _",),
    ),
    Case(
        "mlp_2d",
        DATA_MODEL,
        mlp_2d,
        ("f32[8@data, 256, 512@model]", "f32[512@data, 2048@model]", "f32[2048@model, 512@data]"),
        ("data, _, model",),
    ),
    Case(
        "mlp_ragged",
        RAGGED,
        mlp,
        ("f32[1001@data, 250]", "f32[250, 1000@model]", "f32[1000@model, 250]"),
        ("data, _",),
    ),
    Case("attention_heads_split", DATA_MODEL, attention, QKV, ("data, model, _, _",)),
    Case("attention_sequence_split", DATA_MODEL, attention, LONG, ("data, _, model, _",)),
    Case("attention_ragged_heads", X4, attention, ("f32[4, 6@x, 256, 64]",) * 3, ("_, x, _, _",)),
    Case(
        "self_attention_ragged",
        RAGGED,
        self_attention,
        ("f32[3@data, 128, 256]", *("f32[256, 8@model, 32]",) * 3, "f32[8@model, 32, 256]"),
        ("data, _, _",),
    ),
    Case("layer_model", DATA_MODEL, layer, ("f32[8@data, 256, 512]", *weights("", "@model")), ("data, _, _",)),
    Case(
        "layer_sequence",
        DATA_MODEL,
        layer,
        ("f32[8@data, 256@model, 512]", *weights("", "@model")),
        ("data, model, _",),
    ),
    Case(
        "layer_2d", DATA_MODEL, layer, ("f32[8@data, 256, 512@model]", *weights("@data", "@model")), ("data, _, model",)
    ),
    Case(
        "experts",
        X8,
        experts,
        ("f32[8@x, 256, 128]", "f32[8@x, 256, 8, 64]", "f32[8@x, 128, 512]", "f32[8@x, 512, 128]"),
        ("x, _, _",),
    ),
)
