"""The user's lines as explanations write them."""

from __future__ import annotations

from gspmd.ir.graph import Node
from gspmd.ir.location import Location


def line_of(node: Node | None) -> str:
    """`mlp.py:12`; empty for no node, and for one whose line is not known."""
    return "" if node is None else at_line(node.loc, "")


def at_line(loc: Location | None, before: str = " at ") -> str:
    """` at mlp.py:12`, what stands before a known line with it; empty for one that is not known."""
    return "" if loc is None else f"{before}{loc.text()}"
