"""Which monoid the region of a reduction or scatter stands for, if it is one of the few that our ops know by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.dtypes import DType, is_float
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import OpDef
from gspmd.kernels.monoids import identity
from gspmd.ops.elementwise import ADD, AND, CONVERT, MAXIMUM, MINIMUM, MULTIPLY, OR, SUBTRACT, XOR

SET = "set"
_F32 = 4  # bytes of f32, which has the numbers of all narrower floats
COMBINE: Mapping[str, OpDef[Any]] = {
    "add": ADD,
    "mul": MULTIPLY,
    "max": MAXIMUM,
    "min": MINIMUM,
    "and": AND,
    "or": OR,
    "xor": XOR,
}
_NAMES: Mapping[OpDef[Any], str] = {op: name for name, op in COMBINE.items()}


def monoid_of(region: Region, number: int = 0) -> str | None:
    """The monoid of one result of a region with params (held1 .. heldN, new1 .. newN); `set` if it takes the new.

    A region may compute in a wider float type and round: so do the monoids of narrow floats.
    """
    count = len(region.results)
    held, new = region.params[number], region.params[count + number]
    result = _as_computed(region, region.results[number])
    if result is new:
        return SET
    node = region.maker(result)
    if node is None or node.op not in _NAMES or {_as_given(region, x) for x in node.operands} != {held, new}:
        return None
    return _NAMES[node.op]


def negated_new(region: Region) -> bool:
    """Whether a region with params (held, new) takes the new from what is held."""
    node = region.maker(region.results[0])
    return (
        node is not None and node.op is SUBTRACT and node.operands == tuple(region.params) and len(region.params) == 2
    )


def _as_computed(region: Region, value: Value) -> Value:
    """What a value was before it was rounded to a narrower float type."""
    node = region.maker(value)
    return node.operands[0] if node is not None and _widens(node, *node.results, *node.operands) else value


def _as_given(region: Region, value: Value) -> Value:
    """What a value was before it was brought to a wider float type."""
    node = region.maker(value)
    return node.operands[0] if node is not None and _widens(node, *node.operands, *node.results) else value


def _widens(node: Node, *narrow_and_wide: Value) -> bool:
    """Whether a node converts between float types of which the second has the numbers of the first."""
    if node.op is not CONVERT:
        return False
    narrow, wide = (x.type.dtype for x in narrow_and_wide)
    return is_float(narrow) and is_float(wide) and narrow.itemsize < wide.itemsize and wide.itemsize >= _F32


def monoids_of(region: Region) -> tuple[str, ...] | None:
    """The monoid of each result; None if one has none."""
    if len(region.params) != 2 * len(region.results):
        return None
    found = [monoid_of(region, i) for i in range(len(region.results))]
    return None if None in found else tuple(m for m in found if m is not None)


def is_identity(monoid: str, value: NDArray[Any] | None, dtype: DType) -> bool:
    """Whether an init leaves everything unchanged; of a float sum either zero is taken as such."""
    if value is None:
        return False
    wanted = identity(monoid, dtype)
    if monoid == "add" and (is_float(dtype) or dtype.kind == "c"):
        return not np.any(value)
    return value.tobytes() == wanted.tobytes()


def comparison(region: Region, compare: OpDef[Any]) -> tuple[str, bool] | None:
    """The direction of a region that compares its first parameter with its second, and whether in the total order."""
    node = region.maker(region.results[0])
    params: tuple[Value, ...] = region.params
    if node is None or node.op is not compare or len(params) != 2:
        return None
    attrs: Any = node.attrs
    flipped = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
    if node.operands == params:
        return attrs.direction, bool(attrs.compare_type)
    if node.operands == params[::-1]:
        direction: str = attrs.direction
        return flipped.get(direction, direction), bool(attrs.compare_type)
    return None
