"""What a split access dimension costs: the elements that a device fetches from others (paper section 4.3)."""

from __future__ import annotations

from functools import lru_cache

from gspmd.ir.mesh import Axis
from gspmd.ir.rule import Access, Rule
from gspmd.ops.fetch_plan import Reading, fetch_plan


def halo_elements(dim: Access, rule: Rule, parts: int) -> int:
    """Elements along an access dimension that one device receives at most when its factor is split in `parts`.

    The operand's dimension is split over the same axes; the cheapest way to fetch is assumed.
    """
    k = 1 if dim.kernel_factor is None else rule.factors[dim.kernel_factor].size
    return _elements(dim, rule.factors[dim.factor].size, k, parts)


@lru_cache(maxsize=1 << 14)
def _elements(dim: Access, size: int, k: int, parts: int) -> int:
    if parts == 1 or 0 in (dim.size, size, k):
        return 0
    axes = (Axis("any", 1, parts),)
    chunk, to_chunk = -(-dim.size // parts), -(-size // parts)
    r = Reading(dim.size, axes, chunk, size, axes, to_chunk, dim.mul, dim.add, dim.div, k, (), k, dim.kmul)
    return fetch_plan(r).wire
