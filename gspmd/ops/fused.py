"""The fused op: a region of element-wise, broadcasting and reducing nodes that runs as one pass over memory.

Its meaning is its region, run node by node; the runtime compiles it from the nest of loops that `ops.loop_nest` reads
off the nodes' factor rules. The scheduler makes such nodes last of all, so that no pass but printing, parsing and
verifying ever sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Node, Region
from gspmd.ir.opdef import Machine, OpDef, Shards, Types
from gspmd.ops.rules import require


@dataclass(frozen=True, slots=True)
class FusedAttrs(Attrs):
    """How many loops of the nest run outside, over rows; the others run over the elements of one row."""

    outer: int = 0


def _fused_infer(types: Types, attrs: FusedAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one region. C2: it takes the operands. C3: a number of loops."""
    require(len(regions) == 1, "fused.C1", f"takes one region, got {len(regions)}")
    params = tuple(v.type.bare for v in regions[0].params)
    wanted = tuple(t.bare for t in types)
    require(params == wanted, "fused.C2", f"the region takes {list(params)}, the operands are {list(wanted)}")
    require(attrs.outer >= 0, "fused.C3", f"the number of outer loops cannot be negative, got {attrs.outer}")
    return tuple(v.type.bare for v in regions[0].results)


def _fused_execute(machine: Machine, node: Node, operands: Sequence[Shards]) -> Sequence[Shards]:
    return machine.run(node.regions[0], operands)


FUSED: OpDef[FusedAttrs] = OpDef(
    "fused",
    FusedAttrs,
    _fused_infer,
    execute=_fused_execute,
    doc="Runs its region, which the runtime compiles to one kernel.",
)

FAMILY: tuple[OpDef[Any], ...] = (FUSED,)
