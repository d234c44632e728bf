"""What a fetch reads and how it may be moved: arithmetic on positions, no IR (paper section 4.3).

A device computes a chunk of a result dimension (index o, and perhaps a window index k); an operand dimension is read at
`div*p = mul*o + kmul*k + add`. From that follow the positions that each device needs, and three ways to bring them:

    shift     one permute for each distance between neighbours; the buffer starts at a fixed distance from the shard
    affine    the source of hop j is floor((mul*i + add) / div) + j, in rounds where several devices want one source
    gathered  all-gather, then slice

Ranges are exact: all devices are evaluated at once, as vectors; everything is memoised by the reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.axes import Axes, parts

Ints = NDArray[Any]
PlanKind = Literal["shift", "affine", "gathered"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A split operand dimension, and the loop indices that read it.

    The operand dimension has `size` elements, `chunk` on each device along `axes`. Each device computes `to_chunk` of
    the `to_size` values of o along `to_axes`, and `k_chunk` of the `k_size` values of k along `k_axes`, reading at
    `div*p = mul*o + kmul*k + add`.
    """

    size: int
    axes: Axes
    chunk: int
    to_size: int
    to_axes: Axes
    to_chunk: int
    mul: int = 1
    add: int = 0
    div: int = 1
    k_size: int = 1
    k_axes: Axes = ()
    k_chunk: int = 1
    kmul: int = 0


