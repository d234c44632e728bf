"""rechunk: a dimension's chunks get another size, its axes stay (paper section 4.5).

Plans of resharding are made as if chunks nested, and insert this where they do not. Each device fetches what it lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gspmd.ir.graph import Value
from gspmd.ir.opdef import Localizer, OpDef, Trait
from gspmd.ops.collective import as_it_is
from gspmd.ops.collective_local import chunk
from gspmd.ops.collective_types import ReshardAttrs, reshard_infer
from gspmd.ops.fetch import FETCH
from gspmd.ops.fetch_plan import Reading
from gspmd.ops.moving import fit


def _localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    """Each device fetches what it lacks of its new chunk."""
    (x,) = operands
    before, after = ctx.node.operands[0].type, ctx.node.result.type
    for d, n in enumerate(before.shape):
        old, new, axes = chunk(before, d), chunk(after, d), before.placed.dims[d].axes
        if old != new and n:
            x = FETCH(ctx.builder, x, dim=d, reading=Reading(n, axes, old, n, axes, new))
        else:
            x = fit(ctx.builder, x, d, new)
    return (x,)


RECHUNK: OpDef[ReshardAttrs] = OpDef(
    "rechunk", ReshardAttrs, reshard_infer, execute=as_it_is, localize=_localize, traits=frozenset((Trait.RESHARD,))
)

FAMILY: tuple[OpDef[Any], ...] = (RECHUNK,)
