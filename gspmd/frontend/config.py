"""The one option of the front end: whether defaults are 32 or 64 bits wide."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from gspmd.ir.dtypes import DTYPES, DType, native


class _Options:
    """The options in force; one instance for the process, read at trace time only."""

    __slots__ = ("x64",)

    def __init__(self) -> None:
        self.x64 = False


_OPTIONS = _Options()
_NARROW: dict[DType, DType] = {
    DTYPES["f64"]: DTYPES["f32"],
    DTYPES["i64"]: DTYPES["i32"],
    DTYPES["u64"]: DTYPES["u32"],
    DTYPES["c128"]: DTYPES["c64"],
}


class enable_x64:
    """Make 64-bit defaults (or 32-bit ones again); as a context manager, only within the `with` block.

    The option rules the types that nobody asked for: Python numbers without a typed partner, `mean` of integers, and
    NumPy data that is 64 bits wide because NumPy's defaults are. A dtype that the program names is always kept.
    """

    __slots__ = ("_before",)

    def __init__(self, enabled: bool = True) -> None:
        self._before = _OPTIONS.x64
        _OPTIONS.x64 = enabled

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _OPTIONS.x64 = self._before


def x64_enabled() -> bool:
    """Whether defaults are 64 bits wide."""
    return _OPTIONS.x64


def default_float() -> DType:
    """The float type of what has no type of its own: f32, or f64."""
    return DTYPES["f64"] if _OPTIONS.x64 else DTYPES["f32"]


def default_int() -> DType:
    """The integer type of what has no type of its own: i32, or i64."""
    return DTYPES["i64"] if _OPTIONS.x64 else DTYPES["i32"]


def default_complex() -> DType:
    """The complex type of what has no type of its own: c64, or c128."""
    return DTYPES["c128"] if _OPTIONS.x64 else DTYPES["c64"]


def canonical(dtype: DType) -> DType:
    """The type that NumPy data of a dtype gets in a program: 64-bit data becomes 32-bit unless the option is on."""
    return dtype if _OPTIONS.x64 else _NARROW.get(dtype, dtype)


def canonical_array(array: np.ndarray[tuple[int, ...], DType]) -> np.ndarray[tuple[int, ...], DType]:
    """The array in its canonical dtype and byte order; raises OverflowError if an integer does not fit."""
    array = native(array)
    target = canonical(array.dtype)
    if target == array.dtype:
        return array
    narrow = array.astype(target)
    if array.dtype.kind in "iu" and not np.array_equal(narrow, array):
        raise OverflowError(f"an integer of this {array.dtype} array does not fit into {target}")
    return narrow
