"""Files of the command line: arrays in and out, texts out. A file is written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.errors import UsageError
from gspmd.ir.opdef import Array
from gspmd.ir.types import TensorType


def write_whole(path: str, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file beside its place and move it there when it is complete; raises UsageError if that fails."""
    target = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def write_text(path: str, text: str) -> None:
    """Write a text file."""
    write_whole(path, lambda file: file.write(text.encode()))


def write_arrays(path: str, names: Sequence[str], arrays: Sequence[Array]) -> None:
    """Write arrays to a .npz file, by name."""
    write_whole(path, lambda file: np.savez(file, **dict(zip(names, arrays, strict=True))))  # pyright: ignore[reportArgumentType]


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of a .npz file by name, in its order; raises UsageError if it is none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, zipfile.BadZipFile, AttributeError, EOFError) as error:
        raise UsageError(f"{path} is no .npz file of arrays: {error}") from None


def match_inputs(given: dict[str, Array], names: Sequence[str], types: Sequence[TensorType], path: str) -> list[Array]:
    """The arrays of a file for the inputs of a program: by name if all names are there, else in order."""
    if len(given) != len(names):
        raise UsageError(f"{path} holds {len(given)} arrays, but the program takes {len(names)}: {', '.join(names)}")
    chosen = [given[name] for name in names] if set(names) == set(given) else list(given.values())
    return [_as_type(array, t) for array, t in zip(chosen, types, strict=True)]


def _as_type(array: Array, type_: TensorType) -> Array:
    # NumPy's files know no bf16 and the like: they come back as raw bytes of the right size.
    raw = array.dtype.kind == "V" and array.dtype.itemsize == type_.dtype.itemsize
    return array.view(type_.dtype) if raw else array


def random_inputs(types: Sequence[TensorType], seed: int) -> list[Array]:
    """Random arrays, the same for the same seed: normal floats, integers of 0 to 9, bools."""
    rng = np.random.default_rng(seed)
    return [_random(rng, t) for t in types]


def _random(rng: np.random.Generator, type_: TensorType) -> Array:
    kind = dtype_kind(type_.dtype)
    if kind == "bool":
        return rng.integers(0, 2, type_.shape).astype(np.bool_)
    if kind in ("int", "uint"):
        return rng.integers(0, 2 if type_.dtype.itemsize == 1 else 10, type_.shape).astype(type_.dtype)
    values = rng.standard_normal(type_.shape)
    if kind == "complex":
        values = values + 1j * rng.standard_normal(type_.shape)
    return np.asarray(values).astype(type_.dtype)
