"""`@gspmd.jit`: a function that compiles itself for the types that it is called with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, overload

import numpy as np

from gspmd.array import Array
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.module import trace
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType


class Jitted:
    """A function that is traced and compiled at the first call with each new set of argument types."""

    def __init__(self, function: Callable[..., Any], mesh: Mesh | None) -> None:
        self.function = function
        self.mesh = mesh
        self._compiled: dict[tuple[TreeDef, tuple[TensorType, ...]], Compiled] = {}
        update_wrapper(self, function)

    def compiled_for(self, *arguments: Any) -> Compiled:
        """The compiled program for arguments like these."""
        leaves, tree = flatten(arguments)
        types = tuple(map(_type_of, leaves))
        found = self._compiled.get((tree, types))
        if found is None:
            module = trace(self.function, *tree.unflatten(types))
            found = self._compiled[tree, types] = compile(module, mesh=self.mesh)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """Compile if need be, and run."""
        return self.compiled_for(*arguments)(*arguments)


def _type_of(leaf: Any) -> TensorType:
    if isinstance(leaf, TensorType):
        return leaf.bare
    if isinstance(leaf, Array):
        return leaf.type.bare
    if isinstance(leaf, bool):
        return TensorType("bool", ())
    if isinstance(leaf, int):
        return TensorType("i32", ())
    if isinstance(leaf, float):
        return TensorType("f32", ())
    array = np.asarray(leaf)
    return TensorType(array.dtype, array.shape)


@overload
def jit(function: Callable[..., Any]) -> Jitted: ...
@overload
def jit(*, mesh: Mesh | None = None) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(function: Callable[..., Any] | None = None, *, mesh: Mesh | None = None) -> Any:
    """Decorate a function of tensors, with or without a mesh: `@gspmd.jit` or `@gspmd.jit(mesh=mesh)`."""
    if function is None:
        return partial(Jitted, mesh=mesh)
    return Jitted(function, mesh)
