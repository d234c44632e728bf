"""Windows of samples, and grids of indices: constants whose sizes are Python numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from gspmd.frontend.config import canonical_array, default_float
from gspmd.frontend.numpy_core import array_of, constant, lift
from gspmd.frontend.numpy_creation import iota
from gspmd.frontend.numpy_shape import reshape
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer
from gspmd.ir.dtypes import as_dtype

__all__ = ["bartlett", "blackman", "fromfunction", "hamming", "hanning", "ix_", "kaiser"]


def _window(values: Any) -> Tracer:
    return constant(values.astype(default_float()))


def bartlett(M: int) -> Tracer:
    """M samples of a triangle that is zero at both ends."""
    return _window(np.bartlett(M))


def blackman(M: int) -> Tracer:
    """M samples of Blackman's window, a sum of three cosines."""
    return _window(np.blackman(M))


def hamming(M: int) -> Tracer:
    """M samples of Hamming's window, a raised cosine that does not reach zero."""
    return _window(np.hamming(M))


def hanning(M: int) -> Tracer:
    """M samples of von Hann's window, a cosine raised to reach zero at both ends."""
    return _window(np.hanning(M))


def kaiser(M: int, beta: float) -> Tracer:
    """M samples of Kaiser's window, of Bessel functions; the greater beta, the narrower it is."""
    return _window(np.kaiser(M, beta))


def fromfunction(function: Callable[..., Any], shape: Sequence[int], *, dtype: Any = None, **keywords: Any) -> Any:
    """What a function gives for the indices along each dimension of a grid, by default floats."""
    kind = default_float() if dtype is None else as_dtype(dtype)
    sizes = tuple(int(n) for n in shape)
    return function(*(iota(sizes, kind, d) for d in range(len(sizes))), **keywords)


def ix_(*args: ArrayLike) -> tuple[Tracer, ...]:
    """Indices that pick a sub-grid: the k-th array along the k-th dimension; of known bools the places that hold."""
    found: list[Tracer] = []
    for k, x in enumerate(args):
        line = _places(x)
        if line.ndim != 1:
            raise trace_error(f"argument {k} of ix_ has shape {list(line.shape)}", rule="ix_.C1", fix="give lines")
        found.append(reshape(line, [line.size if d == k else 1 for d in range(len(args))]))
    return tuple(found)


def _places(x: ArrayLike) -> Tracer:
    if isinstance(x, Tracer):
        if x.dtype == np.bool_:
            raise trace_error(
                "ix_ of traced bools has a shape that depends on data", rule="ix_.C2", fix="give indices, or use where"
            )
        return x
    array = array_of(x)
    if array.dtype == np.bool_ and array.ndim == 1:
        return constant(canonical_array(np.flatnonzero(array)))
    return lift(cast("Any", array.astype(canonical_array(np.zeros(0, np.int64)).dtype) if not array.size else array))
