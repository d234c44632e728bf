"""How the judge's programs are written down: a name, a function, the types of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gspmd
from tests.xla.case import Case

XY = gspmd.Mesh({"x": 2, "y": 4})
X4 = gspmd.Mesh({"x": 4})
XYZ = gspmd.Mesh({"x": 2, "y": 2, "z": 2})
ODD = gspmd.Mesh({"x": 2, "y": 3})


def case(
    name: str, function: Callable[..., Any], *inputs: str, mesh: gspmd.Mesh = XY, out: tuple[str, ...] = ()
) -> Case:
    """A program: its inputs as `f32[8@x, 4]`, the shardings of its results where they are annotated."""
    return Case(name, mesh, function, inputs, out)


def marked(x: Any, *entries: Any, mesh: gspmd.Mesh = XY) -> Any:
    """The value, annotated on the usual mesh."""
    return gspmd.shard(x, mesh, *entries)
