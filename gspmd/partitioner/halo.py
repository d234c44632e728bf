"""What a split access dimension costs: the elements that a device fetches from others (paper section 4.3)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gspmd.ir.mesh import Axis
from gspmd.ir.rule import Access, Rule
from gspmd.ops.fetch_plan import Reading, fetch_plan


def halo_elements(dim: Access, rule: Rule, parts: int, k_parts: int = 1, by_k: bool = False) -> int:
    """Elements along an access dimension that one device receives at most when its factors are split.

    `parts` and `k_parts`: of the positions and of the taps; the operand's dimension is split like the positions, or
    `by_k` like the taps. The cheapest way to fetch is assumed.
    """
    k = 1 if dim.kernel_factor is None else rule.factors[dim.kernel_factor].size
    return _elements(dim, rule.factors[dim.factor].size, k, parts, k_parts, by_k)


@lru_cache(maxsize=1 << 14)
def _elements(dim: Access, size: int, k: int, parts: int, k_parts: int, by_k: bool) -> int:
    if parts * k_parts == 1 or 0 in (dim.size, size, k):
        return 0
    o_axes = (Axis("o", 1, parts),) if parts > 1 else ()
    k_axes = (Axis("k", 1, k_parts),) if k_parts > 1 else ()
    axes, held = (k_axes, k_parts) if by_k else (o_axes, parts)
    chunk, to_chunk, k_chunk = -(-dim.size // held), -(-size // parts), -(-k // k_parts)
    r = Reading(dim.size, axes, chunk, size, o_axes, to_chunk, dim.mul, dim.add, dim.div, k, k_axes, k_chunk, dim.kmul)
    return fetch_plan(undilated(r)).wire


def undilated(r: Reading) -> Reading:
    """The reading of the dilated operand as a tensor of its own, where taps are split at any phase of the dilation."""
    if r.k_size <= r.k_chunk or r.kmul * r.k_chunk % r.div == 0:
        return r
    return replace(r, size=max(r.size - 1, 0) * r.div + 1, chunk=r.chunk * r.div, div=1)
