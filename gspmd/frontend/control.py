"""Control flow that depends on data: cond, switch, while_loop, fori_loop, scan.

Functions become closed regions of `case` and `while`. What they use from outside is passed in as further operands; a
loop hands it on from round to round untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gspmd.frontend.numpy_core import broadcast_to, cast_to, constant, dtype_of, full_of, shape_of
from gspmd.frontend.numpy_index import dynamic_slice, dynamic_update_slice
from gspmd.frontend.numpy_logic import truth
from gspmd.frontend.numpy_math import maximum, minimum
from gspmd.frontend.numpy_shape import reshape
from gspmd.frontend.regions import Draft, captures_of, draft, lift_leaf, lift_tree
from gspmd.frontend.scope import current_scope, trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit_all, is_scalar
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.ir.dtypes import DTYPES, is_integer
from gspmd.ir.types import TensorType
from gspmd.ops.control import CASE, WHILE

_I32 = DTYPES["i32"]


# -- branches --------------------------------------------------------------------------------------------------------


def cond(pred: ArrayLike, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """What true_fun gives for the operands if pred holds, else what false_fun gives; only one of them runs.

    Both must give the same nesting of the same types; raises TraceError, naming the leaf, if they do not.
    """
    test = truth(pred)
    _require_scalar(test, "the condition of cond")
    return _branches(test, (false_fun, true_fun), operands, ("false_fun", "true_fun"))


def switch(index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """What branches[index] gives for the operands; an index out of range is moved to the nearest branch."""
    if not branches:
        raise trace_error("switch needs a branch", rule="switch.C1", fix="give at least one function")
    number = lift_leaf(index)
    _require_scalar(number, "the index of switch")
    if not is_integer(number.dtype):
        raise trace_error(f"the index of switch is {number.type.bare.text()}, not an integer", rule="switch.C2")
    # The op picks the last branch for any index out of range, a negative one too.
    if number.dtype.itemsize >= 4 and number.dtype != _I32:
        number = minimum(number, len(branches) - 1)  # what does not fit into 32 bits would become another number
        number = maximum(number, 0)
    wide = cast_to(number, _I32)
    at_least_zero = wide if len(branches) == 1 else _not_negative(wide)
    return _branches(at_least_zero, branches, operands, [f"branch {i}" for i in range(len(branches))])


def _not_negative(x: Tracer) -> Tracer:
    return x * cast_to(x > 0, _I32)


def _require_scalar(x: Tracer, what: str) -> None:
    if x.shape:
        raise trace_error(
            f"{what} must be a scalar, got {x.type.bare.text()}",
            rule="cond.C1",
            fix="reduce it with gspmd.numpy.any or all, or choose element by element with where",
        )


def _branches(index: Tracer, functions: Sequence[Callable[..., Any]], operands: Any, names: Sequence[str]) -> Any:
    given, tree = lift_tree(operands)
    types = [x.type for x in given]
    drafts = [draft(_on_tree(f, tree), types) for f in functions]
    for other, name in zip(drafts[1:], names[1:], strict=True):
        _require_alike(drafts[0], names[0], other, name)
    captures = captures_of(*drafts)
    scope = current_scope()
    passed = [index, *given, *(Tracer(v, scope) for v in captures)]
    results = emit_all(CASE, passed, tuple(d.closed(captures) for d in drafts))
    return drafts[0].tree.unflatten(results)


def _on_tree(function: Callable[..., Any], tree: TreeDef) -> Callable[[list[Tracer]], Any]:
    return lambda leaves: function(*tree.unflatten(leaves))


def _require_alike(first: Draft, name: str, second: Draft, other: str) -> None:
    if first.tree != second.tree:
        raise trace_error(
            f"{name} gives {first.tree.text()}, but {other} gives {second.tree.text()}",
            rule="cond.C2",
            fix="let all branches return the same nesting",
        )
    for path, t, u in zip(first.tree.paths("result"), first.types, second.types, strict=True):
        if t != u:
            raise trace_error(
                f"the branches differ in {path}: {name} gives {t.text()}, {other} gives {u.text()}",
                rule="cond.C3",
                fix="convert or reshape the result of one branch",
            )


# -- loops -----------------------------------------------------------------------------------------------------------


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Carries `val` from round to round, `val = body_fun(val)`, as long as cond_fun(val) holds.

    No gradient flows back through it, since the number of rounds is not known; raises TraceError if body_fun gives
    another nesting or other types than init_val has.
    """
    return _loop(cond_fun, body_fun, init_val, None)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """`for i in range(lower, upper): val = body_fun(i, val)`; gradients need bounds that are Python numbers."""
    for bound, what in ((lower, "lower"), (upper, "upper")):
        given = TensorType(dtype_of(bound), shape_of(bound))
        if given.shape or not is_integer(given.dtype):
            raise trace_error(
                f"the {what} bound of fori_loop is {given.text()}, not an integer",
                rule="fori_loop.C1",
                fix="round it and convert it with .astype",
            )
    known = not isinstance(lower, Tracer) and not isinstance(upper, Tracer)
    count = max(0, int(upper) - int(lower)) if known else None
    last = cast_to(upper, _I32)

    def more(carry: tuple[Any, Any]) -> Any:
        return carry[0] < (cast_to(int(upper), _I32) if known else last)

    def step(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        i, val = carry
        return i + 1, body_fun(i, val)

    return _loop(more, step, (cast_to(lower, _I32), init_val), count, root="init_val", skip=1)[1]


def _loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init: Any,
    trip_count: int | None,
    root: str = "init_val",
    skip: int = 0,
) -> Any:
    leaves, tree = flatten(init)
    carries = [lift_leaf(x) for x in leaves]
    body = draft(lambda xs: body_fun(tree.unflatten(xs)), [x.type for x in carries])
    carries, body = _settled(leaves, carries, body, tree, body_fun)
    paths = [""] * skip + tree.children[1].paths(root) if skip else tree.paths(root)
    _require_carried([x.type.bare for x in carries], tree, body, paths)
    test = draft(lambda xs: _tested(cond_fun(tree.unflatten(xs))), [x.type for x in carries])
    captures = captures_of(test, body)
    scope = current_scope()
    passed = [*carries, *(Tracer(v, scope) for v in captures)]
    regions = (test.closed(captures), body.closed(captures, hand_on=True))
    results = emit_all(WHILE, passed, regions, trip_count=trip_count)
    return tree.unflatten(results[: len(carries)])


