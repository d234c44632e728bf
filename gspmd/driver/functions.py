"""What a function that is to be compiled says about itself: the types it declares, the options it was jitted with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gspmd.driver.meshes import check_mesh
from gspmd.inspect.limits import Limits
from gspmd.ir.errors import UsageError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh

Function = Callable[..., Any]


class Configured:
    """A function together with the mesh, the donated arguments and the limits it is to be compiled with."""

    function: Function
    mesh: Mesh | None
    donate: tuple[int, ...]
    limits: Limits

    def __init__(self, function: Function, mesh: Mesh | None, donate: Sequence[int], limits: Limits) -> None:
        """Keep them; raises UsageError for what is no function and no mesh."""
        if not callable(function):
            raise UsageError(f"jit takes a function, not {type(function).__name__}", loc=user_location())
        check_mesh(mesh)
        inner = configuration(function)
        self.function = inner.function if inner else function
        self.mesh = mesh or (inner.mesh if inner else None)
        self.donate = tuple(donate) or (inner.donate if inner else ())
        self.limits = limits | inner.limits if inner else limits


def configuration(function: Any) -> Configured | None:
    """The options of a jitted function, None for any other."""
    return function if isinstance(function, Configured) else None


def program(*types: Any) -> Callable[[Function], Function]:
    """Declare the types of a function's arguments, so that it can be compiled by name (`gspmd run model.py:f`)."""

    def declare(function: Function) -> Function:
        function.__gspmd_types__ = types  # pyright: ignore[reportFunctionMemberAccess]
        return function

    return declare


def declared_types(function: Function) -> tuple[Any, ...] | None:
    """The types that `@gspmd.program` declared, none for a function that needs no arguments; None if not known."""
    declared: tuple[Any, ...] | None = getattr(function, "__gspmd_types__", None)
    return () if declared is None and _needs_none(function) else declared


def _needs_none(function: Function) -> bool:
    """Whether a function can be called without arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(p.default is not p.empty or p.kind in variable for p in parameters)
