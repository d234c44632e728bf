"""Bytes as people write and read them: `1.5 MiB`, `64M`."""

from __future__ import annotations

import re

from gspmd.ir.errors import UsageError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_NAMES = ("B", "KiB", "MiB", "GiB", "TiB")


def parse_bytes(given: int | float | str, what: str = "a size") -> float:
    """A number of bytes from `4096`, `"64M"`, `"1.5G"`; K, M, G and T are powers of 1024. Raises UsageError."""
    if isinstance(given, str):
        found = _SIZE.fullmatch(given.strip())
        number = -1.0 if found is None else float(found[1]) * 1024.0 ** _POWERS[found[2].lower()]
    else:
        number = -1.0 if isinstance(given, bool) else float(given)
    if not 0 <= number < float("inf"):
        raise UsageError(f"{what} is a number of bytes, not {given!r}", fix="write 4096, 64M or 1.5G")
    return number


def bytes_text(number: float) -> str:
    """`1536 B`, `24.0 KiB`, `1.5 GiB`."""
    size, unit = abs(number), 0
    while size >= (10_000 if unit == 0 else 1000) and unit < len(_NAMES) - 1:
        size, unit = size / 1024, unit + 1
    sign = "-" if number < 0 else ""
    return f"{sign}{size:.0f} B" if unit == 0 else f"{sign}{size:.1f} {_NAMES[unit]}"


def change_text(before: float, after: float) -> str:
    """`24.0 KiB -> 6144 B (-18.0 KiB)`, or `24.0 KiB, as before`."""
    if before == after:
        return f"{bytes_text(after)}, as before"
    sign = "+" if after > before else ""
    return f"{bytes_text(before)} -> {bytes_text(after)} ({sign}{bytes_text(after - before)})"


def count_text(number: int, one: str, many: str = "") -> str:
    """`1 collective`, `2 collectives`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
