"""Files of the command line: arrays in and out, texts out. A file is written whole or not at all."""

from __future__ import annotations

import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gspmd.driver.arguments import accept, input_label
from gspmd.driver.sources import unnamed
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.errors import ExecutionError, UsageError
from gspmd.ir.opdef import Array
from gspmd.ir.types import TensorType


def write_whole(path: str, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file beside its place and move it there when it is complete; raises UsageError if that fails.

    A device or a pipe is written to as it stands: it must not be replaced by a file.
    """
    target = Path(path).resolve()
    temporary = target.parent / f".{target.name}.{os.getpid()}"
    try:
        if _special(path):
            with open(path, "wb") as stream:
                write(stream)
            return
        with temporary.open("xb") as file:
            write(file)
        temporary.replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: str) -> None:
    """Raise UsageError if a file cannot be written there, before any work is done for it."""
    if _special(path):
        return
    target = Path(path).resolve()
    if target.is_dir():
        raise UsageError(f"cannot write {path}: Is a directory")
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no directory {target.parent}")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write {path}: Permission denied")


def _special(path: str) -> bool:
    """Whether a device, a pipe or the like is there."""
    place = Path(path)
    return place.exists() and not place.is_file() and not place.is_dir()


def write_text(path: str, make: Callable[[], str]) -> None:
    """Write the text that `make` gives, `-` being the terminal; a file's place is looked at before it is made."""
    if path == "-":
        sys.stdout.write(make())
        return
    check_writable(path)
    text = make().encode()
    write_whole(path, lambda file: file.write(text))


def write_arrays(path: str, names: Sequence[str], arrays: Sequence[Array]) -> None:
    """Write arrays to a .npz file, by name."""
    write_whole(path, lambda file: np.savez(file, **dict(zip(names, arrays, strict=True))))  # pyright: ignore[reportArgumentType]


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of a .npz file by name, in its order; raises UsageError if it is none."""
    try:
        if Path(path).is_file() and not zipfile.is_zipfile(path):
            raise UsageError(f"{path} is no .npz file of arrays, or not a whole one")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise UsageError(f"{path} is no .npz file of arrays: {error}") from None


def match_inputs(given: dict[str, Array], names: Sequence[str], types: Sequence[TensorType], path: str) -> list[Array]:
    """The arrays of a file for the inputs of a program: by name, or in order where they have no names.

    Raises UsageError, naming the file, if they are not the program's.
    """
    if len(given) != len(names):
        raise UsageError(f"{path} holds {len(given)} arrays, but the program takes {len(names)}: {', '.join(names)}")
    if set(names) != set(given) and not unnamed(given):
        raise UsageError(f"{path} holds {', '.join(given)}, but the program takes {', '.join(names)}")
    chosen = [given[name] for name in names] if set(names) == set(given) else list(given.values())
    labels = [input_label(i, name) for i, name in enumerate(names)]
    try:
        return [np.asarray(accept(_as_type(x, t), t, s)) for x, t, s in zip(chosen, types, labels, strict=True)]
    except ExecutionError as error:
        raise UsageError(f"{path}: {error.message}", rule=error.rule, fix=error.fix) from None


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
