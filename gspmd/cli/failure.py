"""An exception as the message and the exit code that a user of the command line gets.

Our own errors say what to do, at the user's line. Whatever else a user's program raises is told with the user's own
lines, innermost first, and without those of this package, of Python and of other packages.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from gspmd.ir.errors import ExecutionError, GspmdError
from gspmd.ir.location import Location, is_outside

FAILED, USAGE = 1, 2

_OTHERS = tuple({f"{sysconfig.get_path(name)}/" for name in ("stdlib", "purelib", "platlib", "scripts")})
_SHOWN = 8


def failure(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an exception that ended a command."""
    lines = list(_user_lines(error.__traceback__))[::-1]
    if isinstance(error, GspmdError):
        if lines:
            error.at(lines[0])
        return f"gspmd: {error}", FAILED if isinstance(error, ExecutionError) else USAGE
    if isinstance(error, SyntaxError) and error.filename:
        where = Location(error.filename, error.lineno or 1).text()
        return f"gspmd: {where}: {type(error).__name__}: {error.msg}", USAGE
    head = f"gspmd: {type(error).__name__}: {error}" if str(error) else f"gspmd: {type(error).__name__}"
    if not lines:
        lines = list(_all_lines(error.__traceback__))[::-1][:1]
    return "\n".join([head, *(f"  at {loc.text()}" for loc in lines[:_SHOWN])]), FAILED


def _all_lines(trace: TracebackType | None) -> Iterator[Location]:
    while trace is not None:
        yield Location(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next


def _user_lines(trace: TracebackType | None) -> Iterator[Location]:
    """The lines of the traceback that are the user's own, outermost first; compiled code may name files not here."""
    for loc in _all_lines(trace):
        path = Path(loc.file).resolve()
        if is_outside(loc.file) and is_outside(str(path)) and not str(path).startswith(_OTHERS) and path.is_file():
            yield Location(str(path), loc.line)
