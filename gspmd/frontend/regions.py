"""Python functions as closed regions: traced with parameters of given types, their captures handed in at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gspmd.frontend.cleanup import live_nodes
from gspmd.frontend.numpy_core import lift
from gspmd.frontend.scope import Scope, current_scope, entered, trace_error
from gspmd.frontend.tracer import Tracer, is_scalar
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.ir.axes import Axes
from gspmd.ir.graph import Region, Value
from gspmd.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Draft:
    """A traced function: a scope with its parameters and captures, its results and their nesting.

    weak: of each result, whether it was a Python number, whose dtype does not count.
    """

    scope: Scope
    results: tuple[Value, ...]
    tree: TreeDef
    weak: tuple[bool, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the results."""
        return tuple(v.type.bare for v in self.results)

    def closed(self, captures: Sequence[Value], hand_on: bool = False) -> Region:
        """The region with captures (values of the scope around) as further parameters, and as results if handed on."""
        own = self.scope.captures
        inner = [own.get(v) or Value(v.type.bare, v.name) for v in captures]
        params = (*self.scope.builder.params, *inner)
        results = (*self.results, *inner) if hand_on else self.results
        return Region(params, live_nodes(self.scope.builder.nodes, results), results)


def captures_of(*drafts: Draft) -> list[Value]:
    """The values of the scope around that any of the functions uses."""
    return list(dict.fromkeys(v for draft in drafts for v in draft.scope.captures))


def draft(function: Callable[[list[Tracer]], Any], types: Sequence[TensorType], manual: Axes = ()) -> Draft:
    """Trace a function of tracers into a scope of its own, that of one device's code over `manual` axes."""
    outer = current_scope()
    scope = Scope(outer, outer.state, manual)
    with entered(scope):
        given = [Tracer(scope.builder.param(t.bare), scope) for t in types]
        leaves, tree = flatten(function(given))
        results = [lift_leaf(x) for x in leaves]
        values = tuple(scope.held(x.value, x.scope) for x in results)
    return Draft(scope, values, tree, tuple(is_scalar(x) for x in leaves))


def lift_leaf(x: Any) -> Tracer:
    """A leaf of arguments or results as a tracer; raises TraceError for what is no array."""
    if isinstance(x, (Tracer, np.ndarray, np.generic)) or is_scalar(x) or hasattr(x, "__array__"):
        return lift(cast("Any", x))
    raise trace_error(
        f"{type(x).__name__} {x!r} stands where an array is wanted",
        rule="trace.C7",
        fix="pass arrays, numbers and nestings of them; let the function see other things from outside",
    )


def lift_tree(tree: Any) -> tuple[list[Tracer], TreeDef]:
    """The leaves of a nesting as tracers, and its shape."""
    leaves, definition = flatten(tree)
    return [lift_leaf(x) for x in leaves], definition
