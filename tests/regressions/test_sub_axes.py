"""Pieces of one mesh axis whose cut points do not divide one another: halves here, thirds there."""

from __future__ import annotations

from typing import Any

import pytest

import gspmd
from tests.regressions.support import survives

_MESH = gspmd.Mesh({"x": 6})
_HALVES: tuple[tuple[Any, Any], ...] = (("x:(1)2", None), (None, "x:(1)2"), ("x:(1)2", "x:(2)3"))
_THIRDS: tuple[tuple[Any, Any], ...] = ((None, "x:(1)3"), ("x:(3)2", "x:(1)3"), (("x:(3)2", "x:(1)3"), None))


@pytest.mark.parametrize("halves", _HALVES)
@pytest.mark.parametrize("thirds", _THIRDS)
def test_from_halves_to_thirds_of_an_axis(halves: tuple[Any, Any], thirds: tuple[Any, Any]) -> None:
    """A plan may not use both at once."""

    def program(a: Any, b: Any) -> Any:
        v = gspmd.shard(a, _MESH, *halves)
        return gspmd.shard(v, _MESH, *thirds), v @ gspmd.shard(b, _MESH, *thirds).T

    survives(program, (6, 4), (6, 4))
