"""Linear systems: batches of them, a single one, and least squares through a Cholesky factorisation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from tests.interop.programs.case import Layout, P, Place, Program, once, twice

BATCH, SMALL, SIDES, LARGE, SAMPLES, FEATURES = 16, 12, 3, 96, 512, 24
_RNG = np.random.default_rng(5)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def batched(place: Place) -> Any:
    """Solves of many small systems, scaled row by row first, refined once, with the norms of the residuals."""

    def solve(a: Any, b: Any) -> Any:
        scale = 1 / jnp.max(jnp.abs(a), -1, keepdims=True)
        a, b = a * scale, b * scale
        x = jnp.linalg.solve(a, b)
        x = x + jnp.linalg.solve(a, b - a @ x)
        return x, jnp.linalg.norm(b - a @ x, axis=(1, 2)) < 1e-3

    return solve


def single(place: Place) -> Any:
    """One system made and used where its rows are split: kernel matrix, solve, prediction at other points."""

    def solve(points: Any, values: Any, others: Any) -> Any:
        def kernel(p: Any, q: Any) -> Any:
            return jnp.exp(-0.5 * jnp.sum((p[:, None] - q[None]) ** 2, -1))

        matrix = kernel(points, points) + 0.5 * jnp.eye(len(points), dtype=points.dtype)
        weights = jnp.linalg.solve(place(matrix, "matrix"), values)
        return kernel(others, points) @ weights

    return solve


def least_squares(place: Place) -> Any:
    """Ridge regression by the normal equations; its slopes by the weights of the samples."""

    def fit(x: Any, y: Any, weights: Any) -> Any:
        gram = (x * weights[:, None]).T @ x + jnp.eye(x.shape[1], dtype=x.dtype)
        return cho_solve(cho_factor(gram, lower=True), (x * weights[:, None]).T @ y)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        found = fit(x, y, weights)
        return jnp.mean((x @ found - y) ** 2), found

    return lambda weights, x, y: jax.value_and_grad(loss, has_aux=True)(weights, x, y)


_SCALAR = 64
_MATRICES, _SIDES = BATCH * SMALL * SMALL * 4, BATCH * SMALL * SIDES * 4
# A matrix that is split goes to the batch, and back; right sides and solutions are smaller, and may be gathered.
_TO_BATCH = 2 * once(_MATRICES / 4, 4) + 3 * once(_SIDES, 4)
_MATRIX, _POINTS, _VALUES = LARGE * LARGE * 4, LARGE * 4 * 4, LARGE * 8 * 4
# One matrix is factored on all devices; so are the points and the values there.
_GATHERED = once(_MATRIX, 4) + 2 * once(_POINTS, 4) + once(_VALUES, 4)
_GRAM, _RIGHT, _FITTED = FEATURES * FEATURES * 4, FEATURES * 2 * 4, SAMPLES * 2 * 4

PROGRAMS = (
    Program(
        "solve_batch",
        batched,
        (_floats(BATCH, SMALL, SMALL) + 4 * np.eye(SMALL, dtype=np.float32), _floats(BATCH, SMALL, SIDES)),
        (
            Layout("batch", {"x": 4}, (P("x"), P("x")), 0, {}, (P("x"), P("x"))),
            Layout("rows", {"x": 4}, (P(None, "x"), P(None, "x")), _TO_BATCH, {}, (P(None, "x"), P())),
            Layout(
                "batch_rows",
                {"x": 2, "y": 2},
                (P("x", "y"), P("x", "y")),
                2 * once(_MATRICES / 2, 2) + 4 * once(_SIDES / 2, 2),
                {},
                (P("x", "y"), P("x")),
            ),
            Layout("columns", {"x": 4}, (P(None, None, "x"), P()), _TO_BATCH, {}, (P(), P())),
        ),
    ),
    Program(
        "solve_one",
        single,
        (_floats(LARGE, 4), _floats(LARGE, 8), _floats(32, 4)),
        (
            Layout("rows", {"x": 4}, (P("x"), P("x"), P("x")), _GATHERED, {"matrix": P("x")}, P("x")),
            Layout("free", {"x": 4}, (P("x"), P("x"), P("x")), _GATHERED + once(_MATRIX, 4), {}, P("x")),
            Layout("sides", {"x": 4}, (P(), P(None, "x"), P()), 0, {}, P(None, "x")),
        ),
    ),
    Program(
        "least_squares",
        least_squares,
        (np.abs(_floats(SAMPLES)) + 0.1, _floats(SAMPLES, FEATURES), _floats(SAMPLES, 2)),
        (
            Layout(
                "samples",
                {"x": 4},
                (P("x"), P("x"), P("x")),
                twice(_GRAM + 2 * _RIGHT, 4) + _SCALAR,
                {},
                ((P(), P()), P("x")),
            ),
            Layout(
                "features",
                {"x": 4},
                (P(), P(None, "x"), P()),
                once(SAMPLES * FEATURES * 4, 4) + 3 * twice(_FITTED, 4) + twice(_GRAM, 4),
                {},
                ((P(), P("x")), P()),
            ),
        ),
    ),
)
