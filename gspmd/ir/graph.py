"""What a program is: frozen nodes in order, regions inside nodes, a signature around them.

Regions are closed: they see their own parameters and nothing from outside; whatever a loop or a branch needs is
passed in. Values and nodes are equal only to themselves; names and source locations are never part of identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType

if TYPE_CHECKING:
    from gspmd.ir.opdef import OpDef

STAGES = ("annotated", "propagated", "explicit", "collectives", "local", "optimized", "scheduled")
LOCAL_STAGES = frozenset(("local", "optimized", "scheduled"))


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One tensor; `name` is a hint for printing ("" prints a number)."""

    type: TensorType
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One application of an op. `loc` is the line of the user's program that asked for it."""

    op: OpDef[Any]
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attrs: Attrs
    regions: tuple[Region, ...] = ()
    loc: Location | None = None

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Parameters, nodes in execution order, and the values that it hands out."""

    params: tuple[Value, ...]
    nodes: tuple[Node, ...]
    results: tuple[Value, ...]

    def walk(self) -> Iterator[Node]:
        """Every node, those of inner regions after the node that holds them."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()

    def maker(self, value: Value) -> Node | None:
        """The node of this region whose result a value is; None for a parameter, or what an inner region makes."""
        return next((n for n in self.nodes if value in n.results), None)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A whole program at one stage.

    `inputs` and `outputs` are the *global* types, with the sharding under which arguments are handed in and results
    come out: up to `collectives` they are the types of the body's parameters and results; from `local` on the body's
    types are per device and these tell how whole arrays are cut and put together.
    """

    name: str
    body: Region
    mesh: Mesh | None
    stage: str
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]

    @staticmethod
    def of(name: str, body: Region, mesh: Mesh | None, stage: str = "annotated") -> Program:
        """A program at a stage with global types: the signature is read off the body."""
        return Program(name, body, mesh, stage, tuple(v.type for v in body.params), tuple(v.type for v in body.results))

    @property
    def is_local(self) -> bool:
        """Whether types are per device."""
        return self.stage in LOCAL_STAGES
