"""Monoids as the regions and inits that StableHLO wants in their place (`import_monoid` recognises them)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gspmd.interop.export_writer import Writer
from gspmd.interop.import_monoid import COMBINE, SET
from gspmd.interop.stablehlo_text import word
from gspmd.ir.dtypes import DType, dtype_kind
from gspmd.ir.graph import Value
from gspmd.ir.types import TensorType
from gspmd.kernels.monoids import identity


def start(writer: Writer, monoid: str, dtype: DType) -> Value:
    """What a reduction starts from; a sum from +0.0, as front ends have it."""
    return writer.constant(np.zeros((), dtype) if monoid == "add" else identity(monoid, dtype))


def combination(writer: Writer, monoid: str, type_: TensorType) -> Callable[[], None]:
    """A region that combines two scalars of a type's dtype, or that takes the second (`set`)."""
    one = type_.with_shape(())

    def write() -> None:
        a, b = Value(one), Value(one)
        writer.arguments((a, b))
        if monoid == SET:
            writer.returned((b,))
            return
        c = Value(one)
        writer.op(f"stablehlo.{COMBINE[monoid].name}", (a, b), (c,))
        writer.returned((c,))

    return write


def comparison(writer: Writer, direction: str, type_: TensorType) -> Callable[[], None]:
    """A region that compares two scalars of a type's dtype."""
    one = type_.with_shape(())
    kind = {"bool": "UNSIGNED", "uint": "UNSIGNED", "int": "SIGNED"}.get(dtype_kind(type_.dtype), "FLOAT")
    attributes = {
        "comparison_direction": word("comparison_direction", direction),
        "compare_type": word("comparison_type", kind),
    }

    def write() -> None:
        a, b, c = Value(one), Value(one), Value(TensorType("bool", ()))
        writer.arguments((a, b))
        writer.op("stablehlo.compare", (a, b), (c,), attributes)
        writer.returned((c,))

    return write
