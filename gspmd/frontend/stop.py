"""The op that ends gradients: a mark within a trace, gone from the program that `trace` returns."""

from __future__ import annotations

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Region
from gspmd.ir.opdef import OpDef, Types


def _stop_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    return tuple(t.bare for t in types)


# Not part of the op set: without a vjp no gradient flows, and `cleanup` replaces its results by its operands.
STOP_GRADIENT: OpDef[Attrs] = OpDef(
    "stop_gradient", Attrs, _stop_infer, doc="The operands unchanged; their derivative is taken as zero."
)
