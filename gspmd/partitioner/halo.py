"""What a split access dimension costs: the elements that a device fetches from others (paper section 4.3)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gspmd.ir.axes import parts
from gspmd.ir.mesh import Axis
from gspmd.ir.rule import Access, Rule
from gspmd.ops.fetch_plan import Reading, fetch_plan


def halo_elements(dim: Access, rule: Rule, places: int, k_parts: int = 1, by_k: bool = False) -> int:
    """Elements along an access dimension that one device receives at most when its factors are split.

    `places` and `k_parts`: the parts of the positions and of the taps; the operand's dimension is split like the
    positions, or `by_k` like the taps. The cheapest way to fetch is assumed.
    """
    k = 1 if dim.kernel_factor is None else rule.factors[dim.kernel_factor].size
    return _elements(dim, rule.factors[dim.factor].size, k, places, k_parts, by_k)


@lru_cache(maxsize=1 << 14)
def _elements(dim: Access, size: int, k: int, places: int, k_parts: int, by_k: bool) -> int:
    if places * k_parts == 1 or 0 in (dim.size, size, k):
        return 0
    o_axes = (Axis("o", 1, places),) if places > 1 else ()
    k_axes = (Axis("k", 1, k_parts),) if k_parts > 1 else ()
    axes, held = (k_axes, k_parts) if by_k else (o_axes, places)
    chunk, to_chunk, k_chunk = -(-dim.size // held), -(-size // places), -(-k // k_parts)
    r = Reading(dim.size, axes, chunk, size, o_axes, to_chunk, dim.mul, dim.add, dim.div, k, k_axes, k_chunk, dim.kmul)
    r = undilated(r) if dim.kernel_factor is not None else strideless(r)[1]
    return fetch_plan(r).wire


def undilated(r: Reading) -> Reading:
    """The reading of the dilated operand as a tensor of its own, where taps are split at any phase of the dilation."""
    if r.k_size <= r.k_chunk or r.kmul * r.k_chunk % r.div == 0:
        return r
    return replace(r, size=max(r.size - 1, 0) * r.div + 1, chunk=r.chunk * r.div, div=1)


def strideless(r: Reading) -> tuple[int, Reading]:
    """The reading of every |mul|-th element as of a tensor of its own, and where in a chunk its elements begin.

    They begin there on every device if chunks have a multiple of |mul| elements; else the reading stays as it is.
    """
    step = abs(r.mul)
    if step < 2 or r.div != 1 or parts(r.axes) == 1 or r.chunk % step:
        return 0, r
    add, first = divmod(r.add, step)
    size = max(-(-(r.size - first) // step), 0)
    return first, replace(r, size=size, chunk=r.chunk // step, mul=r.mul // step, add=add)
