"""Training steps: gradients under data, model and 2-D shardings, and optimizers that shard their state (ZeRO)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gspmd
from gspmd import numpy as gnp
from tests.xla.case import Case
from tests.xla.judge_programs.meshes import DATA_MODEL, RAGGED, X8
from tests.xla.judge_programs.models import layer, mlp, mlp_2d, weights


def trained(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of all weights of `forward(x, *weights)` under a squared error."""

    def step(x: Any, target: Any, *parameters: Any) -> Any:
        def loss(*given: Any) -> Any:
            error = forward(x, *given) - target
            return (error * error).mean()

        return gspmd.grad(loss, argnums=range(len(parameters)))(*parameters)

    return step


def classified(x: Any, labels: Any, w: Any) -> Any:
    """The gradient of a cross-entropy over a split vocabulary."""

    def loss(weight: Any) -> Any:
        logits = x @ weight
        shifted = logits - gspmd.stop_gradient(logits.max(axis=-1, keepdims=True))
        chosen = gnp.take_along_axis(shifted, labels[:, None], axis=1)[:, 0]
        return (gnp.log(gnp.exp(shifted).sum(axis=-1)) - chosen).mean()

    return gspmd.grad(loss)(w)


def momentum_step(x: Any, target: Any, w1: Any, w2: Any, m1: Any, m2: Any) -> Any:
    """A step of gradient descent with momentum; how the states are laid out is left to the annotations."""
    slopes = trained(mlp)(x, target, w1, w2)
    moments = [0.9 * m + g for m, g in zip((m1, m2), slopes, strict=True)]
    return (*(w - 0.01 * m for w, m in zip((w1, w2), moments, strict=True)), *moments)


def sharded_gradients(x: Any, target: Any, w1: Any, w2: Any, m1: Any, m2: Any) -> Any:
    """The same with the gradients annotated, scattered over the devices (ZeRO-2)."""
    slopes = [gspmd.shard(g, X8, "x", None) for g in trained(mlp)(x, target, w1, w2)]
    moments = [0.9 * m + g for m, g in zip((m1, m2), slopes, strict=True)]
    return (*(w - 0.01 * m for w, m in zip((w1, w2), moments, strict=True)), *moments)


BATCH = ("f32[2048@x, 256]",) * 2
WHOLE = ("f32[256, 1024]", "f32[1024, 256]")
SPLIT = ("f32[256@x, 1024]", "f32[1024@x, 256]")
TOKENS = ("f32[8@data, 256, 512]",) * 2
TOKENS_2D = ("f32[8@data, 256, 512@model]",) * 2
LAYER_2D = ("data, model, _", "data, model, _", "data, model, _", "model, _, data", "data, model", "model, data")
LAYER_MODEL = ("_, model, _", "_, model, _", "_, model, _", "model, _, _", "_, model", "model, _")

CASES = (
    Case("train_mlp_data", X8, trained(mlp), (*BATCH, *WHOLE), ("_, _", "_, _")),
    Case(
        "train_mlp_data_model",
        DATA_MODEL,
        trained(mlp),
        ("f32[1024@data, 512]", "f32[1024@data, 512]", "f32[512, 2048@model]", "f32[2048@model, 512]"),
        ("_, model", "model, _"),
    ),
    Case(
        "train_mlp_2d",
        DATA_MODEL,
        trained(mlp_2d),
        (*TOKENS_2D, "f32[512@data, 2048@model]", "f32[2048@model, 512@data]"),
        ("data, model", "model, data"),
    ),
    Case(
        "train_mlp_ragged",
        RAGGED,
        trained(mlp),
        ("f32[1001@data, 250]", "f32[1001@data, 250]", "f32[250, 1000@model]", "f32[1000@model, 250]"),
        ("_, model", "model, _"),
    ),
    Case(
        "train_cross_entropy",
        DATA_MODEL,
        classified,
        ("f32[512@data, 256]", "i32[512@data]", "f32[256, 4000@model]"),
        ("_, model",),
        below=4000,
    ),
    Case("zero_1", X8, momentum_step, (*BATCH, *WHOLE, *SPLIT), ("_, _", "_, _", "x, _", "x, _")),
    Case("zero_2", X8, sharded_gradients, (*BATCH, *WHOLE, *SPLIT), ("_, _", "_, _", "x, _", "x, _")),
    Case("zero_3", X8, momentum_step, (*BATCH, *SPLIT, *SPLIT), ("x, _",) * 4),
    Case("train_layer_model", DATA_MODEL, trained(layer), (*TOKENS, *weights("", "@model")), LAYER_MODEL),
    Case("train_layer_2d", DATA_MODEL, trained(layer), (*TOKENS_2D, *weights("@data", "@model")), LAYER_2D),
)
