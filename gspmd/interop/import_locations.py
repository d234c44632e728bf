"""Where an op of MLIR came from: the line of a source file, and what to call its results.

JAX names an op by its path of scopes, `jit(f)/layer/dot_general`; the value becomes `layer.dot_general`. A text without
names has the names of its own values, found again at the place where MLIR says that the op stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from gspmd.interop.import_mlir import TEXT_FILE, Source
from gspmd.ir.location import Location

_RESULTS = re.compile(r"((?:%[\w.$-]+(?::\d+)?\s*,\s*)*%[\w.$-]+(?::\d+)?)\s*=\s*$")
_ARGUMENT = re.compile(r"%([\w.$-]+)")
_CALL = re.compile(r"(?:jit|pjit|closed_call|custom_jvp_call|custom_vjp_call|checkpoint|remat)(?:\((.*)\))?")
_KEY = re.compile(r"\['([^']*)'\]")
_ODD = re.compile(r"[^\w.$-]+")
_PACKAGE = str(Path(__file__).resolve().parent.parent) + "/"
_DEEP = 64  # nested locations looked through


@dataclass(frozen=True, slots=True)
class Place:
    """The path of scopes by which MLIR names something ("" if it does not), and its line in the user's source."""

    path: str
    loc: Location | None


class Places:
    """Reads the locations of one module."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines
        self._file = source.file

    def of(self, location: Any) -> Place:
        """The outermost name and the innermost line of a location."""
        path = ""
        for _ in range(_DEEP):
            if hasattr(location, "filename"):
                return Place(path, self._line(location.filename, location.start_line))
            if hasattr(location, "name_str"):
                path = path or location.name_str
                location = location.child_loc
            elif hasattr(location, "callee"):
                location = location.callee
            elif hasattr(location, "locations") and location.locations:
                location = location.locations[0]
            else:
                break
        return Place(path, None)

    def line_of(self, location: Any) -> Location | None:
        """The line alone."""
        return self.of(location).loc

    def result_names(self, location: Any, count: int) -> tuple[str, ...]:
        """What the text calls the results of an op that stands there; empty names if it does not say."""
        found = _RESULTS.search(self._before(location))
        if found is None:
            return ("",) * count
        names: list[str] = []
        for item in found[1].split(","):
            name, _, several = item.strip()[1:].partition(":")
            names += [f"{name}.{i}" for i in range(int(several))] if several else [name]
        return tuple(names) if len(names) == count else ("",) * count

    def argument_name(self, location: Any) -> str:
        """What the text calls the argument of a block that stands there."""
        line, column = self._at(location)
        found = _ARGUMENT.match(line, column)
        return found[1] if found else ""

    def _before(self, location: Any) -> str:
        line, column = self._at(location)
        return line[:column]

    def _at(self, location: Any) -> tuple[str, int]:
        """The line of the text and the column, from 0, of a location in it."""
        number: int = location.start_line if getattr(location, "filename", "") == TEXT_FILE else 0
        if not 0 < number <= len(self._lines):
            return "", 0
        return self._lines[number - 1], location.start_col - 1

    def _line(self, name: str, number: int) -> Location | None:
        """A line of the user's source: what this package asked JAX for has none."""
        return None if name.startswith(_PACKAGE) else Location(self._file if name == TEXT_FILE else name, number)


@lru_cache(maxsize=1 << 14)
def value_name(path: str) -> str:
    """The name of a value from a path of scopes: `jit(f)/layer/dot_general` is `layer.dot_general`."""
    scopes = path.split("/")
    outermost = scopes[0]
    while len(scopes) > 1 and scopes[0] == outermost and _CALL.fullmatch(outermost):
        scopes = scopes[1:]
    words: list[str] = []
    for scope in scopes:
        call = _CALL.fullmatch(scope)
        word = _ODD.sub("_", (call[1] or "") if call else scope).strip("_")
        if word:
            words.append(word)
    return ".".join(words)


def argument_name(path: str) -> str:
    """The name of an argument as a program would write it: `params['w'][0]` is `params.w[0]`."""
    return _KEY.sub(r".\1", path)
