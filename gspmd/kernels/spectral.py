"""Discrete Fourier transforms over the last dimensions, by NumPy's pocketfft in the operand's precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gspmd.kernels.finite import Array

_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}
_RESULT = {"float32": np.complex64, "float64": np.complex128, "complex64": np.float32, "complex128": np.float64}


def fft(x: Array, kind: str, length: tuple[int, ...]) -> Array:
    """The transform of a kind (FFT, IFFT, RFFT, IRFFT) over the last `len(length)` dimensions."""
    axes = tuple(range(x.ndim - len(length), x.ndim))
    dtype = x.dtype if kind in ("FFT", "IFFT") else np.dtype(_RESULT[x.dtype.name])
    if 0 in length or x.size == 0:
        shape = (*x.shape[: axes[0]], *length)
        return np.zeros((*shape[:-1], length[-1] // 2 + 1) if kind == "RFFT" and length[-1] else shape, dtype)
    with np.errstate(all="ignore"):
        return np.asarray(_TRANSFORMS[kind](x, s=length, axes=axes), dtype)
