"""`gspmd.numpy.fft`: discrete Fourier transforms along axes, by NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any, NoReturn

import numpy as np

from gspmd.frontend.config import canonical, default_float
from gspmd.frontend.numpy_core import as_inexact, cast_to, constant, lift, normal_axes
from gspmd.frontend.numpy_missing import missing
from gspmd.frontend.numpy_shape import moveaxis, pad_with, roll, slice_dim
from gspmd.frontend.numpy_special import conj
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.dtypes import DTYPES, dtype_kind
from gspmd.ops.spectral import FFT

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Norm = str | None


def fft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Tracer:
    """The Fourier transform along an axis, of n points (cut or padded with zeros)."""
    return _along("FFT", x, None if n is None else (n,), (axis,), norm)


def ifft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Tracer:
    """The inverse of fft."""
    return _along("IFFT", x, None if n is None else (n,), (axis,), norm)


def rfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Tracer:
    """The Fourier transform of real numbers along an axis: the frequencies that are not negative."""
    return _along("RFFT", x, None if n is None else (n,), (axis,), norm)


def irfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Tracer:
    """The inverse of rfft, n real numbers (without n an even number of them)."""
    return _along("IRFFT", x, None if n is None else (n,), (axis,), norm)


def fftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = None) -> Tracer:
    """The Fourier transform along several axes, by default all."""
    return _along("FFT", x, s, axes, norm)


def ifftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = None) -> Tracer:
    """The inverse of fftn."""
    return _along("IFFT", x, s, axes, norm)


def rfftn(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = None) -> Tracer:
    """The Fourier transform of real numbers along several axes: half of the frequencies of the last."""
    return _along("RFFT", x, s, axes, norm)


def irfftn(
    x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = None
) -> Tracer:
    """The inverse of rfftn."""
    return _along("IRFFT", x, s, axes, norm)


def fft2(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Tracer:
    """The Fourier transform along two axes."""
    return _along("FFT", x, s, axes, norm)


def ifft2(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Tracer:
    """The inverse of fft2."""
    return _along("IFFT", x, s, axes, norm)


def rfft2(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Tracer:
    """The Fourier transform of real numbers along two axes: half of the frequencies of the second."""
    return _along("RFFT", x, s, axes, norm)


def irfft2(x: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Tracer:
    """The inverse of rfft2."""
    return _along("IRFFT", x, s, axes, norm)


def hfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Tracer:
    """The real Fourier transform of what is Hermitian along an axis, of which half is given: n points."""
    return irfft(conj(x), n, axis, _turned(norm))


def ihfft(x: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Tracer:
    """The inverse of hfft."""
    return conj(rfft(x, n, axis, _turned(norm)))


def _turned(norm: Norm) -> Norm:
    """The norm that scales an inverse transform as this one scales a transform."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def _along(kind: str, x: ArrayLike, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm) -> Tracer:
    """A transform along axes: they go last, are cut or padded, and the transform is done by at most three at a time."""
    given = as_inexact(x)
    if axes is None and s is not None:
        axes = range(-len(s), 0)
    dims = normal_axes(axes, given.ndim)
    value = _prepared(kind, given)
    last = tuple(range(given.ndim - len(dims), given.ndim))
    turned = value if dims == last else moveaxis(value, dims, last)
    lengths = _lengths(kind, turned, last, s)
    for d, n in zip(last, lengths, strict=True):
        turned = _fit(turned, d, n // 2 + 1 if kind == "IRFFT" and d == last[-1] else n)
    found = _transform(kind, turned, lengths)
    scale = _scale(kind, prod(lengths), norm)
    found = found if scale == 1 else found * scale
    return found if dims == last else moveaxis(found, last, dims)


def _prepared(kind: str, x: Tracer) -> Tracer:
    complex_ = dtype_kind(x.dtype) == "complex"
    if kind == "RFFT":
        if complex_:
            raise trace_error("rfft takes real numbers, got complex ones", rule="fft.C3", fix="use fft")
        return cast_to(x, DTYPES["f32"]) if x.dtype.itemsize < 4 else x
    return x if complex_ else cast_to(x, DTYPES["c128" if x.dtype.itemsize == 8 else "c64"])


def _lengths(kind: str, x: Tracer, last: Sequence[int], s: Sequence[int] | None) -> tuple[int, ...]:
    found = [x.shape[d] for d in last] if s is None else [int(n) for n in s]
    if len(found) != len(last):
        raise trace_error(f"{len(found)} lengths for {len(last)} axes", rule="fft.C2")
    if kind == "IRFFT" and s is None:
        found[-1] = 2 * (found[-1] - 1)
    if min(found, default=1) < 1:
        raise trace_error(f"a transform of {min(found)} points", rule="fft.C4", fix="use lengths of at least 1")
    return tuple(found)


def _fit(x: Tracer, dim: int, size: int) -> Tracer:
    if x.shape[dim] > size:
        return slice_dim(x, dim, 0, size)
    high = [size - x.shape[d] if d == dim else 0 for d in range(x.ndim)]
    return x if not any(high) else pad_with(x, [0] * x.ndim, high)


def _transform(kind: str, x: Tracer, lengths: tuple[int, ...]) -> Tracer:
    """Up to three of the last axes at once; of more, the real one with the last of them."""
    if not lengths:
        return x
    if len(lengths) <= 3:
        return emit(FFT, x, kind=kind, length=lengths)
    full = {"RFFT": "FFT", "IRFFT": "IFFT"}.get(kind, kind)
    first, rest = lengths[:-3], lengths[-3:]
    if kind in ("FFT", "RFFT"):
        x = emit(FFT, x, kind=kind, length=rest)
    places = tuple(range(x.ndim - len(lengths), x.ndim - 3))
    ends = tuple(range(x.ndim - len(first), x.ndim))
    x = moveaxis(_transform(full, moveaxis(x, places, ends), first), ends, places)
    return x if kind in ("FFT", "RFFT") else emit(FFT, x, kind=kind, length=rest)


def _scale(kind: str, points: int, norm: Norm) -> float:
    """What NumPy's norms multiply by, the inverse transforms dividing by the points already."""
    inverse = kind in ("IFFT", "IRFFT")
    if norm in (None, "backward"):
        return 1
    if norm == "ortho":
        return sqrt(points) if inverse else 1 / sqrt(points)
    if norm == "forward":
        return points if inverse else 1 / points
    raise trace_error(f"norm {norm!r} is none of backward, ortho, forward", rule="fft.C5")


def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tracer:
    """The frequencies of fft in cycles per unit of the distance d between samples."""
    return _frequencies(np.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> Tracer:
    """The frequencies of rfft."""
    return _frequencies(np.fft.rfftfreq(n, d), dtype)


def _frequencies(values: Any, dtype: Any) -> Tracer:
    return constant(values.astype(default_float() if dtype is None else canonical(np.dtype(dtype))))


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Tracer:
    """The zero frequency moved to the middle."""
    given = lift(x)
    dims = normal_axes(axes, given.ndim)
    return roll(given, [given.shape[d] // 2 for d in dims], dims)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Tracer:
    """The inverse of fftshift."""
    given = lift(x)
    dims = normal_axes(axes, given.ndim)
    return roll(given, [-(given.shape[d] // 2) for d in dims], dims)


def __getattr__(name: str) -> NoReturn:
    raise missing("gspmd.numpy.fft", name, __all__)
