"""Ops of the user's own: `gspmd.custom_op`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gspmd.frontend.numpy_core import lift
from gspmd.frontend.scope import Scope, TraceState, entered
from gspmd.frontend.tracer import ArrayLike, Tracer, as_sequence, emit_all
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Value
from gspmd.ir.location import user_location
from gspmd.ir.opdef import Gradient
from gspmd.ir.types import TensorType
from gspmd.ops.custom import CUSTOM, Registered, Vjp, register
from gspmd.ops.rule_text import parse_rule
from gspmd.ops.rules import differentiable


def custom_op(
    function: Callable[..., Any],
    rule: str,
    dtypes: Any = None,
    vjp: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """An op from a function on NumPy arrays and the factor rule that says how it may be split.

    `rule` is like an einsum: `"bmk,kn->bmn | k: reduce add"` has a letter for each dimension; what tensors share is
    split alike. A factor passes (each index stands alone), reduces by a monoid (each device's result is then
    combined with the others'; `add` for all that is in no result, if nothing else is said), or is `whole` (never split:
    `| s: whole`). The function is called with one device's parts; `dtypes` are those of the results, by default that of
    the first argument. `vjp(*arguments, *cotangents)`, a traced function, gives the arguments' cotangents (None for
    those that have none). Raises TypeRuleError for a rule that cannot be read or does not fit the arguments.
    """
    loc = user_location()
    try:
        parsed = parse_rule(rule)
    except GspmdError as error:
        raise error.at(loc) from None
    label = name or getattr(function, "__name__", "custom").strip("<>")
    register(label, Registered(function, None if vjp is None else _pullback(vjp)))

    def op(*args: ArrayLike) -> Any:
        given = [lift(x) for x in args]
        here = user_location()
        try:
            shapes = parsed.result_shapes([x.shape for x in given])
        except GspmdError as error:
            raise error.at(here) from None
        wanted = as_sequence(dtypes) if isinstance(dtypes, (tuple, list)) else (dtypes,) * len(shapes)
        kinds = [given[0].dtype if d is None else as_dtype(d) for d in wanted]
        types = tuple(TensorType(d, s) for d, s in zip(kinds, shapes, strict=True))
        results = emit_all(CUSTOM, given, name=label, rule=rule, results=types)
        return results[0] if len(results) == 1 else tuple(results)

    return op


def _pullback(vjp: Callable[..., Any]) -> Vjp:
    """The user's pullback as the op's: traced into the gradient's own region."""

    def pull(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
        scope = Scope(None, TraceState())
        scope.builder = gradient.builder
        given = [
            gradient.zeros(y.type.bare) if ct is None else ct for y, ct in zip(node.results, cotangents, strict=True)
        ]
        with entered(scope):
            made = vjp(*(Tracer(v, scope) for v in (*node.operands, *given)))
            found = [None if s is None else lift(s).value for s in as_sequence(made)]
        return [s if differentiable(x.type) else None for s, x in zip(found, node.operands, strict=True)]

    return pull
