"""What one device computes, against which other runs of a program are judged, and how far that itself is from certain.

A result that is left over where nearly equal numbers cancel, a residual, consists of rounding: no bound on its own
size allows for what another order of the same operations gives. Its uncertainty is measured instead: the reference
runs again on inputs moved in the last place, and a result may differ by a small multiple of how far it moves. Programs
whose results are well determined move by about a rounding step, so that their mistakes stay mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gspmd.ir.opdef import Array
from gspmd.kernels.finite import epsilon, is_float

# What a result may differ by, as a multiple of how far it moves; in so many runs; with inputs moved so many units.
ALLOWED_MOVES = 8
_RUNS, UNITS = 3, 2


class Reference:
    """The results of one device for some arguments. `run` computes them, and may be called again."""

    def __init__(self, run: Callable[[Sequence[Array]], Sequence[Array]], arrays: Sequence[Array]) -> None:
        self._run = run
        self._arrays = arrays
        self.results = [np.asarray(x) for x in run(arrays)]

    def allowance(self, index: int) -> Array | None:
        """What the elements of a result may differ by for its uncertainty; None if it is exact, or nothing can move.

        It costs a few runs, the first time.
        """
        result = self.results[index]
        if not _moves(result) or not any(_moves(x) and x.size for x in self._arrays):
            return None
        return ALLOWED_MOVES * _spread(result, [run[index] for run in self._moved_runs])

    @cached_property
    def _moved_runs(self) -> list[list[Array]]:
        """The results for inputs moved at random, by the same amounts whenever and on whichever rank this is asked."""
        # Masks, counts and indices that are kept as floats mean something else when they move; where there are no other
        # floats at all, whole numbers are data.
        measured = [_moves(x) and not _is_whole(x) for x in self._arrays]
        moving = measured if any(measured) else [_moves(x) for x in self._arrays]
        rng = np.random.default_rng(0)
        return [
            [np.asarray(y) for y in self._run([moved(x, rng) if m else x for x, m in pairs])]
            for pairs in [list(zip(self._arrays, moving, strict=True))] * _RUNS
        ]


def moved(x: Array, rng: np.random.Generator) -> Array:
    """A float or complex array with each number moved by up to UNITS of its dtype's last place.

    The dtype stays; zeros, and numbers that are or would become infinite or NaN, stay as they are.
    """
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    steps = rng.uniform(-1.0, 1.0, x.shape) * UNITS * epsilon(x.dtype)
    with np.errstate(all="ignore"):
        found = (x.astype(wide) * (1.0 + steps)).astype(x.dtype)
        return np.asarray(np.where(np.isfinite(found.astype(wide)), found, x))


def _spread(result: Array, runs: Sequence[Array]) -> Array:
    """How far each element is from its like in any run, but at least what is usual in its row.

    A few runs may by chance leave one of many elements in its place. What is not finite in either tells nothing.
    """
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        far = np.max([np.abs(run.astype(wide) - result.astype(wide)) for run in runs], axis=0)
    far = np.where(np.isfinite(far), far, 0.0)
    return np.maximum(far, np.median(far, axis=-1, keepdims=True)) if far.ndim and far.size else far


def _moves(x: Array) -> bool:
    """Whether an array's numbers are rounded ones."""
    dtype: np.dtype[Any] = x.dtype
    return is_float(dtype) or dtype.kind == "c"


def _is_whole(x: Array) -> bool:
    """Whether all numbers of a float array are whole."""
    if x.dtype.kind == "c":
        return _is_whole(np.real(x)) and _is_whole(np.imag(x))
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return bool(np.all(wide == np.rint(wide)))
