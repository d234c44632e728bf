"""Constants on their way in; scalars are remembered, for those who ask what an init or a bound is."""

from __future__ import annotations

from typing import Any

import numpy as np

from gspmd.interop.import_dense import dense_array, is_splat, splat_element
from gspmd.interop.import_scope import Bound
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import Attrs, Dense, ResultShape
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Value
from gspmd.ops.layout import BROADCAST_IN_DIM, BroadcastInDimAttrs
from gspmd.ops.literal import CONSTANT, ConstantAttrs

# Larger constants that repeat one element are that element, broadcast.
_SPREAD = 64


def literal(v: Visit, value: Any, dtype: DType) -> tuple[Value, ...]:
    """A scalar constant as the op's result."""
    held = np.array(value).astype(dtype)
    (result,) = v.emit(CONSTANT, (), ConstantAttrs(Dense(held)))
    v.scope.literals[result] = held
    return (result,)


def read_constant(v: Visit) -> tuple[Bound, ...]:
    """A dense constant of any element type."""
    type_ = v.result
    try:
        attribute = v.attribute("value")
    except TypeError:  # jaxlib has no class for it: it is read off the printed op
        attribute = None
    if type_.size > _SPREAD and is_splat(attribute):
        one = CONSTANT(v.builder, value=Dense(splat_element(v.op, "value", attribute, type_)))
        return _spread(v, one, type_.shape)
    array = dense_array(v.op, "value", attribute, type_, v.importer.resources)
    if type_.rank == 0:
        return literal(v, array, type_.dtype)
    return v.emit(CONSTANT, (), ConstantAttrs(Dense(array)))


def read_constant_like(v: Visit) -> tuple[Bound, ...]:
    """CHLO: a number in the type of an operand."""
    type_ = v.result
    number = v.value("value")
    held = literal(v, number, type_.dtype)
    return held if type_.rank == 0 else _spread(v, held[0], type_.shape)


def _spread(v: Visit, one: Value, shape: tuple[int, ...]) -> tuple[Value, ...]:
    attrs: Attrs = BroadcastInDimAttrs(ResultShape(shape))
    return v.emit(BROADCAST_IN_DIM, (one,), attrs)
