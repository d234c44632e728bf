"""One op, one record: everything that the compiler knows of an op, and the protocols that its hooks are given.

Passes read these records and never an op's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from gspmd.ir.attrs import Attrs, Window
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.manual import Crossing
from gspmd.ir.memo import memo_by_attrs
from gspmd.ir.mesh import Mesh
from gspmd.ir.rule import Rule
from gspmd.ir.types import TensorType

Array = NDArray[Any]
Shards = list[Array]
Types = tuple[TensorType, ...]
A = TypeVar("A", bound=Attrs)


class Trait(StrEnum):
    """What passes may ask of an op, each borne by two ops or more."""

    COLLECTIVE = "collective"  # devices exchange data; every device of a group must issue it, in the same order
    MOVES = "moves"  # each result element is an operand element or a fill: derived from the rule's accesses
    IDENTITY = "identity"  # the value passes unchanged: annotations, barriers
    LITERAL = "literal"  # no operands, the same on every device: constants
    RESHARD = "reshards"  # changes the sharding and not the value (global stages)


Combine = Callable[[list[Array]], Array]


class Transport(Protocol):
    """Moves shards between the devices of a mesh; one implementation holds all shards, another one rank's.

    `place` is the user's line that runs now, for messages about waits that do not end.
    """

    place: Location | None

    @property
    def mesh(self) -> Mesh: ...
    @property
    def indices(self) -> tuple[int, ...]: ...
    def all_gather(self, xs: Shards, axes: Axes, dim: int) -> Shards: ...
    def all_reduce(self, xs: Shards, axes: Axes, combine: Combine) -> Shards: ...
    def reduce_scatter(self, xs: Shards, axes: Axes, dim: int, combine: Combine) -> Shards: ...
    def all_to_all(self, xs: Shards, axes: Axes, split_dim: int, concat_dim: int) -> Shards: ...
    def permute(self, xs: Shards, axes: Axes, pairs: tuple[tuple[int, int], ...]) -> Shards: ...


class Machine(Protocol):
    """What runs a program: the graph walker, as control flow and collectives see it."""

    @property
    def transport(self) -> Transport: ...
    def run(self, region: Region, arguments: Sequence[Shards]) -> list[Shards]:
        """Run a region on every shard held here, in lockstep."""
        ...

    def across(self, mesh: Mesh) -> Machine:
        """A machine that runs regions in lockstep on a mesh that goes on, below its axes, from this one's.

        It holds a shard for every device of the mesh that lies below one whose shard is held here.
        """
        ...

    def among(self, places: Sequence[int]) -> Machine:
        """A machine of some of the shards held here, by their places in lists, for code that only they come to."""
        ...


class Localizer(Protocol):
    """The verbs of an op's own local body; operands and results are named by number.

    `axes_of` tells over which axes a factor is split (() when whole). Positions are global indices in the dimension.
    """

    @property
    def builder(self) -> Builder: ...
    @property
    def node(self) -> Node: ...
    @property
    def rule(self) -> Rule: ...
    def axes_of(self, factor: int) -> Axes: ...
    def index(self, axes: Axes) -> Value:
        """This device's index in its group over the axes, an i32 scalar."""
        ...

    def offset(self, factor: int) -> Value:
        """Where this device's chunk of a factor starts, an i32 scalar (constant 0 when the factor is whole)."""
        ...

    def chunk(self, factor: int) -> int:
        """Elements of a factor that every device holds (real or padding)."""
        ...

    def mask(self, value: Value, dim: int, factor: int, fill: Value) -> Value:
        """`value` with the scalar `fill` where `dim`, which carries the factor, lies outside the tensor."""
        ...

    def all_gather(self, value: Value, dim: int, axes: Axes) -> Value: ...
    def local_result(self, number: int = 0) -> TensorType:
        """The per-device type that a result must have."""
        ...


class Gradient(Protocol):
    """What a vector-Jacobian product is built with."""

    @property
    def builder(self) -> Builder: ...
    def zeros(self, type_: TensorType) -> Value: ...
    def region_vjp(self, region: Region, wanted: Sequence[bool]) -> Region:
        """A region (params, result cotangents) -> cotangents of the wanted params, the primals recomputed."""
        ...


