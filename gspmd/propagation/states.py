"""Shardings as small integers: what a tensor of one shape may be at some moment of propagation.

The shape is part of a state, because whether one split refines another depends on it when shards are ragged.
"""

from __future__ import annotations

from dataclasses import dataclass

from gspmd.ir.axes import parts
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding

CLASH = -1  # the result of merging two states that no state refines


@dataclass(frozen=True, slots=True)
class State:
    """A sharding on a shape; `order` sorts states by most axes, then most parts, then text."""

    shape: tuple[int, ...]
    sharding: Sharding
    order: tuple[int, int, str]


class States:
    """All states met on one mesh, numbered, and the memo of their merges."""

    __slots__ = ("_blank", "_merged", "_numbers", "items", "mesh")

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.items: list[State] = []
        self._numbers: dict[tuple[tuple[int, ...], Sharding], int] = {}
        self._blank: dict[tuple[int, ...], int] = {}
        self._merged: dict[tuple[int, int], int] = {}

    def blank(self, shape: tuple[int, ...]) -> int:
        """The state of a tensor of which nothing is known: not split, all dimensions open."""
        number = self._blank.get(shape)
        if number is None:
            number = self._blank[shape] = self.number(shape, Sharding.replicate(self.mesh, len(shape), open=True))
        return number

    def number(self, shape: tuple[int, ...], sharding: Sharding) -> int:
        """The number of a state."""
        key = (shape, sharding)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.items)
            order = (-len(sharding.used), -parts(sharding.used), sharding.text())
            self.items.append(State(shape, sharding, order))
        return number

    def merge(self, a: int, b: int) -> int:
        """The number of the least state that refines both, or CLASH."""
        if a == b:
            return a
        key = (a, b)
        number = self._merged.get(key)
        if number is None:
            shape = self.items[a].shape
            both = self.items[a].sharding.merge(self.items[b].sharding, shape)
            number = self._merged[key] = CLASH if both is None else self.number(shape, both)
        return number
