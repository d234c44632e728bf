"""Layers of models, forward and backward."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.propagation.judge.programs.make import XY, XYZ, case, marked


def mlp(x: Any, w: Any, v: Any) -> Any:
    return gnp.gelu(x @ w) @ v


def gradient(f: Any) -> Any:
    """The gradient by all but the first argument of the mean square."""

    def run(x: Any, *weights: Any) -> Any:
        return gspmd.grad(lambda *w: (f(x, *w) ** 2).mean(), argnums=tuple(range(len(weights))))(*weights)

    return run


def attention(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (gnp.einsum("bsm,mhd->bshd", x, w) for w in (wq, wk, wv))
    scores = gnp.softmax(gnp.einsum("bqhd,bkhd->bhqk", q, k), axis=-1)
    return gnp.einsum("bshd,hdm->bsm", gnp.einsum("bhqk,bkhd->bqhd", scores, v), wo)


def attention_flat(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    """Weights are matrices; heads come out of a reshape."""
    b, s, m = x.shape
    q, k, v = (gnp.reshape(x @ w, (b, s, 8, m // 8)) for w in (wq, wk, wv))
    scores = gnp.softmax(gnp.einsum("bqhd,bkhd->bhqk", q, k), axis=-1)
    return gnp.reshape(gnp.einsum("bhqk,bkhd->bqhd", scores, v), (b, s, m)) @ wo


def block(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    x = x + attention(gnp.rms_norm(x), wq, wk, wv, wo)
    return x + mlp(gnp.rms_norm(x), w1, w2)


def experts(x: Any, gate: Any, w1: Any, w2: Any) -> Any:
    """Tokens [group, token, features] to experts and back, by two einsums."""
    combine = gnp.softmax(gnp.einsum("gsm,mec->gsec", x, gate), axis=-1)
    sent = marked(gnp.einsum("gsec,gsm->egcm", combine, x), "x", None, None, None)
    h = gnp.maximum(gnp.einsum("egcm,emh->egch", sent, w1), 0.0)
    back = gnp.einsum("egch,ehm->egcm", h, w2)
    return gnp.einsum("gsec,egcm->gsm", combine, back)


def convnet(x: Any, k1: Any, k2: Any) -> Any:
    h = gnp.maximum(gnp.conv(x, k1, padding="SAME"), 0.0)
    return gnp.max_pool(gnp.conv(h, k2, padding="SAME"), 2)


def loss(x: Any, e: Any, labels: Any) -> Any:
    logits = x @ e
    picked = (gnp.one_hot(labels, e.shape[1]) * logits).sum(axis=-1)
    return (gnp.logsumexp(logits, axis=-1) - picked).mean()


def language_model(e: Any, w: Any, v: Any, tokens: Any) -> Any:
    """The mean log-probability of the next tokens, the embedding tied."""
    x = gnp.take(e, tokens, axis=0)
    logits = (x + mlp(gnp.rms_norm(x), w, v)) @ e.T
    following = gnp.roll(tokens, -1, axis=1)
    return gnp.take_along_axis(gnp.log_softmax(logits, axis=-1), following[:, :, None], axis=-1).mean()


def language_model_gradient(e: Any, w: Any, v: Any, tokens: Any) -> Any:
    return gspmd.grad(lambda *p: language_model(p[0], p[1], p[2], tokens), argnums=(0, 1, 2))(e, w, v)


def step(x: Any, w: Any, v: Any) -> Any:
    """A step of gradient descent."""
    dw, dv = gradient(mlp)(x, w, v)
    return w - 0.1 * dw, v - 0.1 * dv


HEADS = tuple("f32[256, 8@y, 32]" for _ in range(3))
FLAT = ("f32[256, 256@y]",) * 3
BATCH = "f32[16@x, 64, 256]"
TOKENS = "i32[16@x, 64]"
FSDP = ("f32[256@x, 1024]", "f32[1024, 256@x]")

CASES = (
    case("mlp_model", mlp, "f32[512, 256]", "f32[256, 1024@y]", "f32[1024@y, 256]"),
    case("mlp_data_model", mlp, "f32[512@x, 256]", "f32[256, 1024@y]", "f32[1024@y, 256]"),
    case("mlp_fsdp", mlp, "f32[512@x, 256]", "f32[256@x, 1024]", "f32[1024, 256@x]"),
    case("mlp_2d_weights", mlp, "f32[512@x, 256@y]", "f32[256@x, 1024@y]", "f32[1024@y, 256@x]"),
    case("mlp_3d", mlp, "f32[512@x, 256@z]", "f32[256@z, 1024@y]", "f32[1024@y, 256@z]", mesh=XYZ),
    case("mlp_gradient", gradient(mlp), "f32[512@x, 256]", "f32[256, 1024@y]", "f32[1024@y, 256]"),
    case("mlp_gradient_fsdp", gradient(mlp), "f32[512@x, 256]", "f32[256@x, 1024@y]", "f32[1024@y, 256@x]"),
    case("mlp_gradient_data", gradient(mlp), "f32[512@x, 256]", "f32[256, 1024]", "f32[1024, 256]"),
    case("mlp_step", step, "f32[512@x, 256]", "f32[256, 1024@y]", "f32[1024@y, 256]"),
    case("mlp_step_zero", step, "f32[512@x+y, 256]", "f32[256, 1024]", "f32[1024, 256]", out=("x+y, _", "x+y, _")),
    case("attention_heads", attention, BATCH, *HEADS, "f32[8@y, 32, 256]"),
    case("attention_sequence", attention, "f32[16@x, 64@y, 256]", *("f32[256, 8, 32]",) * 3, "f32[8, 32, 256]"),
    case("attention_one_weight", attention, BATCH, "f32[256, 8@y, 32]", *("f32[256, 8, 32]",) * 2, "f32[8, 32, 256]"),
    case("attention_flat", attention_flat, BATCH, *FLAT, "f32[256@y, 256]"),
    case("attention_flat_one", attention_flat, BATCH, FLAT[0], *("f32[256, 256]",) * 3),
    case("attention_gradient", gradient(attention), BATCH, *HEADS, "f32[8@y, 32, 256]"),
    case("block_model", block, BATCH, *HEADS, "f32[8@y, 32, 256]", "f32[256, 1024@y]", "f32[1024@y, 256]"),
    case("block_2d", block, "f32[16@x, 64, 256@y]", *("f32[256@x, 8@y, 32]",) * 3, "f32[8@y, 32, 256@x]",
         "f32[256@x, 1024@y]", "f32[1024@y, 256@x]"),
    case("block_gradient", gradient(block), BATCH, *HEADS, "f32[8@y, 32, 256]", "f32[256, 1024@y]",
         "f32[1024@y, 256]"),
    case("block_3d", block, "f32[16@x, 64@z, 256]", *HEADS, "f32[8@y, 32, 256]", "f32[256, 1024@y]",
         "f32[1024@y, 256]", mesh=XYZ),
    case("experts_forward", experts, "f32[8@x, 64, 128]", "f32[128, 8, 16]", "f32[8@x, 128, 256@y]",
         "f32[8@x, 256@y, 128]"),
    case("experts_gradient", gradient(experts), "f32[8@x, 64, 128]", "f32[128, 8, 16]", "f32[8@x, 128, 256@y]",
         "f32[8@x, 256@y, 128]"),
    case("convnet_batch", convnet, "f32[16@x, 32, 32, 8]", "f32[3, 3, 8, 16@y]", "f32[3, 3, 16, 8]"),
    case("convnet_space", convnet, "f32[16, 32@x, 32@y, 8]", "f32[3, 3, 8, 16]", "f32[3, 3, 16, 8]"),
    case("convnet_gradient", gradient(convnet), "f32[16@x, 32, 32, 8]", "f32[3, 3, 8, 16@y]", "f32[3, 3, 16, 8]"),
    case("loss_vocabulary", loss, "f32[512@x, 256]", "f32[256, 4096@y]", "i32[512]"),
    case("loss_gradient", lambda x, e, t: gspmd.grad(lambda a, b: loss(a, b, t), argnums=(0, 1))(x, e),
         "f32[512@x, 256]", "f32[256, 4096@y]", "i32[512]"),
    case("language_model_fsdp", language_model, "f32[1024, 256@x]", *FSDP, TOKENS),
    case("language_model_gradient_fsdp", language_model_gradient, "f32[1024, 256@x]", *FSDP, TOKENS),
    case("language_model_free_table", language_model, "f32[1024@?, 256@?]", *FSDP, TOKENS),
    case("layer_norm", lambda x, g, b: gnp.layer_norm(x) * g + b, "f32[16@x, 64, 256@y]", "f32[256]", "f32[256]",
         mesh=XY),
)  # fmt: skip
