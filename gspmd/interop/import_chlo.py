"""CHLO's ops on operands of different shapes: made equal by NumPy's rules, then the op without broadcasting.

And the one op that CHLO has for its own use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gspmd.interop.import_scope import Bound
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Handler, Visit
from gspmd.ir.attrs import Attrs, ResultShape
from gspmd.ir.graph import Value
from gspmd.ops import OPS
from gspmd.ops.elementwise import ABS, COMPARE, COMPLEX, COSINE, IMAG, REAL
from gspmd.ops.elementwise.arithmetic import CompareAttrs
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.special import ASIN, COSH

_BINARY = (
    "add", "and", "atan2", "complex", "divide", "maximum", "minimum", "multiply", "next_after", "or", "polygamma",
    "power", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor", "zeta",
)  # fmt: skip


def _alike(v: Visit, operands: Sequence[Value]) -> tuple[Value, ...]:
    """The operands in their common shape; `broadcast_dimensions` says where those of the shorter one go."""
    ranks = [x.type.rank for x in operands]
    given = v.ints("broadcast_dimensions", ())
    longest = max(ranks)
    dims = [given if given and r < longest else tuple(range(longest - r, longest)) for r in ranks]
    sized: list[tuple[int, ...]] = []
    for x, places in zip(operands, dims, strict=True):
        full = [1] * longest
        for d, n in zip(places, x.type.shape, strict=True):
            full[d] = n
        sized.append(tuple(full))
    try:
        shape = np.broadcast_shapes(*sized)
    except ValueError:
        raise Unsupported(
            f"the shapes {', '.join(str(list(x.type.shape)) for x in operands)} do not broadcast"
        ) from None
    return tuple(_spread(v, x, shape, places) for x, places in zip(operands, dims, strict=True))


def _spread(v: Visit, x: Value, shape: tuple[int, ...], places: tuple[int, ...]) -> Value:
    if x.type.shape == shape:
        return x
    return BROADCAST_IN_DIM(v.builder, x, shape=ResultShape(shape), dims=places)


def _binary(name: str) -> Handler:
    def read(v: Visit) -> Sequence[Bound]:
        return v.emit(OPS[name], _alike(v, v.operands), Attrs())

    return read


def _compare(v: Visit) -> Sequence[Bound]:
    total = v.word("compare_type", "NOTYPE") == "TOTALORDER"
    attrs = CompareAttrs(v.word("comparison_direction"), "TOTALORDER" if total else "")
    return v.emit(COMPARE, _alike(v, v.operands), attrs)


def _select(v: Visit) -> Sequence[Bound]:
    pred, *cases = v.operands
    if pred.type.rank == 0:
        return v.emit(OPS["select"], (pred, *_alike(v, cases)), Attrs())
    return v.emit(OPS["select"], _alike(v, (pred, *cases)), Attrs())


def _asin_acos_kernel(v: Visit) -> Sequence[Bound]:
    """Of z the w with asin(z) = complex(atan2(Re z, Re w), sign(Im z) Im w): what it says of the inverse sine s.

    Im w is |Im s|, and Re w, which is positive, is what Re z = sin(Re s) cosh(Im s) is the other leg of.
    """
    s = Expression(v.builder, v.operands[0]).apply(ASIN)
    height = s.apply(IMAG).apply(ABS)
    width = s.apply(REAL).apply(COSINE) * height.apply(COSH)
    return v.emit(COMPLEX, (width.value, height.value), Attrs())


HANDLERS: Mapping[str, Handler] = {
    **{f"chlo.broadcast_{name}": _binary(name) for name in _BINARY if name in OPS},
    "chlo.broadcast_compare": _compare,
    "chlo.broadcast_select": _select,
    "chlo._asin_acos_kernel": _asin_acos_kernel,
}
