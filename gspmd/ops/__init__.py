"""The op set: one record an op, one file or package a family. `OPS` maps names to records."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gspmd.ir.opdef import OpDef
from gspmd.ops import (
    annotate,
    collective,
    control,
    dot,
    elementwise,
    fetch,
    fused,
    indexing,
    layout,
    literal,
    reduce,
    slicing,
)

_FAMILIES: tuple[tuple[OpDef[Any], ...], ...] = (
    elementwise.FAMILY,
    literal.FAMILY,
    layout.FAMILY,
    dot.FAMILY,
    reduce.FAMILY,
    slicing.FAMILY,
    indexing.FAMILY,
    control.FAMILY,
    annotate.FAMILY,
    collective.FAMILY,
    fetch.FAMILY,
    fused.FAMILY,
)

OPS: Mapping[str, OpDef[Any]] = MappingProxyType({op.name: op for family in _FAMILIES for op in family})
