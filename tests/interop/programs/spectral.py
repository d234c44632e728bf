"""Solvers by Fourier transforms: Poisson's equation in three dimensions, the heat equation in two, step by step."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.interop.programs.case import Layout, P, Place, Program, once

_RNG = np.random.default_rng(2)
GRID = 32, 16, 24
PLATE, STEPS = (32, 48), 3


def poisson(place: Place) -> Any:
    """-div grad u = f on a periodic box, mean zero, and the largest residual."""

    def solve(f: Any) -> Any:
        k = [jnp.fft.fftfreq(n, 1 / n).astype(jnp.float32) for n in f.shape]
        square = k[0][:, None, None] ** 2 + k[1][:, None] ** 2 + k[2] ** 2
        spectrum = place(jnp.fft.fftn(f), "spectrum")
        u = jnp.fft.ifftn(jnp.where(square > 0, spectrum / jnp.where(square > 0, square, 1), 0)).real
        return u, jnp.max(jnp.abs(u))

    return solve


def heat(place: Place) -> Any:
    """Implicit steps of the heat equation with a source, real transforms."""

    def solve(u: Any, source: Any) -> Any:
        n, m = u.shape
        k2 = jnp.fft.fftfreq(n, 1 / n)[:, None] ** 2 + jnp.fft.rfftfreq(m, 1 / m) ** 2
        damping = (1 / (1 + 0.01 * k2)).astype(jnp.float32)

        def step(_: Any, u: Any) -> Any:
            return jnp.fft.irfft2(jnp.fft.rfft2(u + 0.1 * source) * damping, u.shape)

        return lax.fori_loop(0, STEPS, step, u)

    return solve


_FIELD = _RNG.standard_normal(GRID).astype(np.float32)
_PLATES = [_RNG.standard_normal(PLATE).astype(np.float32) for _ in range(2)]
_SCALAR = 64
_SPECTRUM = int(np.prod(GRID)) * 8
# A transform along a split dimension moves the split to another one: what a device holds is transposed once.
_TURN = once(_SPECTRUM / 4, 4)
# Half the frequencies along the columns, in equal parts.
_ROWS_TURN = once(PLATE[0] * 28 * 8 / 4, 4)
_COLUMNS_TURN = once(PLATE[0] * PLATE[1] * 4 / 8, 8) + once(PLATE[0] * 32 * 8 / 8, 8)
PROGRAMS = (
    Program(
        "poisson",
        poisson,
        (_FIELD,),
        (
            Layout("slabs", {"x": 4}, (P("x"),), 2 * _TURN + _SCALAR, {}, (P("x"), P())),
            Layout("transposed", {"x": 4}, (P("x"),), 2 * _TURN + _SCALAR, {"spectrum": P(None, "x")}, (P("x"), P())),
            Layout("slabs_minor", {"x": 4}, (P(None, None, "x"),), 4 * _TURN + _SCALAR, {}, (P(None, None, "x"), P())),
            Layout(
                "pencils",
                {"x": 2, "y": 2},
                (P("x", "y"),),
                4 * once(_SPECTRUM / 4, 2) + _SCALAR,
                {},
                (P("x", "y"), P()),
            ),
        ),
        256,
    ),
    Program(
        "heat",
        heat,
        tuple(_PLATES),
        (
            Layout("rows", {"x": 4}, (P("x"), P("x")), STEPS * 2 * _ROWS_TURN, {}, P("x")),
            Layout("columns", {"x": 8}, (P(None, "x"), P(None, "x")), STEPS * 2 * _COLUMNS_TURN, {}, P(None, "x")),
        ),
        256,
    ),
)