@dataclass(frozen=True, slots=True)
class Geometry:
    """The buffer that one device reads, and what to do with it.

    `count` results are computed, from o rounded down to a multiple of `block` (the phase of a dilated operand must be
    the same on every device). They span `span` positions of the dilated operand, of which the first is `phase` before
    the buffer's first element. The buffer has `width` elements from position `lo = slope*(i*scale // block) +
    kslope*ik + base` on, i and ik being the device's indices along `to_axes` and `k_axes`.
    """

    block: int
    count: int
    span: int
    phase: int
    width: int
    slope: int
    scale: int
    kslope: int
    base: int

    def low(self, i: Any, k: Any) -> Any:
        """`lo` for devices of some indices, numbers or vectors."""
        return self.slope * (i * self.scale // self.block) + self.kslope * k + self.base


@dataclass(frozen=True, slots=True)
class Hop:
    """Cells [low, high) of a shard, brought from the device floor((mul*i + add) / div), in so many rounds.

    No rounds: the device's own cells. `count`: devices from there on want nothing. `own`: rounds in which all that
    want something want their own cells.
    """

    low: int
    high: int
    mul: int = 1
    add: int = 0
    div: int = 1
    rounds: int = 0
    count: int = 0
    own: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def sent(self) -> tuple[tuple[int, int], ...]:
        """The cells of each round in which something is sent."""
        return tuple(span for k, span in enumerate(self.spans) if k not in self.own)


@dataclass(frozen=True, slots=True)
class Start:
    """A position for each device: `scale * floor((mul*i + add) / div) + offset`."""

    scale: int = 0
    mul: int = 0
    add: int = 0
    div: int = 1
    offset: int = 0


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """How one fetch is done.

    The hops' cells in a row are a buffer that starts at `scale * floor((mul*i + add) / div) + offset`, the fields of
    `start`, i being the index along the operand's axes; `pad_low` and `pad_high` zeros around it let every device slice
    its part, at the same place `slice_at` on all, or at a computed one (None). `wire`: elements along the dimension
    that a device receives. `outside`: a real result reads beyond the tensor's ends. `zeros`: it then reads zero anyway.
    """

    kind: PlanKind
    wire: int
    hops: tuple[Hop, ...]
    start: Start
    pad_low: int
    pad_high: int
    slice_at: int | None
    outside: bool
    zeros: bool


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """Vectors over all devices that may differ: indices, range needed (clamped to the tensor), start of the buffer."""

    i: Ints
    own: Ints  # index along the operand's axes
    low: Ints
    high: Ints
    lo: Ints
    needed: Ints
    outside: bool
    starved: bool  # a device with real results reads nothing but fill


def round_of(mul: int, rest: Any, div: int, index: Any) -> Any:
    """How many devices below `index` want the same source, `rest` being (mul*index + add) mod div."""
    if mul == 0:
        return index
    before = rest // mul if mul > 0 else (div - 1 - rest) // -mul
    return np.minimum(before, index)


@lru_cache(maxsize=1 << 14)
def geometry(r: Reading) -> Geometry:
    """The buffer of a reading; ValueError if no buffer fits all devices."""
    step, kstep = r.mul * r.to_chunk, r.kmul * r.k_chunk
    if r.k_size > r.k_chunk and kstep % r.div:
        raise ValueError("a split window must move by a multiple of the dilation")
    even = step % r.div == 0 or parts(r.to_axes) == 1
    block = 1 if even else r.div // gcd(r.mul, r.div)
    count = r.to_chunk + block - 1
    first = min(0, r.mul * (count - 1)) + min(0, r.kmul * (r.k_chunk - 1)) + r.add
    span = abs(r.mul) * (count - 1) + abs(r.kmul) * (r.k_chunk - 1) + 1
    phase = -first % r.div
    width = max((span - 1 - phase) // r.div + 1, 1)
    slope, scale = (step // r.div, 1) if even else (r.mul * block // r.div, r.to_chunk)
    if parts(r.to_axes) == 1:
        slope, scale = 0, 1
    return Geometry(block, count, span, phase, width, slope, scale, kstep // r.div, -(-first // r.div))


@lru_cache(maxsize=1 << 12)
def needs(r: Reading) -> Needs:
    """What each device needs."""
    g = geometry(r)
    i, k, own = _devices(r)
    o1, k1 = i * r.to_chunk, k * r.k_chunk
    o2, k2 = np.minimum(o1 + r.to_chunk, r.to_size), np.minimum(k1 + r.k_chunk, r.k_size)
    real = (o1 < o2) & (k1 < k2)
    ends = np.stack([r.mul * o1, r.mul * (o2 - 1)]), np.stack([r.kmul * k1, r.kmul * (k2 - 1)])
    raw_low = -(-(ends[0].min(0) + ends[1].min(0) + r.add) // r.div)
    raw_high = (ends[0].max(0) + ends[1].max(0) + r.add) // r.div + 1
    reads = real & (raw_low < raw_high)
    low, high = np.clip(raw_low, 0, r.size), np.clip(raw_high, 0, r.size)
    needed = reads & (low < high)
    lo = g.low(i, k)
    outside = bool(np.any(reads & ((raw_low < 0) | (raw_high > r.size))))
    return Needs(i, own, low, high, lo, needed, outside, bool(np.any(reads & ~needed)))


def _devices(r: Reading) -> tuple[Ints, Ints, Ints]:
    """Indices along to_axes, k_axes and axes of all devices, as far as they are tied together."""
    i, k = np.arange(parts(r.to_axes)), np.arange(parts(r.k_axes))
    if r.axes == r.to_axes or r.axes == r.k_axes or parts(r.axes) == 1:
        a, b = (x.reshape(-1) for x in np.meshgrid(i, k, indexing="ij"))
        return a, b, a if r.axes == r.to_axes else b if r.axes == r.k_axes else np.zeros_like(a)
    a, b, c = (x.reshape(-1) for x in np.meshgrid(i, k, np.arange(parts(r.axes)), indexing="ij"))
    return a, b, c


@lru_cache(maxsize=1 << 14)
def fetch_plan(r: Reading) -> FetchPlan:
    """The plan that moves the fewest elements; among equals the one with the fewest collectives, holding the least."""
    options = _options(r)
    return _build(r, min(options, key=lambda kind: options[kind]))


def plan_of_kind(r: Reading, kind: PlanKind) -> FetchPlan | None:
    """The plan of a kind, whatever it costs; None if it does not apply."""
    return _build(r, kind) if kind in _options(r) else None


def _options(r: Reading) -> dict[PlanKind, tuple[int, int]]:
    """For each plan that applies the elements that a device receives, and the number of collectives."""
    n = needs(r)
    if not n.needed.any():
        return {"shift": (0, 0)}
    # The one that holds the most comes last: among equals the first is taken.
    options: dict[PlanKind, tuple[int, int]] = {"shift": _shift_cost(r, n)}
    hops = _affine_hops(r, n)
    if hops:
        sent = [span for h in hops for span in h.sent]
        options["affine"] = sum(high - low for low, high in sent), len(sent)
    options["gathered"] = r.chunk * (parts(r.axes) - 1), 1
    return options


def _build(r: Reading, kind: PlanKind) -> FetchPlan:
    n = needs(r)
    wire, _ = _options(r)[kind]
    if kind == "gathered":
        return _finish(r, n, "gathered", wire, (), Start(), r.chunk * parts(r.axes))
    if kind == "shift":
        return _shift(r, n, wire)
    hops = _affine_hops(r, n)
    mul, _, div = _source(r)
    start = Start(r.chunk, mul, hops[0].add, div, hops[0].low)
    return _finish(r, n, "affine", wire, tuple(hops), start, sum(h.high - h.low for h in hops))


def _reach(r: Reading, n: Needs) -> tuple[int, int]:
    """The range needed, counted from the device's own first cell: the least and the greatest over all devices."""
    if not n.needed.any():
        return 0, 1
    own = n.own * r.chunk
    return int((n.low - own)[n.needed].min()), int((n.high - own)[n.needed].max())


def _shift_cost(r: Reading, n: Needs) -> tuple[int, int]:
    low, high = _reach(r, n)
    mine = max(0, min(high, r.chunk) - max(low, 0))
    hops = range(low // r.chunk, -(-high // r.chunk))
    return high - low - mine, len(hops) - (0 in hops)


def _shift(r: Reading, n: Needs, wire: int) -> FetchPlan:
    low, high = _reach(r, n)
    c, total = r.chunk, parts(r.axes)
    hops: list[Hop] = []
    for d in range(low // c, -(-high // c)):
        a, b = max(0, low - d * c), min(c, high - d * c)
        hops.append(Hop(a, b, 1, d, 1, 1 if d else 0, total))
    return _finish(r, n, "shift", wire, tuple(hops), Start(c, 1, 0, 1, low), high - low)


def _source(r: Reading) -> tuple[int, int, int]:
    """floor((mul*i + add) / div) is the device that holds the first element of the buffer; div 0: no such form."""
    g = geometry(r)
    if g.block == 1:
        return g.slope, g.base, r.chunk
    if g.slope == 1:
        return g.scale, g.base * g.block, g.block * r.chunk
    return 0, 0, 0


def _affine_hops(r: Reading, n: Needs) -> list[Hop]:
    """The hops of the affine plan; none if it does not apply or would be shifts."""
    mul, add, div = _source(r)
    if r.axes != r.to_axes or parts(r.k_axes) > 1 or div == 0 or mul == div:
        return []
    c = r.chunk
    first = (mul * n.i + add) // div
    round_ = round_of(mul, mul * n.i + add - first * div, div, n.i)
    bottom, top = n.low // c - first, (n.high - 1) // c - first
    least, most = int(bottom[n.needed].min()), int(top[n.needed].max())
    count = int(n.i[n.needed].max()) + 1
    hops: list[Hop] = []
    for j in range(least, most + 1):
        active = n.needed & (bottom <= j) & (j <= top)
        if not active.any():
            return []
        offset = (first + j) * c
        low, high = np.maximum(n.low - offset, 0), np.minimum(n.high - offset, c)
        ends = int(low[active].min()) if j == least else 0, int(high[active].max()) if j == most else c
        rounds = range(int(round_[active].max()) + 1)
        own = tuple(k for k in rounds if np.all((first + j == n.i)[round_ == k]) and k in round_)
        who = [active & (round_ == k) for k in rounds]
        spans = tuple((int(low[w].min()), int(high[w].max())) if w.any() else ends for w in who)
        hops.append(Hop(*ends, mul, add + j * div, div, len(rounds), count, own, spans))
    return hops


def _finish(
    r: Reading, n: Needs, kind: PlanKind, wire: int, hops: tuple[Hop, ...], start: Start, held: int
) -> FetchPlan:
    """The plan with the zeros around its buffer and the place of the slice."""
    width = geometry(r).width
    at = n.lo - (start.scale * ((start.mul * n.own + start.add) // start.div) + start.offset)
    at = at[n.needed] if n.needed.any() else np.zeros(1, np.int64)
    pad_low = max(0, -int(at.min()))
    pad_high = max(0, width - held - pad_low, int(at.max()) + width - held)
    same = int(at.min()) == int(at.max())
    even = r.size == r.chunk * parts(r.axes)
    zeros = n.outside and even and not n.starved
    return FetchPlan(
        kind, wire, hops, start, pad_low, pad_high, int(at[0]) + pad_low if same else None, n.outside, zeros
    )
