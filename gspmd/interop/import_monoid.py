"""Which monoid the region of a reduction or scatter stands for, if it is one of the few that our ops know by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.dtypes import DType, is_float
from gspmd.ir.graph import Region, Value
from gspmd.ir.opdef import OpDef
from gspmd.kernels.monoids import identity
from gspmd.ops.elementwise import ADD, AND, MAXIMUM, MINIMUM, MULTIPLY, OR, XOR

SET = "set"
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
    """The monoid of one result of a region with params (held1 .. heldN, new1 .. newN); `set` if it takes the new."""
    count = len(region.results)
    held, new = region.params[number], region.params[count + number]
    result = region.results[number]
    if result is new:
        return SET
    node = next((n for n in region.nodes if result in n.results), None)
    if node is None or node.op not in _NAMES or set(node.operands) != {held, new}:
        return None
    return _NAMES[node.op]


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
    node = next((n for n in region.nodes if region.results[0] in n.results), None)
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
