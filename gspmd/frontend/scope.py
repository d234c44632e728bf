"""Where traced ops go: a stack of regions under construction, one for each function that is being traced.

Regions of the IR are closed, Python functions are not: a value of an outer function that an inner one uses becomes a
*capture*, a further parameter of the inner region, and whoever closes the region hands it in.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.device_groups import on_mesh
from gspmd.ir.errors import ShardingError, TraceError
from gspmd.ir.graph import Value
from gspmd.ir.location import Location, calling_library, user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding

# Those that compute on arrays of their own.
_LIBRARIES = frozenset(("jax", "numpy", "scipy", "sklearn", "torch"))


class TraceState:
    """What all regions of one trace share: the mesh of its annotations, where it was named first, groups so far."""

    __slots__ = ("groups", "mesh", "mesh_loc")

    def __init__(self, mesh: Mesh | None = None) -> None:
        self.groups = 0
        self.mesh = mesh
        self.mesh_loc: Location | None = None

    def use_mesh(self, mesh: Mesh, loc: Location | None) -> None:
        """Note the mesh of an annotation; raises ShardingError if the program has another one already."""
        if self.mesh is None:
            self.mesh, self.mesh_loc = mesh, loc
        elif self.mesh != mesh:
            first = f" (first used at {self.mesh_loc.text()})" if self.mesh_loc else ""
            raise ShardingError(
                f"a program has one mesh here: {self.mesh.text()}{first} and {mesh.text()} differ",
                rule="trace.C1",
                loc=loc,
                fix="use the same mesh",
            )

    def on_its_mesh(self, sharding: Sharding, loc: Location | None) -> Sharding:
        """An annotation on the program's mesh, which is that of the first; ShardingError if it cannot be said there."""
        if self.mesh is None:
            self.use_mesh(sharding.mesh, loc)
        assert self.mesh is not None
        try:
            return on_mesh(sharding, self.mesh)
        except ShardingError as error:
            first = f"; the program's mesh was named first at {self.mesh_loc.text()}" if self.mesh_loc else ""
            raise ShardingError(error.message + first, rule=error.rule, loc=loc, fix=error.fix) from None


class Scope:
    """One region under construction: its builder, the scope around it, and what it captures from there.

    `manual` are the mesh axes over which it is one device's code: those of the scope around, and its own.
    """

    __slots__ = ("builder", "captures", "manual", "parent", "state")

    def __init__(self, parent: Scope | None, state: TraceState, manual: Axes = ()) -> None:
        self.builder = Builder()
        self.parent = parent
        self.state = state
        self.manual: Axes = manual if parent is None else (*parent.manual, *manual)
        self.captures: dict[Value, Value] = {}

    def held(self, value: Value, home: Scope) -> Value:
        """A value that was made in the scope `home`, as this region sees it; captures it on the way in."""
        if home is self:
            return value
        if self.parent is None:
            raise TraceError(
                f"a traced value of type {value.type.bare.text()} is used outside the function that made it",
                rule="trace.C2",
                loc=user_location(),
                fix="return it from that function, or pass it along, instead of keeping it in a variable outside",
            )
        outer = self.parent.held(value, home)
        inner = self.captures.get(outer)
        if inner is None:
            inner = self.captures[outer] = Value(outer.type.bare, outer.name)
        return inner


_CURRENT: ContextVar[Scope | None] = ContextVar("gspmd_scope", default=None)


def current_scope() -> Scope:
    """The innermost region under construction; raises TraceError outside of traced functions."""
    scope = _CURRENT.get()
    if scope is None:
        raise TraceError(
            "gspmd.numpy works on traced values, and no function is being traced",
            rule="trace.C3",
            loc=user_location(),
            fix="call it inside a function given to gspmd.trace, gspmd.compile or gspmd.jit; use numpy elsewhere",
        )
    return scope


def is_tracing() -> bool:
    """Whether a function is being traced."""
    return _CURRENT.get() is not None


@contextmanager
def entered(scope: Scope) -> Generator[Scope]:
    """Make a scope the innermost one."""
    token = _CURRENT.set(scope)
    try:
        yield scope
    finally:
        _CURRENT.reset(token)


def trace_error(message: str, *, rule: str = "", fix: str = "") -> TraceError:
    """A TraceError at the user's line."""
    return TraceError(message, rule=rule, loc=user_location(), fix=fix)


def library_error(type_: str) -> TraceError | None:
    """The error, at the user's line, if another library asks for the numbers of a traced array; else None."""
    caller = calling_library(_LIBRARIES)
    if caller is None:
        return None
    library, loc = caller
    fix = "use the function of the same name in gspmd.numpy"
    return TraceError(
        f"{library} was given a traced array of type {type_}, whose values are only known when the program runs",
        rule="trace.C5",
        loc=loc,
        fix=f"{fix}, or bring a whole function of JAX in with gspmd.from_jax" if library == "jax" else fix,
    )
