"""How an element-wise op's record is made: type rule, factor rule, gradient and fast form from a few facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DType, dtype_kind, dtype_name
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.rule import Rule, elementwise_rule
from gspmd.ir.types import TensorType
from gspmd.ops.elementwise import expression
from gspmd.ops.rules import COMPILED_DTYPES, differentiable, require_count, require_equal, require_kind, scalar_type

if TYPE_CHECKING:
    from gspmd.ops.elementwise.expression import Expression as E

Groups = tuple[tuple[int, ...], ...]
# From the cotangent, the operands and the result to the operands' cotangents.
Unary = Callable[["E", "E", "E"], Sequence["E | None"]]
Binary = Callable[["E", "E", "E", "E"], Sequence["E | None"]]
Ternary = Callable[["E", "E", "E", "E", "E"], Sequence["E | None"]]
Derivative = Unary | Binary | Ternary

_LETTERS = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}


def pointwise_op(
    name: str,
    arity: int,
    kinds: str,
    kernel: Callable[..., Array],
    doc: str,
    *,
    result: Callable[[DType], DType] | None = None,
    linear: Groups = (),
    linear_kinds: str = "iufc",
    vjp: Derivative | None = None,
    fast: dict[str, str] | None = None,
    dtypes: str = "f32",
) -> OpDef[Attrs]:
    """An op without attributes on operands of one type.

    `kinds` are the allowed kinds of dtype, letters of "biufc"; `result` maps the operands' dtype to the result's; sums
    pass through the operands in `linear` where the dtype is of `linear_kinds` (of bools an add is an or);
    `vjp(ct, *operands, result)` gives expressions; `fast` gives templates by letters of kinds, in which `$t` stands for
    the dtype; `dtypes` are those of the examples.
    """

    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
        require_count(name, types, arity)
        require_kind(name, "C1", types[0], kinds)
        require_equal(name, "C2", types)
        t = types[0].bare
        return (t if result is None else TensorType(result(t.dtype), t.shape),)

    def rule(types: Types, results: Types, attrs: Attrs) -> Rule:
        groups = linear if _LETTERS[dtype_kind(types[0].dtype)] in linear_kinds else ()
        return elementwise_rule(types[0].shape, arity, linear=groups)

    return OpDef(
        name,
        Attrs,
        infer,
        rule=rule,
        kernel=on_arrays(kernel),
        fast=None if fast is None else template(fast),
        vjp=None if vjp is None else pullback(vjp),
        examples=examples(name, arity, dtypes),
        doc=doc,
    )


def on_arrays(function: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel of an op whose attributes do not matter."""

    def kernel(attrs: Attrs, *arrays: Array) -> Array:
        return function(*arrays)

    return kernel


def examples(name: str, arity: int, dtypes: str, attrs: str = "") -> tuple[str, ...]:
    """One application for each dtype, on shapes whose dims split evenly and raggedly by 2, 3 and 4."""
    shapes = ("[4, 7]", "[6, 5]", "[9]", "[]")
    lines: list[str] = []
    for i, dtype in enumerate(dtypes.split()):
        operand = dtype + shapes[i % len(shapes)]
        lines.append(f"{name}({', '.join([operand] * arity)}){' ' + attrs if attrs else ''}")
    return tuple(lines)


def template(by_kinds: dict[str, str]) -> Callable[[Types, Any], str | None]:
    """Scalar forms by kind of dtype; integers are cut to their width again, since Numba computes them in 64 bits."""

    def fast(types: Types, attrs: Any) -> str | None:
        dtype = types[0].dtype
        if any(dtype_name(t.dtype) not in COMPILED_DTYPES for t in types):
            return None
        kind = _LETTERS[dtype_kind(dtype)]
        form = next((form for kinds, form in by_kinds.items() if kind in kinds), None)
        if form is None:
            return None
        form = form.replace("$t", scalar_type(dtype))
        return f"{scalar_type(dtype)}({form})" if kind in "iu" else f"({form})"

    return fast


def pullback(derivative: Derivative) -> Callable[[Gradient, Node, Sequence[Value | None]], Sequence[Value | None]]:
    """A vector-Jacobian product from a formula `(ct, *operands, result) -> cotangents`; None for integers and bools."""

    def vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
        (ct,) = cotangents
        wanted = [differentiable(v.type) for v in node.operands]
        if ct is None or not any(wanted):
            return [None] * len(wanted)
        given = [expression.Expression(gradient.builder, v) for v in (ct, *node.operands, node.result)]
        found = cast("Callable[..., Sequence[E | None]]", derivative)(*given)
        return [None if e is None or not w else e.value for e, w in zip(found, wanted, strict=True)]

    return vjp
