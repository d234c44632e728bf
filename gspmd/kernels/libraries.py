"""SciPy's modules, imported when first needed: they take longer to load than all of this package."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def scipy_module(name: str) -> Any:
    """A module of SciPy: `special`, `linalg.lapack`, `linalg.blas`."""
    return import_module(f"scipy.{name}")
