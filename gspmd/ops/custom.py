"""custom: an op of the user's own, a function on one device's arrays and the factor rule that says how it may be split.

The function is found by its name in this process' register; a program that is printed and read elsewhere needs it to be
registered there too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.errors import ExecutionError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, OpDef, Types
from gspmd.ir.rule import Rule
from gspmd.ir.types import TensorType
from gspmd.ops.rule_text import parse_rule
from gspmd.ops.rules import require

Vjp = Callable[[Gradient, Node, Sequence[Value | None]], Sequence[Value | None]]


@dataclass(frozen=True, slots=True)
class Registered:
    """A user's function on arrays, and its pullback if it has one."""

    function: Callable[..., Any]
    vjp: Vjp | None = None


_REGISTER: dict[str, Registered] = {}


def register(name: str, entry: Registered) -> None:
    """Make a function known by a name; a later one of the same name takes its place."""
    _REGISTER[name] = entry


@dataclass(frozen=True, slots=True)
class CustomAttrs(Attrs):
    """The function's name, its rule as text, and the types of its results."""

    name: str
    rule: str
    results: tuple[TensorType, ...]


def _infer(types: Types, attrs: CustomAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: results have the shapes that the rule gives them."""
    shapes = parse_rule(attrs.rule).result_shapes([t.shape for t in types])
    given = [t.shape for t in attrs.results]
    require(shapes == given, "custom.C1", f"the rule gives results of shapes {shapes}, the attributes say {given}")
    return tuple(t.bare for t in attrs.results)


def _rule(operands: Types, results: Types, attrs: CustomAttrs) -> Rule:
    return parse_rule(attrs.rule).rule([t.shape for t in operands])


def _kernel(attrs: CustomAttrs, *arrays: Array) -> Array | tuple[Array, ...]:
    made: Any = _registered(attrs.name).function(*arrays)
    found = [np.asarray(x) for x in (cast("Sequence[Any]", made) if isinstance(made, (tuple, list)) else [made])]
    wanted = [(t.dtype, t.shape) for t in attrs.results]
    if [(x.dtype, x.shape) for x in found] != wanted:
        said = ", ".join(f"{x.dtype}{list(x.shape)}" for x in found)
        raise ExecutionError(
            f"the custom op {attrs.name} gave {said}, by its rule {', '.join(t.text() for t in attrs.results)}",
            rule="custom.C2",
            fix="return arrays whose sizes follow those of the operands given, which are one device's parts",
        )
    return found[0] if len(found) == 1 else tuple(found)


def _registered(name: str) -> Registered:
    found = _REGISTER.get(name)
    if found is None:
        raise ExecutionError(
            f"the custom op {name} is not known in this process",
            rule="custom.C3",
            fix="import the module that defines it (gspmd.custom_op) before the program runs",
        )
    return found


def _localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """The same function on one device's arrays."""
    attrs = ctx.node.attrs
    assert isinstance(attrs, CustomAttrs)
    local = tuple(ctx.local_result(i) for i in range(len(attrs.results)))
    return CUSTOM.emit(ctx.builder, operands, replace(attrs, results=local))


def _vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    attrs = node.attrs
    assert isinstance(attrs, CustomAttrs)
    if all(ct is None for ct in cotangents):
        return [None] * len(node.operands)
    pullback = _registered(attrs.name).vjp
    require(pullback is not None, "custom.D1", f"the custom op {attrs.name} has no gradient", "give custom_op a vjp")
    assert pullback is not None
    return pullback(gradient, node, cotangents)


CUSTOM: OpDef[CustomAttrs] = OpDef(
    "custom",
    CustomAttrs,
    _infer,
    rule=_rule,
    kernel=_kernel,
    localize=_localize,
    vjp=_vjp,
    examples=(
        'custom(f32[5, 6], f32[6, 7]) name=matmul rule="ik,kj->ij | k: reduce add" results=[f32[5, 7]]',
        'custom(i32[8, 5]) name=sort_rows rule="is->is | s: whole" results=[i32[8, 5]]',
    ),
    doc="A user's function on one device's arrays, split as its factor rule allows.",
)

FAMILY: tuple[OpDef[Any], ...] = (CUSTOM,)
