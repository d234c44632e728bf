"""The jaxlib that answers, and which of the answers recorded for several of them stand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import TypeVar

T = TypeVar("T")


def jaxlib_version() -> str:
    """The version of jaxlib installed here; empty if there is none."""
    try:
        return metadata.version("jaxlib")
    except metadata.PackageNotFoundError:
        return ""


def standing(by_version: Mapping[str, T]) -> T | None:
    """What is recorded for the jaxlib installed here, else for the newest one; None where nothing is."""
    here = jaxlib_version()
    best = max(by_version, key=lambda v: (v == here, version_order(v)), default=None)
    return None if best is None else by_version[best]


def version_order(version: str) -> tuple[int, ...]:
    """The key that sorts versions, the oldest first."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())
