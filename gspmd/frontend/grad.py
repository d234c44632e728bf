"""`grad` and `value_and_grad`: functions that trace another one and differentiate what was traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from gspmd.frontend.numpy_core import as_weak_as, scalar
from gspmd.frontend.pullback import Pullback
from gspmd.frontend.regions import Draft, captures_of, draft, lift_leaf
from gspmd.frontend.scope import current_scope, is_tracing, trace_error
from gspmd.frontend.tracer import Tracer
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.ir.dtypes import is_float
from gspmd.ops.rules import differentiable

Function = Callable[..., Any]


def grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function with a scalar float result, for the arguments of these numbers.

    It has the nesting of the argument (for several argnums a tuple of such). With has_aux the function gives a pair,
    (result, more), and its gradient (gradient, more). Raises TraceError for results that are no scalars and arguments
    that are no floats.
    """
    both = value_and_grad(f, argnums, has_aux)

    @wraps(f)
    def gradient(*args: Any, **keywords: Any) -> Any:
        value, slopes = both(*args, **keywords)
        return (slopes, value[1]) if has_aux else slopes

    return gradient


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that gives both the result of f and its gradient (see `grad`)."""

    @wraps(f)
    def both(*args: Any, **keywords: Any) -> tuple[Any, Any]:
        if not is_tracing():
            raise trace_error(
                "gspmd.grad and gspmd.value_and_grad differentiate traced code, and no function is being traced",
                rule="grad.C5",
                fix="give the gradient to gspmd.jit: gspmd.jit(gspmd.grad(f))(x)",
            )
        single = isinstance(argnums, (int, np.integer))
        numbers = [_position(n, len(args)) for n in ((argnums,) if isinstance(argnums, (int, np.integer)) else argnums)]
        if len(set(numbers)) != len(numbers):
            raise trace_error(f"argnums {argnums} name an argument twice", rule="grad.C1", fix="name each one once")
        trees = [flatten(args[n]) for n in numbers]
        passed = [x for found, _ in trees for x in found]
        leaves = [lift_leaf(x) for x in passed]
        _require_floats(leaves, numbers, trees)

        def traced(given: list[Tracer]) -> Any:
            # What is a number outside is as weak as one inside, and so is its gradient.
            rest, replaced = map(as_weak_as, given, passed), list(args)
            for n, (found, tree) in zip(numbers, trees, strict=True):
                replaced[n] = tree.unflatten([next(rest) for _ in found])
            return f(*replaced, **keywords)

        made = draft(traced, [x.type for x in leaves])
        _require_result(made, has_aux)
        results, slopes = _differentiate(made, leaves)
        value = made.tree.unflatten(results)
        rest = map(as_weak_as, slopes, passed)
        nested = [tree.unflatten([next(rest) for _ in found]) for found, tree in trees]
        return value, nested[0] if single else tuple(nested)

    return both


def _differentiate(made: Draft, leaves: Sequence[Tracer]) -> tuple[list[Tracer], list[Tracer]]:
    """Append the traced function and its pullback to the current region: its results, and the leaves' cotangents."""
    scope = current_scope()
    captures = captures_of(made)
    region = made.closed(captures)
    held = [scope.held(x.value, x.scope) for x in leaves]
    pullback = Pullback(scope.builder, region)
    # What the function sees from outside is held constant, even where it is one of the arguments.
    wanted = [True] * len(held) + [False] * len(captures)
    results = pullback.forward([*held, *captures], wanted)
    one = scalar(1.0, results[0].type.dtype)
    pullback.backward([one.value] + [None] * (len(results) - 1))
    slopes = pullback.pulled(wanted)
    return [Tracer(v, scope) for v in results], [Tracer(v, scope) for v in slopes]


def _position(n: int, count: int) -> int:
    if not -count <= n < count:
        raise trace_error(
            f"argnums {n}, but the function is called with {count} positional arguments",
            rule="grad.C1",
            fix="pass what is to be differentiated by position",
        )
    return int(n) % count


def _require_floats(leaves: Sequence[Tracer], numbers: Sequence[int], trees: Sequence[tuple[Any, TreeDef]]) -> None:
    paths = [p for n, (_, tree) in zip(numbers, trees, strict=True) for p in tree.paths(f"argument {n}")]
    for path, x in zip(paths, leaves, strict=True):
        if not differentiable(x.type):
            raise trace_error(
                f"the gradient for {path} of type {x.type.bare.text()}: only floats have derivatives",
                rule="grad.C2",
                fix="convert it with .astype first, or leave it out of argnums",
            )


def _require_result(made: Draft, has_aux: bool) -> None:
    tree = made.tree
    if has_aux:
        if tree.container is not tuple or len(tree.children) != 2:
            raise trace_error(
                f"has_aux wants a pair (result, more), but the function gives {tree.text()}", rule="grad.C3"
            )
        tree = tree.children[0]
    if tree.container is not None:
        raise trace_error(
            f"the function gives {tree.text()}, but only a single scalar has a gradient",
            rule="grad.C3",
            fix="return one scalar, and the rest as a second result with has_aux=True",
        )
    result = made.types[0]
    if result.shape or not is_float(result.dtype):
        raise trace_error(
            f"the function gives {result.text()}, but only a float scalar has a gradient",
            rule="grad.C4",
            fix="sum or average the result",
        )
