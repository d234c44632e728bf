"""The op set: one record an op, one file or package a family. `OPS` maps names to records."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gspmd.ir.opdef import OpDef
from gspmd.ops import (
    affine_permute,
    annotate,
    bits,
    collective,
    control,
    custom,
    dot,
    eigen,
    elementwise,
    factorizations,
    fetch,
    fused,
    hold_once,
    indexing,
    layout,
    linalg,
    literal,
    manual,
    mapping,
    normalization,
    random,
    rechunk,
    reduce,
    slicing,
    sorting,
    special,
    spectral,
    window,
)

_FAMILIES: tuple[tuple[OpDef[Any], ...], ...] = (
    elementwise.FAMILY,
    literal.FAMILY,
    layout.FAMILY,
    dot.FAMILY,
    reduce.FAMILY,
    slicing.FAMILY,
    indexing.FAMILY,
    window.FAMILY,
    special.FAMILY,
    bits.FAMILY,
    sorting.FAMILY,
    mapping.FAMILY,
    random.FAMILY,
    spectral.FAMILY,
    linalg.FAMILY,
    factorizations.FAMILY,
    eigen.FAMILY,
    normalization.FAMILY,
    control.FAMILY,
    custom.FAMILY,
    manual.FAMILY,
    annotate.FAMILY,
    collective.FAMILY,
    rechunk.FAMILY,
    hold_once.FAMILY,
    fetch.FAMILY,
    affine_permute.FAMILY,
    fused.FAMILY,
)

OPS: Mapping[str, OpDef[Any]] = MappingProxyType({op.name: op for family in _FAMILIES for op in family})
