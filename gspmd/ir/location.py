"""Where in the user's source something was written."""

from __future__ import annotations

import inspect
import sysconfig
import warnings
from dataclasses import dataclass
from pathlib import Path

# Not the user's: this package, and what is in no file, such as Python's own `<frozen runpy>`.
_NOT_THE_USERS = (str(Path(__file__).resolve().parent.parent) + "/", "<")
_INSTALLED = tuple({f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib")})


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a source file; never part of a program's identity."""

    file: str
    line: int

    def text(self) -> str:
        """`model.py:14`, the path as short as the working directory allows."""
        path = Path(self.file)
        try:
            return f"{path.relative_to(Path.cwd())}:{self.line}"
        except ValueError:
            return f"{path.name}:{self.line}"


def is_outside(file: str) -> bool:
    """Whether code is in a file, and outside this package."""
    return not file.startswith(_NOT_THE_USERS)


def user_location() -> Location | None:
    """The innermost line on the call stack in a file outside this package, or None."""
    frame = inspect.currentframe()
    while frame is not None:
        if is_outside(frame.f_code.co_filename):
            return Location(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def warn(message: str) -> None:
    """Warn at the innermost line outside this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_back is not None and not is_outside(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def calling_library(names: frozenset[str]) -> tuple[str, Location | None] | None:
    """Which of these installed packages called this one, and the innermost line outside of it; None if none did."""
    frame, library = inspect.currentframe(), ""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_outside(file):
            package = next((file[len(root) :].split("/")[0] for root in _INSTALLED if file.startswith(root)), "")
            if package not in names:
                return (library, Location(file, frame.f_lineno)) if library else None
            library = package
        frame = frame.f_back
    return (library, None) if library else None
