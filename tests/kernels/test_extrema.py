"""Maxima and minima of signed zeros are XLA's to the bit, by whatever op and in whatever layout of memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import gspmd
import gspmd.numpy as gnp
from gspmd.kernels import extrema

Array = np.ndarray[Any, Any]
ZEROS = (0.0, -0.0, 1.0, -1.0, np.nan)
# All words of three letters, side by side: each order in which zeros can meet.
WORDS = np.array(list(product(ZEROS, repeat=3)))
X, Y = WORDS, np.roll(WORDS, 1, axis=1)
ROWS = np.arange(len(WORDS) * 3, dtype=np.int32).reshape(-1, 1) // 5


def _scattered(scatter: Callable[..., Any], x: Any, y: Any) -> Any:
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    return scatter(x.reshape(-1), ROWS, y.reshape(-1), dims)


def _window(operation: Any, start: float, x: Any, size: int) -> Any:
    return lax.reduce_window(x.reshape(-1), x.dtype.type(start), operation, (size,), (1,), "SAME")


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda x, y: lax.max(x, y),
    "minimum": lambda x, y: lax.min(x, y),
    "maximum of a constant": lambda x, y: lax.max(x, x.dtype.type(0)),
    "maximum of -0": lambda x, y: lax.max(x.dtype.type(-0.0), x),
    "minimum of a constant": lambda x, y: lax.min(x, x.dtype.type(0)),
    "minimum of -0": lambda x, y: lax.min(x.dtype.type(-0.0), x),
    "clamp": lambda x, y: lax.clamp(x.dtype.type(-0.0), x, x.dtype.type(0)),
    "fused": lambda x, y: lax.min(lax.max(x + y, y), x * 1),
    "reduce_max": lambda x, y: lax.reduce_max(x, (1,)),
    "reduce_min": lambda x, y: lax.reduce_min(x, (1,)),
    "reduce_max of rows": lambda x, y: lax.reduce_max(x, (0,)),
    "cummax": lambda x, y: lax.cummax(x, axis=1),
    "cummin": lambda x, y: lax.cummin(x, axis=1, reverse=True),
    "scatter_max": lambda x, y: _scattered(lax.scatter_max, x, y),
    "scatter_min": lambda x, y: _scattered(lax.scatter_min, x, y),
    "window max": lambda x, y: _window(lax.max, -np.inf, x, 3),
    "window min": lambda x, y: _window(lax.min, np.inf, x, 17),
}

OVER_DEVICES: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: gnp.max(x, axis=1),
    "min": lambda x: gnp.min(x, axis=1),
    "maximum": lambda x: gnp.maximum(x, gnp.max(x, axis=0)),
}


def _same(ours: Any, theirs: Any) -> None:
    a, b = np.asarray(ours), np.asarray(theirs)
    word = f"u{a.dtype.itemsize}"
    number = ~np.isnan(b.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(a.astype(np.float32)), ~number)
    np.testing.assert_array_equal(a.view(word)[number], b.view(word)[number])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_zeros_are_those_of_xla(name: str, dtype: str) -> None:
    function = CASES[name]
    x, y = (np.asarray(jax.numpy.asarray(a, dtype)) for a in (X, Y))
    module = gspmd.from_jax(function, x, y)
    theirs = jax.jit(function)(x, y)
    _same(module.run(x, y), theirs)
    _same(gspmd.compile(module, devices=1)(x, y), theirs)


@pytest.mark.parametrize("axes", [("d", None), (None, "d")])
@pytest.mark.parametrize("name", ["max", "min", "maximum"])
def test_zeros_meet_over_devices_as_on_one(name: str, axes: tuple[str | None, ...]) -> None:
    mesh = gspmd.Mesh({"d": 3})
    x, function = X.astype(np.float32), OVER_DEVICES[name]
    module = gspmd.trace(lambda a: function(gspmd.shard(a, mesh, *axes)), x)
    _same(gspmd.compile(module, mesh=mesh)(x), module.run(x))


@pytest.mark.parametrize("operation", [np.maximum, np.minimum])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_layout_and_place_of_the_constant(operation: np.ufunc, dtype: Any) -> None:
    for a, b, n in product((0.0, -0.0), (0.0, -0.0), (0, 1, 5, 16, 67)):
        right = max(a, b, key=lambda z: np.copysign(1, z) if operation is np.maximum else -np.copysign(1, z))
        spaced = np.full(2 * n, a, dtype)[::2]
        for x in (np.full(n, a, dtype), spaced, np.broadcast_to(dtype(a), n)):
            for y in (np.full(n, b, dtype), np.broadcast_to(dtype(b), n), np.array(b, dtype)):
                for out in (extrema.extremum(operation, x, y), extrema.extremum(operation, y, x)):
                    assert out.dtype == dtype
                    assert (np.signbit(out) == np.signbit(right)).all()
