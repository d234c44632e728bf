"""What goes to the terminal beside results: progress, in one line that is written over, by rank 0 alone."""

from __future__ import annotations

import sys

from gspmd.runtime.environment import world


def progress(text: str) -> None:
    """Show on a terminal what goes on; an empty text clears the line. Elsewhere it says nothing."""
    if world().rank == 0 and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


def notice(text: str) -> None:
    """Write a line to stderr, in one piece, so that the lines of ranks do not mix."""
    progress("")
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
