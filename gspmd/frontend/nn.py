"""What neural networks need besides the array API."""

from __future__ import annotations

from math import pi

from gspmd.frontend.numpy_core import as_inexact, full_of, lift
from gspmd.frontend.numpy_creation import one_hot
from gspmd.frontend.numpy_math import abs as _abs
from gspmd.frontend.numpy_math import maximum, square, stop_gradient, where
from gspmd.frontend.numpy_reduce import Axes, logsumexp, max, mean, sum
from gspmd.frontend.numpy_special import erf, exp, log1p, rsqrt, sigmoid, tanh
from gspmd.frontend.tracer import ArrayLike, Tracer

__all__ = [
    "gelu",
    "layer_norm",
    "log_softmax",
    "logsumexp",
    "one_hot",
    "relu",
    "rms_norm",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "stop_gradient",
]


def relu(x: ArrayLike) -> Tracer:
    """X where it is positive, else 0; the derivative at 0 is 0."""
    lifted = lift(x)
    zero = full_of(0, lifted.dtype, lifted.shape)
    # The other way round, NaN would become 0.
    return where(lifted <= zero, zero, lifted)


def gelu(x: ArrayLike, approximate: bool = True) -> Tracer:
    """X times the normal distribution function: by tanh (the usual approximation), or exactly."""
    lifted = as_inexact(x)
    if not approximate:
        return lifted * (erf(lifted * 0.5**0.5) + 1) * 0.5
    return lifted * (tanh((lifted + lifted**3 * 0.044715) * (2 / pi) ** 0.5) + 1) * 0.5


def silu(x: ArrayLike) -> Tracer:
    """X * sigmoid(x)."""
    lifted = as_inexact(x)
    return lifted * sigmoid(lifted)


def softplus(x: ArrayLike) -> Tracer:
    """log(1 + exp(x)) without overflow."""
    lifted = as_inexact(x)
    return maximum(lifted, 0) + log1p(exp(-_abs(lifted)))


def softmax(x: ArrayLike, axis: Axes = -1) -> Tracer:
    """exp(x), scaled to sum 1 along axes."""
    lifted = as_inexact(x)
    raised = exp(lifted - stop_gradient(max(lifted, axis, keepdims=True)))
    return raised / sum(raised, axis, keepdims=True)


def log_softmax(x: ArrayLike, axis: Axes = -1) -> Tracer:
    """log(softmax(x)) without overflow."""
    lifted = as_inexact(x)
    return lifted - logsumexp(lifted, axis, keepdims=True)


def layer_norm(
    x: ArrayLike, scale: ArrayLike | None = None, offset: ArrayLike | None = None, axis: Axes = -1, eps: float = 1e-5
) -> Tracer:
    """X with mean 0 and variance 1 along axes, then scaled and moved."""
    lifted = as_inexact(x)
    apart = lifted - mean(lifted, axis, keepdims=True)
    return _affine(apart * rsqrt(mean(square(apart), axis, keepdims=True) + eps), scale, offset)


def rms_norm(x: ArrayLike, scale: ArrayLike | None = None, axis: Axes = -1, eps: float = 1e-6) -> Tracer:
    """X divided by the root of its mean square along axes, then scaled."""
    lifted = as_inexact(x)
    return _affine(lifted * rsqrt(mean(square(lifted), axis, keepdims=True) + eps), scale, None)


def _affine(x: Tracer, scale: ArrayLike | None, offset: ArrayLike | None) -> Tracer:
    scaled = x if scale is None else x * scale
    return scaled if offset is None else scaled + offset
