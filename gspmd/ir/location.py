"""Where in the user's source something was written."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

# Not the user's: this package, and what is in no file, such as Python's own `<frozen runpy>`.
_NOT_THE_USERS = (str(Path(__file__).resolve().parent.parent) + "/", "<")


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
