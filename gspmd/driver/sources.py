"""Where programs come from: text files, StableHLO, functions in Python files."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gspmd.driver.functions import Function, declared_types
from gspmd.driver.imports import is_mlir, load_mlir
from gspmd.driver.module import Module, trace
from gspmd.ir.errors import UsageError
from gspmd.ir.opdef import Array
from gspmd.ir.parser import parse_bytes
from gspmd.ir.verify import verify
from gspmd.ops import OPS


def load(path: str | Path, inputs: Mapping[str, Array] | None = None) -> Module:
    """Read a program from a `.gspmd` text file or an `.mlir` file of StableHLO, or trace `model.py:function`.

    The types of a function's arguments are declared by `@gspmd.program`, or are those of `inputs`: by the names of the
    parameters, or in order if the arrays have no names. Raises UsageError if there is no such file or function,
    ParseError if the text is not in the language, VerifyError if it is no legal program.
    """
    file, name = split_function(str(path))
    if name:
        return _load_function(file, name, inputs)
    data = read_bytes(Path(file))
    if is_mlir(file):
        return load_mlir(file, data)
    if Path(file).suffix != ".gspmd":
        raise UsageError(f"cannot tell what {file} holds", fix="give a .gspmd or .mlir file, or model.py:function")
    program = parse_bytes(data, OPS, file)
    verify(program, OPS)
    return Module(program)


def split_function(text: str) -> tuple[str, str]:
    """`model.py:function` as the file and the function, which is empty for any other file."""
    file, colon, name = text.rpartition(":")
    return (file, name) if colon and file.endswith(".py") else (text, "")


def read_bytes(path: Path) -> bytes:
    """The contents of a file; raises UsageError if it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def unnamed(arrays: Mapping[str, Array]) -> bool:
    """Whether the arrays of a file came without names: `numpy.savez(file, x, y)` calls them arr_0, arr_1."""
    return list(arrays) == [f"arr_{i}" for i in range(len(arrays))]


def _load_function(file: str, name: str, inputs: Mapping[str, Array] | None) -> Module:
    members = _import_file(file)
    function = members.get(name)
    if function is None or not callable(function) or isinstance(function, type):
        names = [n for n, v in members.items() if callable(v) and not isinstance(v, type) and not n.startswith("_")]
        close = get_close_matches(name, names, 3) or names[:5]
        raise UsageError(f"{file} has no function {name!r}", fix=f"it has {', '.join(close) or 'none'}")
    types = declared_types(function)
    if types is None:
        if inputs is None:
            raise UsageError(
                f"the types of the arguments of {name} are not known",
                fix="decorate it with @gspmd.program(TensorType(...), ...); `gspmd run` also takes --inputs IN.npz",
            )
        types = _types_of_inputs(function, name, inputs)
    return trace(function, *types)


def _types_of_inputs(function: Function, name: str, inputs: Mapping[str, Array]) -> tuple[Any, ...]:
    names = list(inspect.signature(function).parameters)
    if set(names) == set(inputs):
        return tuple(inputs[n] for n in names)
    if not unnamed(inputs):
        raise UsageError(f"{name} takes {', '.join(names)}, but the inputs are {', '.join(inputs)}")
    return tuple(inputs.values())


def _import_file(file: str) -> dict[str, Any]:
    """The names that a Python file defines; it is run once in a process."""
    path = Path(file).resolve()
    read_bytes(path)
    key = f"_gspmd_source_{path.stem}"
    if getattr(sys.modules.get(key), "__file__", None) == str(path):
        return sys.modules[key].__dict__
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[key]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module.__dict__
