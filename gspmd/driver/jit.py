"""`@gspmd.jit`: a function that compiles itself for the types that it is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, overload

from gspmd.driver.arguments import argument_type
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.module import trace
from gspmd.frontend.scope import is_tracing
from gspmd.frontend.trace import type_of
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType

_Key = tuple[TreeDef, tuple[TensorType, ...]]


class Jitted:
    """A function that is traced and compiled at the first call with each new set of argument types.

    The mesh is that of its annotations, or the one given. In a function without annotations arguments that live on a
    mesh keep their shardings, as if these were annotated. Within another traced function it is an ordinary function.
    """

    def __init__(self, function: Callable[..., Any], mesh: Mesh | None, donate: Sequence[int]) -> None:
        self.function = function
        self.mesh = mesh
        self.donate = donate
        self._compiled: dict[_Key, Compiled] = {}
        self._unannotated: set[_Key] = set()
        update_wrapper(self, function)

    def compiled_for(self, *arguments: Any, **keywords: Any) -> Compiled:
        """The compiled program for arguments (or types) like these."""
        return self._compiled_for(self._positional(arguments, keywords))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Compile if need be, and run."""
        if is_tracing():
            return self.function(*arguments, **keywords)
        positional = self._positional(arguments, keywords)
        return self._compiled_for(positional)(*positional)

    def _positional(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        if not keywords:
            return arguments
        bound = inspect.signature(self.function).bind(*arguments, **keywords)
        return bound.args if not bound.kwargs else arguments

    def _compiled_for(self, arguments: tuple[Any, ...]) -> Compiled:
        leaves, tree = flatten(arguments)
        types = tuple(_placed(type_of(argument_type(x))) for x in leaves)
        bare = (tree, tuple(t.bare for t in types))
        key = (tree, types) if bare in self._unannotated else bare
        found = self._compiled.get(key)
        if found is not None:
            return found
        module = trace(self.function, *tree.unflatten(key[1]))
        if module.mesh is None:
            self._unannotated.add(bare)
            if types != key[1]:
                return self._compiled_for(arguments)
        found = self._compiled[key] = compile(module, mesh=self.mesh, donate=self.donate)
        return found


def _placed(type_: TensorType) -> TensorType:
    """The type with its sharding, unless it lives on the one device that is there without any mesh."""
    return type_ if type_.sharding is None or type_.sharding.mesh.axes else type_.bare


@overload
def jit(function: Callable[..., Any]) -> Jitted: ...
@overload
def jit(*, mesh: Mesh | None = None, donate: Sequence[int] = ()) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(function: Callable[..., Any] | None = None, *, mesh: Mesh | None = None, donate: Sequence[int] = ()) -> Any:
    """Decorate a function of tensors, with or without options: `@gspmd.jit` or `@gspmd.jit(mesh=mesh, donate=[0])`.

    `mesh` and `donate` are those of `gspmd.compile`.
    """
    if function is None:
        return partial(Jitted, mesh=mesh, donate=donate)
    return Jitted(function, mesh, donate)