def _tested(test: Any) -> Tracer:
    found = truth(lift_leaf(test))
    _require_scalar(found, "the condition of a loop")
    return found


def _settled(
    leaves: Sequence[Any], carries: list[Tracer], body: Draft, tree: TreeDef, body_fun: Callable[[Any], Any]
) -> tuple[list[Tracer], Draft]:
    """Carries that start as Python numbers take the dtype that the body gives them; the body is traced again then."""
    if body.tree != tree:
        return carries, body
    again = _started(leaves, carries, body)
    if all(x is y for x, y in zip(again, carries, strict=True)):
        return carries, body
    return again, draft(lambda xs: body_fun(tree.unflatten(xs)), [x.type for x in again])


def _started(leaves: Sequence[Any], carries: Sequence[Tracer], body: Draft) -> list[Tracer]:
    """The carries; those that start as Python numbers in the dtypes of a body's first results, which they become."""
    return [
        cast_to(leaf, t.dtype) if is_scalar(leaf) and t.dtype != x.dtype and not t.shape and not weak else x
        for leaf, x, t, weak in zip(leaves, carries, body.types, body.weak, strict=False)
    ]


def _require_carried(types: Sequence[TensorType], tree: TreeDef, body: Draft, paths: Sequence[str]) -> None:
    if body.tree != tree:
        raise trace_error(
            f"the loop carries {tree.text()}, but its body gives {body.tree.text()}",
            rule="loop.C1",
            fix="let the body return the same nesting as it takes",
        )
    for path, before, after in zip(paths, types, body.types, strict=True):
        if before != after:
            raise trace_error(
                f"the loop carries {path} as {before.text()}, but its body gives {after.text()}",
                rule="loop.C2",
                fix="convert or reshape it, at the start or in the body, so that both have one type",
            )


