"""Which value of ours stands for which value of MLIR, region by region.

MLIR's loops and branches read the values around them; our regions are closed. A scope that looks up a value from
outside makes a parameter for it and remembers the value as captured, to be passed in; scalar constants are written
again inside. Tuples are taken apart at once, and a token, which holds nothing, is the empty tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from gspmd.interop.import_types import Nested, Unsupported
from gspmd.ir.attrs import Dense
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.types import TensorType
from gspmd.ops.literal import CONSTANT

Bound = Value | tuple["Bound", ...]


class Poisoned(Exception):
    """A value depends on something that could not be imported: said already, and not worth saying again."""


class Scope:
    """One region (or one inlined function) under construction.

    `isolated` regions (those of reductions and sorts) take nothing from outside but scalars. `path` is the scope that
    value names are put under: that of the calls which led here.
    """

    def __init__(self, builder: Builder, literals: dict[Value, NDArray[Any]], path: str = "") -> None:
        self.builder = builder
        self.literals = literals
        self.path = path
        self.parent: Scope | None = None
        self.isolated = False
        self.captured: dict[Value, Value] = {}
        self._bound: dict[Any, Bound | None] = {}

    def inside(self, isolated: bool = False) -> Scope:
        """The scope of a region of an op that stands in this one."""
        scope = Scope(Builder(self.builder.loc), self.literals, self.path)
        scope.parent, scope.isolated = self, isolated
        return scope

    def called(self, path: str) -> Scope:
        """The scope of a function whose body is put here, in place of a call."""
        return Scope(self.builder, self.literals, path)

    def bind(self, key: Any, value: Bound | None) -> None:
        """Let a value of MLIR be one of ours; None poisons it."""
        self._bound[key] = value

    def find(self, key: Any) -> Bound:
        """What stands for a value of MLIR; raises Poisoned if nothing can."""
        found = self._bound.get(key)
        if found is None:
            if key in self._bound or self.parent is None:
                raise Poisoned
            found = self._bound[key] = self._from_outside(self.parent.find(key))
        return found

    def _from_outside(self, outer: Bound) -> Bound:
        if isinstance(outer, tuple):
            return tuple(self._from_outside(x) for x in outer)
        if outer in self.captured:
            return self.captured[outer]
        literal = self.literals.get(outer)
        if literal is not None:
            value = CONSTANT(self.builder, value=Dense(literal))
            self.literals[value] = literal
        elif self.isolated and outer.type.rank:
            raise Unsupported(f"a region on scalars uses a value from outside it, {outer.type.bare.text()}")
        else:
            value = Value(outer.type.bare, outer.name)
        self.captured[outer] = value
        return value

    def captures(self) -> list[Value]:
        """The values from outside that have to be passed in, constants left out."""
        return [outer for outer, inner in self.captured.items() if inner not in self.literals]

    def inner(self, outers: Sequence[Value]) -> list[Value]:
        """What stands here for values from outside."""
        return [self.captured.get(o) or Value(o.type.bare, o.name) for o in outers]

    def region(self, outers: Sequence[Value], results: Sequence[Value], carried: bool = False) -> Region:
        """The closed region: its own parameters and one for each of `outers`, which it hands on if `carried`."""
        passed = self.inner(outers)
        return self.closed((*self.builder.params, *passed), (*results, *passed) if carried else results)

    def closed(self, params: Sequence[Value], results: Sequence[Value]) -> Region:
        """The region of the nodes here, with parameters and results of any order."""
        return Region(tuple(params), _without_idle_constants(self.builder.nodes, results), tuple(results))


def _without_idle_constants(nodes: Sequence[Node], results: Sequence[Value]) -> tuple[Node, ...]:
    """The nodes but for constants that nobody reads: inits that became implicit, copies that went into regions."""
    used = {v for node in nodes for v in node.operands} | set(results)
    return tuple(n for n in nodes if n.op is not CONSTANT or n.results[0] in used)


def one(bound: Bound) -> Value:
    """A value that is no tuple."""
    if isinstance(bound, tuple):
        raise Unsupported("a tuple is used where a tensor is wanted")
    return bound


def leaves(bound: Bound) -> tuple[Value, ...]:
    """All tensors of a value or nested tuple, in order."""
    return tuple(v for x in bound for v in leaves(x)) if isinstance(bound, tuple) else (bound,)


def all_leaves(bounds: Iterable[Bound]) -> tuple[Value, ...]:
    """All tensors of some values or nested tuples, in order."""
    return tuple(v for x in bounds for v in leaves(x))


def nest(type_: Nested, values: Iterator[Value]) -> Bound:
    """The next tensors as a value or nested tuple of a type."""
    return next(values) if isinstance(type_, TensorType) else tuple(nest(t, values) for t in type_)
