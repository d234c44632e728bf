"""Factorizations as calls of LAPACK, under the names that JAX gives it and that `import_lapack` knows.

Pivots count from 1 there, real eigenvalues come in two parts, and every routine says last whether all went well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gspmd.interop.export_writer import Emitter, Writer
from gspmd.interop.stablehlo_text import quoted
from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Node, Value
from gspmd.ir.types import TensorType
from gspmd.ops.eigen import EigAttrs
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.factorizations import EighAttrs, FullAttrs

_LETTERS = {DTYPES["f32"]: "s", DTYPES["f64"]: "d", DTYPES["c64"]: "c", DTYPES["c128"]: "z"}
_TYPED_INTERFACE = "4 : i32"


def lapack(
    writer: Writer,
    routine: str,
    operands: Sequence[Value],
    results: Sequence[Value],
    stack: int,
    config: Mapping[str, str | int] | None = None,
) -> None:
    """Append a call on a stack of matrices with so many leading dimensions; `config` has letters or numbers by name."""
    dtype = operands[0].type.dtype
    letter = _LETTERS.get(dtype)
    if letter is None:
        raise UsageError(f"LAPACK's {routine} takes f32, f64, c64 or c128, not {dtype.name}", rule="export.C2")
    held = ", ".join(f"{name} = {_number(value)}" for name, value in (config or {}).items())
    attributes = {
        "api_version": _TYPED_INTERFACE,
        "backend_config": f"{{{held}}}",
        "call_target_name": quoted(f"lapack_{letter}{routine}_ffi"),
        "operand_layouts": _layouts(operands, stack),
        "result_layouts": _layouts(results, stack),
    }
    writer.op("stablehlo.custom_call", operands, results, attributes)


def _number(value: str | int) -> str:
    return f"{value} : i32" if isinstance(value, int) else f"{ord(value)} : ui8"


def _layouts(values: Sequence[Value], stack: int) -> str:
    """Matrices by columns, stacks and vectors by rows."""
    orders: list[str] = []
    for rank in (v.type.rank for v in values):
        inner = [rank - 2, rank - 1] if rank == stack + 2 else list(range(rank - 1, stack - 1, -1))
        order = [*inner, *range(stack - 1, -1, -1)][:rank]
        orders.append(f"dense<{order if order else ''}> : tensor<{rank}xindex>")
    return f"[{', '.join(orders)}]"


def info(like: Value) -> Value:
    """The result that says, for each matrix of a stack, whether all went well; nobody reads it."""
    return Value(TensorType("i32", like.type.shape[:-2]))


def _geqrf(writer: Writer, node: Node) -> None:
    (x,) = node.operands
    lapack(writer, "geqrf", (x,), node.results, x.type.rank - 2)


def _householder_product(writer: Writer, node: Node) -> None:
    a = node.operands[0].type
    routine = "ungqr" if a.dtype.kind == "c" else "orgqr"
    lapack(writer, routine, node.operands, node.results, a.rank - 2)


def _svd(writer: Writer, node: Node) -> None:
    attrs, (x,) = node.attrs, node.operands
    assert isinstance(attrs, FullAttrs)
    mode = "A" if attrs.full_matrices else "S"
    results = (Value(x.type.bare), *node.results, info(x))
    lapack(writer, "gesdd", (x,), results, x.type.rank - 2, {"mode": mode})


def _eigh(writer: Writer, node: Node) -> None:
    attrs, (x,) = node.attrs, node.operands
    assert isinstance(attrs, EighAttrs)
    routine = "heevd" if x.type.dtype.kind == "c" else "syevd"
    letters = {"mode": "V", "uplo": "L" if attrs.lower else "U"}
    lapack(writer, routine, (x,), (*node.results, info(x)), x.type.rank - 2, letters)


def _eig(writer: Writer, node: Node) -> None:
    """LAPACK has both kinds of vectors in its results, wanted or not."""
    attrs, (x,) = node.attrs, node.operands
    assert isinstance(attrs, EigAttrs)
    values, *vectors = node.results
    wanted, unread = iter(vectors), values.type.with_shape(x.type.shape)
    sides = {"compute_left": attrs.left, "compute_right": attrs.right}
    both = [next(wanted) if side else Value(unread) for side in sides.values()]
    letters = {name: "V" if side else "N" for name, side in sides.items()}
    held = _eigenvalues(x, values)
    lapack(writer, "geev", (x,), (*held, *both, info(x)), x.type.rank - 2, letters)
    _joined(writer, held, values)


def _schur(writer: Writer, node: Node) -> None:
    (x,), (t, z, values) = node.operands, node.results
    held, stack = _eigenvalues(x, values), x.type.rank - 2
    lapack(writer, "gees", (x,), (t, z, *held, info(x), info(x)), stack, {"mode": "V", "sort": "N"})
    _joined(writer, held, values)


def _eigenvalues(x: Value, values: Value) -> tuple[Value, ...]:
    """The results that hold the eigenvalues: of real matrices their real and imaginary parts."""
    part = TensorType(x.type.dtype, values.type.shape)
    return (values,) if x.type.dtype.kind == "c" else (Value(part), Value(part))


def _joined(writer: Writer, held: Sequence[Value], values: Value) -> None:
    if len(held) > 1:
        writer.op("stablehlo.complex", held, (values,))


def _gehrd(writer: Writer, node: Node) -> None:
    (x,) = node.operands
    whole = {"low": 1, "high": x.type.shape[-1]}
    lapack(writer, "gehrd", (x,), (*node.results, info(x)), x.type.rank - 2, whole)


def _sytrd(writer: Writer, node: Node) -> None:
    attrs, (x,) = node.attrs, node.operands
    assert isinstance(attrs, EighAttrs)
    routine = "hetrd" if x.type.dtype.kind == "c" else "sytrd"
    lapack(writer, routine, (x,), (*node.results, info(x)), x.type.rank - 2, {"uplo": "L" if attrs.lower else "U"})


def _geqp3(writer: Writer, node: Node) -> None:
    """Every column may move: none is marked."""
    (x,), (packed, order, scales) = node.operands, node.results
    marks = writer.constant(np.zeros(order.type.shape, np.int32))
    counted = Value(order.type)
    lapack(writer, "geqp3", (x, marks), (packed, counted, scales), x.type.rank - 2)
    writer.alias((order,), writer.expanded((counted,), Attrs(), from_zero, node))


def from_zero(b: Builder, operands: Sequence[Value], attrs: Attrs) -> Sequence[Value]:
    """Pivots as we count them."""
    return ((Expression(b, operands[0]) - 1).value,)


def _tridiagonal_solve(writer: Writer, node: Node) -> None:
    """The diagonals are used up."""
    *diagonals, b = node.operands
    used = [Value(v.type.bare) for v in diagonals]
    lapack(writer, "gtsv", node.operands, (*used, *node.results, info(b)), b.type.rank - 2)


EMITTERS: Mapping[str, Emitter] = {
    "geqrf": _geqrf,
    "householder_product": _householder_product,
    "svd": _svd,
    "eigh": _eigh,
    "eig": _eig,
    "schur": _schur,
    "gehrd": _gehrd,
    "sytrd": _sytrd,
    "geqp3": _geqp3,
    "tridiagonal_solve": _tridiagonal_solve,
}
