"""What a compiled program accepts as an argument, and what it makes of it.

An argument has the dtype and shape of its input. A Python number takes the input's dtype if its kind allows it. NumPy
data that is 64 bits wide, as NumPy's defaults are, is narrowed to 32 bits as at trace time, unless the input is as wide
or `enable_x64` is on.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np

from gspmd.array import Array
from gspmd.frontend.config import canonical, canonical_array
from gspmd.frontend.tracer import Tracer, is_scalar, python_type
from gspmd.ir.dtypes import dtype_kind, native
from gspmd.ir.errors import ExecutionError, TraceError
from gspmd.ir.location import user_location
from gspmd.ir.opdef import Array as NumpyArray
from gspmd.ir.types import TensorType

Held = TypeVar("Held", Array, NumpyArray)
_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def accept(leaf: Any, type_: TensorType, what: str) -> Array | NumpyArray:
    """An argument as a held array or a whole NumPy array of the input's type; `what` names it in messages.

    Raises ExecutionError (call.C1) if dtype or shape are not the input's.
    """
    if isinstance(leaf, Tracer):
        raise TraceError(
            "a compiled program cannot be called inside a traced function",
            rule="trace.C10",
            loc=user_location(),
            fix="call the function that it was compiled from",
        )
    if isinstance(leaf, Array):
        return _matching(leaf, type_, what)
    if is_scalar(leaf) and not type_.shape:
        return _of_number(leaf, type_, what)
    try:
        array = native(np.asarray(leaf))
        if array.dtype != type_.dtype:
            array = canonical_array(array)
    except (OverflowError, ValueError) as error:
        raise _mismatch(what, type_, str(error)) from None
    return _matching(array, type_, what)


def argument_type(leaf: Any) -> Any:
    """What to trace a function with for an argument: the type of NumPy data, all else as it is."""
    if not isinstance(leaf, (np.ndarray, np.generic)):
        return leaf
    array = native(np.asarray(cast("Any", leaf)))
    try:
        return TensorType(canonical(array.dtype), array.shape)
    except ValueError:
        return array  # tracing tells what is wrong with it


def input_label(index: int, name: str) -> str:
    """How messages call an argument: `argument 0 (%x)`."""
    return f"argument {index}" + (f" (%{name})" if name else "")


def _matching(held: Held, type_: TensorType, what: str) -> Held:
    if held.shape != type_.shape or held.dtype != type_.dtype:
        fix = "" if held.dtype == type_.dtype else f"convert it: x.astype({type_.dtype.name!r})"
        raise _mismatch(what, type_, f"got {_held_type(held)}", fix)
    return held


def _held_type(held: Array | NumpyArray) -> str:
    """An argument's type in the notation of programs, in NumPy's if no program could have it."""
    try:
        return TensorType(held.dtype, held.shape).text()
    except ValueError:
        return f"{held.dtype}{list(held.shape)}"


def _of_number(number: Any, type_: TensorType, what: str) -> NumpyArray:
    kind = python_type(number).__name__
    if _RANK[kind] > _RANK[dtype_kind(type_.dtype)]:
        raise _mismatch(what, type_, f"got the Python {kind} {number!r}")
    try:
        return np.asarray(number, type_.dtype)
    except OverflowError:
        raise _mismatch(what, type_, f"{number!r} does not fit") from None


def _mismatch(what: str, type_: TensorType, got: str, fix: str = "") -> ExecutionError:
    return ExecutionError(f"{what} must be {type_.bare.text()}: {got}", rule="call.C1", fix=fix)
