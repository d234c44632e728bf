"""Where programs come from: text files, functions in Python files, decorated functions."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from gspmd.driver.module import Module, trace
from gspmd.ir.errors import UsageError
from gspmd.ir.parser import parse_bytes
from gspmd.ops import OPS

Function = Callable[..., Any]


def program(*types: Any) -> Callable[[Function], Function]:
    """Declare the types of a function's arguments, so that it can be compiled by name (`gspmd run model.py:f`)."""

    def declare(function: Function) -> Function:
        function.__gspmd_types__ = types  # pyright: ignore[reportFunctionMemberAccess]
        return function

    return declare


def load(path: str | Path) -> Module:
    """Read a program from a `.gspmd` text file, or trace `model.py:function`.

    Raises UsageError if there is no such file or function, ParseError if the text is not in the language.
    """
    text = str(path)
    file, _, name = text.partition(":")
    if name and file.endswith(".py"):
        return load_function(file, name)
    source = Path(text)
    if source.suffix != ".gspmd":
        raise UsageError(f"cannot tell what {text} holds", fix="give a .gspmd file or model.py:function")
    return Module(parse_bytes(read_bytes(source), OPS, text))


def read_bytes(path: Path) -> bytes:
    """The contents of a file; raises UsageError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def load_function(file: str, name: str, inputs: dict[str, np.ndarray[Any, Any]] | None = None) -> Module:
    """Trace a function of a Python file; its types are declared by `@gspmd.program`, or those of `inputs`, in order."""
    members: dict[str, Any] = vars(_import_file(file))
    function = members.get(name)
    if function is None or not callable(function):
        names = [n for n, v in members.items() if callable(v) and not n.startswith("_")]
        close = get_close_matches(name, names, 3) or names[:5]
        raise UsageError(f"{file} has no function {name!r}", fix=f"it has {', '.join(close) or 'none'}")
    types: tuple[Any, ...] | None = getattr(function, "__gspmd_types__", None)
    if types is None:
        if inputs is None:
            raise UsageError(
                f"the types of the arguments of {name} are not known",
                fix="decorate it with @gspmd.program(TensorType(...), ...), or give --inputs",
            )
        types = tuple(inputs.values())
    return trace(function, *types)


def _import_file(file: str) -> Any:
    path = Path(file)
    read_bytes(path)
    key = f"_gspmd_source_{path.stem}"
    if key in sys.modules and getattr(sys.modules[key], "__file__", None) == str(path):
        return sys.modules[key]
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module
