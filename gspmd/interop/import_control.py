"""Loops, branches and calls.

What a region reads from around it becomes a carry or an operand. A loop that counts from a constant by a constant up to
a constant gets its trip count, on which gradients and costs rely. Calls are put in place of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.interop.import_scope import Bound, Scope, all_leaves, leaves
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Handler, Visit
from gspmd.interop.stablehlo_text import ATTRIBUTES, PREFIX
from gspmd.ir.attr_text import read_attrs
from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Region, Value
from gspmd.ir.lexer import Scanner
from gspmd.ops import OPS
from gspmd.ops.annotate import OPTIMIZATION_BARRIER
from gspmd.ops.control import CASE, WHILE, WhileAttrs
from gspmd.ops.elementwise import ADD, COMPARE

Literals = dict[Value, NDArray[Any]]


def _while(v: Visit) -> Sequence[Bound]:
    carries = v.flat
    scopes, results = _inside(v, list(v.op.regions))
    outers = _captures(scopes)
    cond = scopes[0].region(outers, results[0])
    body = scopes[1].region(outers, results[1], carried=True)
    operands = (*carries, *outers)
    count = trip_count(operands, cond, body, v.scope.literals)
    return v.nested(v.emit(WHILE, operands, WhileAttrs(count), (cond, body))[: len(carries)])


def _inside(v: Visit, regions: Sequence[Any]) -> tuple[list[Scope], list[tuple[Value, ...]]]:
    """The scopes of regions and what these return, tuples taken apart."""
    scopes: list[Scope] = []
    results: list[tuple[Value, ...]] = []
    for region in regions:
        scope = v.scope.inside()
        results.append(all_leaves(v.importer.block(scope, region.blocks[0])))
        scopes.append(scope)
    return scopes, results


def _captures(scopes: Sequence[Scope]) -> list[Value]:
    return list(dict.fromkeys(outer for scope in scopes for outer in scope.captures()))


def _case(v: Visit) -> Sequence[Bound]:
    (index,) = v.operands
    return _branches(v, index, list(v.op.regions))


def _if(v: Visit) -> Sequence[Bound]:
    """True runs the first region; our case runs branch 1 for True."""
    (pred,) = v.operands
    return _branches(v, pred, list(v.op.regions)[::-1])


def _branches(v: Visit, index: Value, mlir_regions: Sequence[Any]) -> Sequence[Bound]:
    scopes, results = _inside(v, mlir_regions)
    outers = _captures(scopes)
    regions = tuple(s.region(outers, r) for s, r in zip(scopes, results, strict=True))
    return v.nested(v.emit(CASE, (index, *outers), Attrs(), regions))


def _barrier(v: Visit) -> Sequence[Bound]:
    """Tokens need no fence."""
    return v.nested(v.emit(OPTIMIZATION_BARRIER, v.flat, Attrs()) if v.flat else ())


def _token(v: Visit) -> Sequence[Bound]:
    """Tokens order what is seen from outside, of which a program has nothing."""
    return [()]


def _call(v: Visit) -> Sequence[Bound]:
    return v.importer.call(v, v.value("callee"), v.bound)


def _composite(v: Visit) -> Sequence[Bound]:
    """A composite is what its decomposition computes, or the op of ours that it was exported from."""
    v.read.update(("name", "composite_attributes", "version"))
    decomposition: str = v.value("decomposition")
    name = str(v.value("name"))
    op = OPS.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if op is None:
        return v.importer.call(v, decomposition, v.bound)
    given = list(v.attribute("composite_attributes")) if v.has("composite_attributes") else []
    text = next((str(item.attr.value) for item in given if item.name == ATTRIBUTES), "")
    return v.emit(op, v.operands, read_attrs(Scanner(text, decomposition), op.attrs, None, op.name))


# -- trip counts -----------------------------------------------------------------------------------------------------


def trip_count(operands: Sequence[Value], cond: Region, body: Region, literals: Literals) -> int | None:
    """How often a loop runs, if a carry counts up from a constant by a constant while it is below a constant."""
    test = cond.maker(cond.results[0])
    if test is None or test.op is not COMPARE:
        return None
    direction: str = getattr(test.attrs, "direction", "")
    left, right = test.operands
    if direction in ("GT", "GE"):
        left, right, direction = right, left, {"GT": "LT", "GE": "LE"}[direction]
    if direction not in ("LT", "LE") or left not in cond.params:
        return None
    number = cond.params.index(left)
    start = literals.get(operands[number])
    limit = _constant(right, operands, cond, body, literals)
    step = _step(body, number, literals)
    if start is None or limit is None or step is None or not all(x.dtype.kind in "iu" for x in (start, limit)):
        return None
    last = int(limit) + (direction == "LE")
    if last > int(np.iinfo(limit.dtype).max) - step:
        return None  # the counter might wrap around
    return max(0, -(-(last - int(start)) // step))


def _constant(
    value: Value, operands: Sequence[Value], cond: Region, body: Region, literals: Literals
) -> NDArray[Any] | None:
    """What a value of the condition is: a constant, or a carry that never changes from one."""
    if value not in cond.params:
        return literals.get(value)
    i = cond.params.index(value)
    return literals.get(operands[i]) if body.results[i] is body.params[i] else None


def _step(body: Region, number: int, literals: Literals) -> int | None:
    counter, after = body.params[number], body.results[number]
    node = body.maker(after)
    if node is None or node.op is not ADD or counter not in node.operands:
        return None
    others = [x for x in node.operands if x is not counter]
    step = literals.get(others[0]) if len(others) == 1 else None
    return int(step) if step is not None and step.dtype.kind in "iu" and int(step) > 0 else None


# -- regions that are only there for shardings -----------------------------------------------------------------------


def named_computation(v: Visit) -> Sequence[Bound]:
    """sdy.named_computation: a function called in place."""
    name = v.value("name")
    scope = v.scope.called(f"{v.path}/{name}" if v.path else name)
    operands = v.importer.annotated(v, v.bound, "in_shardings")
    results = v.importer.block(scope, v.op.regions[0].blocks[0], operands)
    return v.importer.annotated(v, results, "out_shardings")


def check_flat(values: Sequence[Bound]) -> tuple[Value, ...]:
    """The values, none of which may be a tuple."""
    flat = tuple(x for b in values for x in leaves(b))
    if len(flat) != len(values):
        raise Unsupported("a tuple where tensors are wanted")
    return flat


HANDLERS: dict[str, Handler] = {
    "stablehlo.while": _while,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.create_token": _token,
    "stablehlo.after_all": _token,
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "func.call": _call,
    "stablehlo.composite": _composite,
    "sdy.named_computation": named_computation,
}
