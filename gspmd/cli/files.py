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

from gspmd.ir.errors import UsageError
from gspmd.ir.opdef import Array


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
