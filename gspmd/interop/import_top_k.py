"""The largest elements of rows, or the smallest: CHLO's op and its older spellings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gspmd.interop.import_scope import Bound
from gspmd.interop.import_visit import Handler, Visit
from gspmd.ir.attrs import Attrs
from gspmd.kernels.finite import is_float
from gspmd.ops.elementwise import NEGATE, NOT
from gspmd.ops.sorting import TOP_K, TopKAttrs


def picked(v: Visit, k: Any, largest: Any) -> Sequence[Bound]:
    """The k largest of each row, or the smallest: what is largest when the order is turned round."""
    attrs = TopKAttrs(int(k))
    if largest:
        return v.emit(TOP_K, v.operands, attrs)
    (x,) = v.operands
    turn = NEGATE if is_float(x.type.dtype) else NOT  # the least integer has no negative
    values, places = TOP_K.emit(v.builder, (turn(v.builder, x),), attrs)
    return (*v.emit(turn, (values,), Attrs()), places)


def _top_k(v: Visit) -> Sequence[Bound]:
    return picked(v, v.value("k"), v.value("largest", True))


HANDLERS: dict[str, Handler] = {"chlo.top_k": _top_k}
