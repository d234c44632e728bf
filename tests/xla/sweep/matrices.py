"""fft, Cholesky factors, triangular solves, batch normalisation."""

from __future__ import annotations

from math import prod

import numpy as np

from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    COMPLEX,
    FLOATS,
    PARTS,
    Array,
    Case,
    Draw,
    Generator,
    choose,
    draw_shape,
    flip,
    integer,
    listed,
    random,
    single,
)

_WHOLE_OF = {"f32": "c64", "f64": "c128"}


def _fft(draw: Draw, dtype: str) -> Case:
    rank = integer(draw, 1, 3)
    lengths = [integer(draw, 1, 7) for _ in range(rank)]
    batch = draw_shape(draw, 0, 2, least=1, most=3)
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    if dtype in COMPLEX:
        kind = choose(draw, ("FFT", "IFFT", "IRFFT"))
        shape = half if kind == "IRFFT" else tuple(lengths)
        result = (PARTS[dtype] if kind == "IRFFT" else dtype, (*batch, *lengths))
    else:
        kind, shape = "RFFT", tuple(lengths)
        result = (_WHOLE_OF[dtype], (*batch, *half))
    x = values.ordinary(random(draw), dtype, (*batch, *shape))
    attrs = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {listed(lengths)}"
    text = single("stablehlo.fft", (x,), [result], attrs)
    return Case("fft", dtype, text, (x,), terms=prod(lengths), least=float(np.abs(x).max()), elementwise=True)


def _triangle(draw: Draw, dtype: str, shape: tuple[int, ...]) -> Array:
    """Well conditioned: a weight on the diagonal."""
    n = shape[-1]
    x = values.ordinary(random(draw), dtype, shape, 0.5)
    return (x + 3 * np.eye(n, dtype=x.dtype)).astype(x.dtype)


def _cholesky(draw: Draw, dtype: str) -> Case:
    batch, n = draw_shape(draw, 0, 2, least=1, most=3), integer(draw, 1, 6)
    a = _triangle(draw, dtype, (*batch, n, n))
    x = (a @ np.swapaxes(a.conj(), -1, -2)).astype(a.dtype)
    lower = flip(draw)
    text = single("stablehlo.cholesky", (x,), [(dtype, x.shape)], f"lower = {str(lower).lower()}")
    # Only the triangle that is asked for means anything.
    return Case("cholesky", dtype, text, (x,), terms=n * n, least=3.0, elementwise=True)


def _triangular_solve(draw: Draw, dtype: str) -> Case:
    batch = draw_shape(draw, 0, 2, least=1, most=3)
    n, m = integer(draw, 1, 5), integer(draw, 1, 4)
    left, lower, unit = flip(draw), flip(draw), flip(draw)
    a = _triangle(draw, dtype, (*batch, n, n))
    b = values.ordinary(random(draw), dtype, (*batch, n, m) if left else (*batch, m, n))
    transpose = choose(draw, ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    attrs = (
        f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, unit_diagonal = {str(unit).lower()}, "
        f"transpose_a = #stablehlo<transpose {transpose}>"
    )
    text = single("stablehlo.triangular_solve", (a, b), [(dtype, b.shape)], attrs)
    scale = float(np.abs(b).max(initial=1.0)) * (1 + float(np.abs(a).max())) ** (n - 1)
    return Case("triangular_solve", dtype, text, (a, b), terms=n, least=scale, elementwise=True)


def _batch_norm(draw: Draw, dtype: str, kind: str) -> Case:
    rng = random(draw)
    shape = draw_shape(draw, 1, 4, least=2, most=4)
    feature = integer(draw, 0, len(shape) - 1)
    n = shape[feature]
    x = values.ordinary(rng, dtype, shape)
    scale, offset, mean = (values.ordinary(rng, dtype, (n,)) for _ in range(3))
    variance = (np.abs(values.ordinary(rng, dtype, (n,))) + x.dtype.type(0.5)).astype(x.dtype)
    attrs = f"epsilon = {choose(draw, ('1.000000e-03', '1.000000e-01'))} : f32, feature_index = {feature} : i64"
    line = (dtype, (n,))
    if kind == "training":
        arrays, results = (x, scale, offset), [(dtype, shape), line, line]
    elif kind == "inference":
        arrays, results = (x, scale, offset, mean, variance), [(dtype, shape)]
    else:
        arrays = (x, scale, mean, variance, values.ordinary(rng, dtype, shape))
        results = [(dtype, shape), line, line]
    text = single(f"stablehlo.batch_norm_{kind}", arrays, results, attrs)
    terms = prod(shape) // n
    return Case(f"batch_norm_{kind}", dtype, text, arrays, terms=terms, least=16.0, elementwise=True)


def _batch_norms(kind: str) -> Generator:
    return Generator(f"batch_norm_{kind}", FLOATS, lambda draw, dtype: _batch_norm(draw, dtype, kind), 3)


GENERATORS = (
    Generator("fft", ("f32", "f64", *COMPLEX), _fft, 8),
    Generator("cholesky", ("f32", "f64", *COMPLEX), _cholesky, 3),
    Generator("triangular_solve", ("f32", "f64", *COMPLEX), _triangular_solve, 8),
    *map(_batch_norms, ("training", "inference", "grad")),
)