class RowUpdates(Protocol):
    """Tables of rows, and rows of values that are combined, in their order, each with the table's row of its number."""

    @property
    def tables(self) -> Sequence[Array]: ...
    @property
    def rows(self) -> Array: ...
    @property
    def values(self) -> Sequence[Array]: ...
    def results(self) -> list[Array]:
        """The op's results, from the tables as they are now."""
        ...


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one execution of a collective costs: its groups' axes, and each device's bytes on the wire (ring model).

    `kind` is the collective's name among MPI's and StableHLO's kinds.
    """

    kind: str
    axes: Axes
    group_size: int
    wire_bytes: float


@dataclass(frozen=True, slots=True, eq=False)
class OpDef(Generic[A]):
    """The one record of an op.

    name: StableHLO's. attrs: the attribute dataclass. infer: the type rule, raises TypeRuleError with the constraint's
    number. rule: the factor rule (of bare types); None for ops whose tensors are tied by `flow` alone and for
    collectives. kernel: NumPy on one device's arrays, one array or a tuple (the meaning). execute: instead of a kernel
    where shards must meet (collectives) or regions run (control flow). fast: an expression template in Numba-Python
    over scalars, "{0} + {1}", or None ("{0}": elements are used as they are; what the rule reduces is combined; an op
    without operands is given the index along its position factor). localize: the local body that the rule cannot say.
    apart: the op as a chain of smaller ones, each of which needs fewer dimensions whole; None if it is one already.
    expand: on local types, the op in terms of others that do what it only says. inline: on local types, what its region
    says, as ops on arrays; None where only the region can say it. fold: of an op that combines, by a region from 2N
    scalars to N, its N last operands and then, in row-major order, the elements of each window of its N first ones: the
    window; None if there is no region. updates: of an op that combines, by its region if it has one, elements of its N
    first operands with those of its N last, one after the other: which with which. order: of an op that brings elements
    along a dimension into a stable order by a region (left0, right0, left1, ...) -> whether left comes first: the
    dimension; None where only keys need to be compared. flow: groups of values that are one value at different places
    (loop carries, branch results), found by their places alone. manual, crossings: of an op whose regions are per-
    device code, the axes in the user's hands, and the values at its border. group: the name of the group of values that
    its result is sharded with, and whether exactly alike. vjp: cotangents of the operands (None: no gradient flows).
    save: for control flow, re-emits the node so that vjp finds what it needs (residuals). traffic: for collectives,
    from the attributes and the bytes of one device's operand and result. trips: how often the regions run in one
    execution, None where that is not known.
    examples: IR lines, one application each, that cover every attribute off its default and every factor kind.
    """

    name: str
    attrs: type[A]
    infer: Callable[[Types, A, tuple[Region, ...]], Types]
    rule: Callable[[Types, Types, A], Rule] | None = None
    kernel: Callable[..., Array | tuple[Array, ...]] | None = None
    execute: Callable[[Machine, Node, Sequence[Shards]], Sequence[Shards]] | None = None
    fast: Callable[[Types, A], str | None] | None = None
    localize: Callable[[Localizer, Sequence[Value]], Sequence[Value]] | None = None
    apart: Callable[[Builder, Node, Sequence[Value]], Sequence[Value] | None] | None = None
    expand: Callable[[Builder, Sequence[Value], A], Sequence[Value]] | None = None
    inline: Callable[[Builder, Node, Sequence[Value]], Sequence[Value] | None] | None = None
    fold: Callable[[Types, A], Window | None] | None = None
    updates: Callable[[A, Sequence[Array]], RowUpdates] | None = None
    order: Callable[[Node], int | None] | None = None
    flow: Callable[[Node], tuple[tuple[Value, ...], ...]] | None = None
    manual: Callable[[A], Axes] | None = None
    crossings: Callable[[Node], tuple[Crossing, ...]] | None = None
    group: Callable[[A], tuple[str, bool]] | None = None
    vjp: Callable[[Gradient, Node, Sequence[Value | None]], Sequence[Value | None]] | None = None
    save: Callable[[Gradient, Node], tuple[Sequence[Value], Sequence[Value]]] | None = None
    traffic: Callable[[A, int, int], Traffic] | None = None
    trips: Callable[[A], int | None] | None = None
    traits: frozenset[Trait] = frozenset()
    examples: tuple[str, ...] = ()
    doc: str = field(default="", repr=False)

    def __repr__(self) -> str:
        return f"OpDef({self.name})"

    def __call__(
        self,
        builder: Builder,
        *operands: Value,
        regions: tuple[Region, ...] = (),
        loc: Location | None = None,
        name: str = "",
        **attrs: Any,
    ) -> Value:
        """Append the op to a program under construction; returns its only result."""
        (value,) = self.emit(builder, operands, self.attrs(**attrs), regions, loc, name)
        return value

    def emit(
        self,
        builder: Builder,
        operands: Sequence[Value],
        attrs: A,
        regions: tuple[Region, ...] = (),
        loc: Location | None = None,
        name: str = "",
    ) -> tuple[Value, ...]:
        """Append the op to a program under construction; returns all its results."""
        return builder.emit(self, tuple(operands), attrs, regions, loc, name)

    def has(self, trait: Trait) -> bool:
        """Whether the op bears a trait."""
        return trait in self.traits


@memo_by_attrs(maxsize=1 << 16)
def rule_of(op: OpDef[Any], operands: Types, results: Types, attrs: Attrs) -> Rule | None:
    """The factor rule of one application, by bare types; memoised."""
    return None if op.rule is None else op.rule(operands, results, attrs)


def sets_sharding(op: OpDef[Any], operands: Types, attrs: Attrs) -> bool:
    """Whether communication determines the result's sharding: a collective on a global type, not within manual axes."""
    return Trait.RESHARD in op.traits and any(t.sharding is not None for t in op.infer(operands, attrs, ()))


def node_rule(node: Node) -> Rule | None:
    """The factor rule of a node."""
    operands = tuple(v.type.bare for v in node.operands)
    return rule_of(node.op, operands, tuple(v.type.bare for v in node.results), node.attrs)


def annotates(node: Node) -> bool:
    """Whether a node says how its operand is to be sharded, and nothing else."""
    if not node.op.has(Trait.IDENTITY) or len(node.results) != 1:
        return False
    return node.op.infer(tuple(v.type.bare for v in node.operands), node.attrs, node.regions)[0].sharding is not None


def traffic(node: Node) -> Traffic | None:
    """What one execution of a node costs on the wire; None if it exchanges no data. Its types are one device's."""
    operands, results = (sum(v.type.nbytes for v in values) for values in (node.operands, node.results))
    return None if node.op.traffic is None else node.op.traffic(node.attrs, operands, results)


def manual_axes(node: Node) -> Axes:
    """The axes over which a node's regions are the user's own per-device code."""
    return () if node.op.manual is None else node.op.manual(node.attrs)


def trips(node: Node) -> int | None:
    """How often a node's regions run in one execution: once at most in what is no loop; None if that is not known."""
    return 1 if node.op.trips is None else node.op.trips(node.attrs)
