"""`@gspmd.jit`: a function that compiles itself for the types that it is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import Any, overload

from gspmd.driver.arguments import argument_type
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.functions import Configured
from gspmd.driver.meshes import check_mesh
from gspmd.driver.module import trace
from gspmd.frontend.config import x64_enabled
from gspmd.frontend.scope import is_tracing, trace_error
from gspmd.frontend.trace import type_of
from gspmd.frontend.tracer import weak_kind
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.inspect.limits import Limits, limits_of
from gspmd.ir.errors import UsageError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class _Key:
    """What one program is compiled for: the nesting and the types of the arguments, and the option that tracing reads.

    `named` are the arguments, the last ones, that go to the function by name; `numbers` the types of those that are
    Python numbers, whose dtypes are weak.
    """

    named: tuple[str, ...]
    tree: TreeDef
    types: tuple[TensorType, ...]
    numbers: tuple[type | None, ...]
    x64: bool

    def arguments(self) -> Any:
        """What stands for the arguments when the function is traced."""
        return self.tree.unflatten([t if n is None else n() for t, n in zip(self.types, self.numbers, strict=True)])


class Jitted(Configured):
    """A function that is traced and compiled at the first call with each new set of argument types.

    The mesh is that of its annotations, or the one given. In a function without annotations arguments that live on a
    mesh keep their shardings, as if these were annotated. Within another traced function it is an ordinary function.
    """

    def __init__(self, function: Callable[..., Any], mesh: Mesh | None, donate: Sequence[int], limits: Limits) -> None:
        update_wrapper(self, function)  # first: of a jitted function it copies all that follows
        super().__init__(function, mesh, donate, limits)
        self._compiled: dict[_Key, Compiled] = {}
        self._unannotated: set[_Key] = set()

    def __repr__(self) -> str:
        on = "" if self.mesh is None else f" on {self.mesh.text()}"
        return f"Jitted({_name(self.function)}{on})"

    def compiled_for(self, *arguments: Any, **keywords: Any) -> Compiled:
        """The compiled program for arguments (or types) like these; those that a call must name come last in it."""
        return self._compiled_for(*self._ordered(arguments, keywords))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Compile if need be, and run."""
        if is_tracing():
            return self.function(*arguments, **keywords)
        ordered, named = self._ordered(arguments, keywords)
        return self._compiled_for(ordered, named)(*ordered)

    def _ordered(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """All arguments in order, and the names of the last ones, if these cannot be given by position.

        Such are keyword-only arguments, and those behind a parameter that is left at its default.
        """
        if not keywords:
            return arguments, ()
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return (*arguments, *keywords.values()), tuple(keywords)
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise trace_error(f"{_name(self.function)}: {error}", rule="trace.C9") from None
        return (*bound.args, *bound.kwargs.values()), tuple(bound.kwargs)

    def _compiled_for(self, arguments: tuple[Any, ...], named: tuple[str, ...]) -> Compiled:
        leaves, tree = flatten(arguments)
        types = tuple(_placed(type_of(argument_type(x))) for x in leaves)
        bare = _Key(named, tree, tuple(t.bare for t in types), tuple(map(weak_kind, leaves)), x64_enabled())
        key = replace(bare, types=types) if bare in self._unannotated else bare
        found = self._compiled.get(key)
        if found is not None:
            return found
        module = trace(_by_position(self.function, len(arguments), named), *key.arguments())
        if module.mesh is None:
            self._unannotated.add(bare)
            if types != key.types:
                return self._compiled_for(arguments, named)
        donate = self._donated(len(arguments) - len(named), named)
        found = compile(module, mesh=self.mesh, donate=donate)
        found.check_limits(self.limits)
        self._compiled[key] = found
        return found

    def _donated(self, count: int, named: tuple[str, ...]) -> list[int]:
        """Where donated parameters are among the arguments, `count` of which go by position; defaults are nowhere."""
        if not named:
            return list(self.donate)
        names = list(inspect.signature(self.function).parameters) if self.donate else []
        later = [names[i] for i in self.donate if count <= i < len(names)]
        return [
            *(i for i in self.donate if i < count or i >= len(names)),
            *(count + named.index(n) for n in later if n in named),
        ]


def _by_position(function: Callable[..., Any], count: int, named: tuple[str, ...]) -> Callable[..., Any]:
    """The function with `count` arguments, all by position, the last of which it gets by these names."""
    if not named:
        return function
    first = count - len(named)

    def call(*arguments: Any) -> Any:
        return function(*arguments[:first], **dict(zip(named, arguments[first:], strict=True)))

    update_wrapper(call, function)
    call.__signature__ = _positional_signature(function, first, named)  # pyright: ignore[reportFunctionMemberAccess]
    return call


def _positional_signature(function: Callable[..., Any], first: int, named: tuple[str, ...]) -> inspect.Signature:
    """Names for messages and inputs: the function's own, as far as each of its parameters takes one argument."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[:first]
    except (TypeError, ValueError):
        parameters = []
    plain = len(parameters) == first and all(p.kind is not p.VAR_POSITIONAL for p in parameters)
    names = [p.name for p in parameters] if plain else [f"x{i}" for i in range(first)]
    kind = inspect.Parameter.POSITIONAL_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in (*names, *named)])


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "the function")


def _unknown_option(name: str) -> UsageError:
    """The error for an option that jit does not have; other libraries have some for arguments that are not traced."""
    fix = "the options are mesh, donate, forbid, max_wire_bytes, max_memory"
    if name.startswith("static"):
        fix = "fix the argument before: gspmd.jit(functools.partial(f, n=3)); one left at its default is fixed too"
    return UsageError(f"jit has no option {name}", loc=user_location(), fix=fix)


def _placed(type_: TensorType) -> TensorType:
    """The type with its sharding, unless it lives on the one device that is there without any mesh."""
    return type_ if type_.sharding is None or type_.sharding.mesh.axes else type_.bare


@overload
def jit(function: Callable[..., Any]) -> Jitted: ...
@overload
def jit(
    *,
    mesh: Mesh | None = None,
    donate: Sequence[int] = (),
    forbid: Sequence[str] | str = (),
    max_wire_bytes: float | str | None = None,
    max_memory: float | str | None = None,
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    mesh: Mesh | None = None,
    donate: Sequence[int] = (),
    forbid: Sequence[str] | str = (),
    max_wire_bytes: float | str | None = None,
    max_memory: float | str | None = None,
    **unknown: Any,
) -> Any:
    """Decorate a function of tensors, with or without options: `@gspmd.jit` or `@gspmd.jit(mesh=mesh, donate=[0])`.

    The options are those of `gspmd.compile`. All arguments are traced, those given by name too; a parameter
    that is left at its default has the default's own value. Raises UsageError for what is no function and no mesh.
    """
    if unknown:
        raise _unknown_option(next(iter(unknown)))
    check_mesh(mesh)
    limits = limits_of(forbid, max_wire_bytes, max_memory)
    if function is None:
        return partial(Jitted, mesh=mesh, donate=donate, limits=limits)
    return Jitted(function, mesh, donate, limits)