# -- scan ------------------------------------------------------------------------------------------------------------


def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None) -> Any:
    """Carries along the first dimension of xs: `carry, y = f(carry, x)` for each x; returns the carry and stacked ys.

    xs is a nesting of arrays whose first dimensions agree (or None, with a length); gradients flow through it.
    """
    rows, row_tree = lift_tree(xs)
    count = _length(rows, length)
    row_types = [x.type.with_shape(x.shape[1:]) for x in rows]
    leaves, tree = flatten(init)
    carries = [lift_leaf(x) for x in leaves]
    first = draft(_pair(f, tree, row_tree), [*(x.type for x in carries), *row_types])
    if first.tree.container is not tuple or len(first.tree.children) != 2:
        raise trace_error(
            f"the function of scan gives {first.tree.text()}, but must give a pair (carry, y)",
            rule="scan.C1",
            fix="return carry, None if there is nothing to stack",
        )
    if first.tree.children[0] == tree:
        settled = _started(leaves, carries, first)
        if any(x is not y for x, y in zip(settled, carries, strict=True)):
            # The rows are stacked in the dtypes that the carry gives them, not those of the number it starts from.
            carries = settled
            init = tree.unflatten(carries)
            first = draft(_pair(f, tree, row_tree), [*(x.type for x in carries), *row_types])
    y_tree = first.tree.children[1]
    y_types = first.types[first.tree.children[0].size :]
    # Zeros to write the rows into, one stack for each y.
    stacks = [full_of(0, t.dtype, (count, *t.shape)) for t in y_types]
    if count == 0:
        return tree.unflatten(carries), y_tree.unflatten(stacks)

    def step(i: Tracer, state: tuple[Any, list[Tracer]]) -> tuple[Any, list[Tracer]]:
        carry, kept = state
        after, y = f(carry, row_tree.unflatten([_row(x, i) for x in rows]))
        found, _ = lift_tree(y)
        return after, [_with_row(stack, i, row) for stack, row in zip(kept, found, strict=True)]

    last, ys = fori_loop(0, count, step, (init, stacks))
    return last, y_tree.unflatten(ys)


def _pair(f: Callable[[Any, Any], Any], tree: TreeDef, row_tree: TreeDef) -> Callable[[list[Tracer]], Any]:
    n = tree.size
    return lambda xs: f(tree.unflatten(xs[:n]), row_tree.unflatten(xs[n:]))


def _length(rows: Sequence[Tracer], length: int | None) -> int:
    if any(not x.shape for x in rows):
        raise trace_error("scan goes along the first dimension, but an array of xs has none", rule="scan.C2")
    counts = {x.shape[0] for x in rows}
    if length is not None:
        if length < 0:
            raise trace_error(f"scan of {length} rounds", rule="scan.C3", fix="give a length of at least 0")
        counts.add(int(length))
    if len(counts) != 1:
        raise trace_error(
            f"scan cannot tell how many rounds: the arrays of xs and length say {sorted(counts)}",
            rule="scan.C3",
            fix="give arrays with one first dimension, or a length",
        )
    return counts.pop()


def _row(x: Tracer, i: Tracer) -> Tracer:
    starts = [i] + [constant(np.int32(0))] * (x.ndim - 1)
    return reshape(dynamic_slice(x, starts, (1, *x.shape[1:])), x.shape[1:])


def _with_row(stack: Tracer, i: Tracer, row: Tracer) -> Tracer:
    starts = [i] + [constant(np.int32(0))] * (stack.ndim - 1)
    block = reshape(broadcast_to(cast_to(row, stack.dtype), stack.shape[1:]), (1, *stack.shape[1:]))
    return dynamic_update_slice(stack, block, starts)


__all__ = ["cond", "fori_loop", "scan", "switch", "while_loop"]
