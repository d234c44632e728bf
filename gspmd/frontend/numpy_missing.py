"""What is said of a name of NumPy's that is not here."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def missing(module: str, name: str, known: Sequence[str]) -> AttributeError:
    """The error for a name that a module does not have, with those that are nearest to it."""
    close = [] if name.startswith("_") else get_close_matches(name, known, 3, 0.7)
    return AttributeError(f"{module} has no {name}" + (f"; it has {', '.join(close)}" if close else ""))
