"""`trace`: run a Python function on tracers and keep what it did as a program."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.frontend.cleanup import finished
from gspmd.frontend.promotion import promote_scalar
from gspmd.frontend.regions import lift_leaf
from gspmd.frontend.scope import Scope, TraceState, entered, trace_error
from gspmd.frontend.tracer import Tracer, WeakTracer, is_scalar, python_type
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.errors import TraceError
from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.location import Location, user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType

_OUT = re.compile(r"(?:\w+\.)*(\w+)\(\) got an unexpected keyword argument 'out'.*")


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced program (stage `annotated`), the nesting of its positional arguments (a tuple) and of its result."""

    program: Program
    in_tree: TreeDef
    out_tree: TreeDef


def trace(function: Callable[..., Any], *arguments: Any, mesh: Mesh | None = None, **keywords: Any) -> Traced:
    """Trace a function of arrays; arguments are types (`TensorType`) or arrays, nested as the function takes them.

    Python numbers stay weak: what they meet keeps its dtype unless they are of a higher kind.
    Inputs are named after the function's parameters. The mesh is that of the annotations, or the one given; raises
    ShardingError if there are two, and TraceError, naming the line, for what a traced function cannot do.
    """
    names, given = _bound(function, arguments, keywords)
    leaves, in_tree = flatten(given)
    types = [type_of(x) for x in leaves]
    state = TraceState(mesh)
    for t in types:
        if t.sharding is not None:
            state.use_mesh(t.sharding.mesh, user_location())
    scope = Scope(None, state)
    paths = [p for name, tree in zip(names, in_tree.children, strict=True) for p in tree.paths(name)]
    inputs = [_input(scope.builder.param(t, p), scope, x) for t, p, x in zip(types, paths, leaves, strict=True)]
    with entered(scope):
        try:
            found, out_tree = flatten(function(*in_tree.unflatten(inputs)))
        except TypeError as error:
            told = _writing_in_place(error)
            if told is None:
                raise
            raise told from error
        results = [lift_leaf(x) for x in found]
        values = tuple(scope.held(x.value, x.scope) for x in results)
    body = finished(Region(tuple(scope.builder.params), tuple(scope.builder.nodes), values))
    return Traced(Program.of(_name_of(function), body, state.mesh), in_tree, out_tree)


def _writing_in_place(error: TypeError) -> TraceError | None:
    """What is said of a NumPy function that was told where to write; None for another error."""
    found = _OUT.fullmatch(str(error))
    if found is None or not hasattr(np, found[1]):
        return None
    told = trace_error(
        f"{found[1]} cannot write into an array: the arrays of a program never change",
        rule="trace.C11",
        fix=f"drop out= and use the result: y = gspmd.numpy.{found[1]}(...)",
    )
    frames = traceback.extract_tb(error.__traceback__)
    told.loc = Location(frames[-1].filename, frames[-1].lineno or 0)
    return told


def _input(value: Value, scope: Scope, leaf: Any) -> Tracer:
    return WeakTracer(value, scope, python_type(leaf)) if is_scalar(leaf) else Tracer(value, scope)


def type_of(leaf: Any) -> TensorType:
    """The type of an argument: a type itself, that of an array, or of a Python number its default."""
    if isinstance(leaf, TensorType):
        return leaf
    if is_scalar(leaf):
        return TensorType(promote_scalar(None, python_type(leaf)), ())
    if isinstance(leaf, Tracer):
        raise trace_error("a traced value cannot be an argument of trace", rule="trace.C8", fix="call the function")
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise trace_error(
            f"{type(leaf).__name__} {leaf!r} is no argument of a traced function",
            rule="trace.C7",
            fix="give TensorTypes, arrays or numbers; bind other things with functools.partial or a lambda",
        )
    try:
        dtype = as_dtype(leaf.dtype)
    except ValueError as error:
        raise trace_error(str(error), rule="trace.C6") from None
    sharding = getattr(leaf, "sharding", None)
    return TensorType(dtype, np.shape(leaf), sharding if isinstance(sharding, Sharding) else None)


def _bound(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: dict[str, Any]
) -> tuple[list[str], tuple[Any, ...]]:
    """The names of the parameters, and all arguments by position."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return [f"x{i}" for i in range(len(arguments))], tuple(arguments)
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise trace_error(f"{_name_of(function)}: {error}", rule="trace.C9") from None
    if bound.kwargs:
        raise trace_error(
            f"{_name_of(function)} takes {', '.join(bound.kwargs)} by name only",
            rule="trace.C9",
            fix="traced arguments have positions; bind the others with functools.partial",
        )
    names: list[str] = []
    for name, value in bound.arguments.items():
        many = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{name}[{i}]" for i in range(len(value))] if many else [name]
    return names, bound.args


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", "main")
    return name if name.isidentifier() else "main"
