"""A fetch as permutes or an all-gather, and slices: HOW a halo is exchanged (paper section 4.3).

The plan (`fetch_plan`) says which cells of which neighbour make up a buffer and where in it a device's part begins;
cells beyond the tensor's ends are replaced by the fill where a real result reads them.
"""

from __future__ import annotations

from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes, parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Value
from gspmd.ops import cells
from gspmd.ops.affine_permute import AFFINE_PERMUTE
from gspmd.ops.collective import ALL_GATHER, AXIS_INDEX
from gspmd.ops.elementwise import SELECT
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.fetch_plan import FetchPlan, Hop, Reading, geometry
from gspmd.ops.literal import scalar
from gspmd.ops.moving import CONCATENATE, PAD, section
from gspmd.ops.slicing import DYNAMIC_SLICE


def emit_fetch(builder: Builder, x: Value, dim: int, r: Reading, fill: int | float | None, plan: FetchPlan) -> Value:
    """One fetch along a dimension, done as a plan of its reading says."""
    return _Fetch(builder, x, dim, r, fill, plan).run()


class _Fetch:
    """Emits one fetch."""

    def __init__(
        self, builder: Builder, x: Value, dim: int, r: Reading, fill: int | float | None, plan: FetchPlan
    ) -> None:
        self.b, self.x, self.dim, self.fill, self.r, self.plan = builder, x, dim, fill, r, plan
        self.width = geometry(r).width

    def run(self) -> Value:
        """The buffer, the device's part of it, and the fill outside the tensor."""
        plan, width = self.plan, self.width
        if plan.kind == "gathered":
            buffer = ALL_GATHER(self.b, self.x, dim=self.dim, axes=self.r.axes)
        else:
            slabs = [self._hop(h) for h in plan.hops]
            buffer = slabs[0] if len(slabs) == 1 else CONCATENATE(self.b, *slabs, dimension=self.dim)
        buffer = self._padded(buffer, plan.pad_low, plan.pad_high)
        lo = None
        if plan.slice_at is not None:
            part = section(self.b, buffer, self.dim, plan.slice_at, plan.slice_at + width)
        else:
            lo = cells.first_read(self.b, self.r, self._place)
            part = self._dynamic(buffer, lo - self._start() + plan.pad_low)
        if self.fill is None or not plan.outside or (plan.zeros and str(float(self.fill)) == "0.0"):
            return part
        lo = lo or cells.first_read(self.b, self.r, self._place)
        fill = scalar(self.b, self.fill, part.type.dtype)
        return cells.replaced_outside(self.b, part, self.dim, lo.value, self.r.size, fill)

    def _hop(self, hop: Hop) -> Value:
        slab = section(self.b, self.x, self.dim, hop.low, hop.high)
        if not hop.rounds:
            return slab
        got: Value | None = None
        for round_ in range(hop.rounds):
            moved = slab if round_ in hop.own else self._permuted(hop, round_)
            if got is None:
                got = moved
            else:
                mine = self._round(hop).compare("EQ", round_)
                got = SELECT(self.b, mine.value, moved, got)
        assert got is not None
        return got

    def _permuted(self, hop: Hop, round_: int) -> Value:
        """What is sent in one round, in its place among the hop's cells."""
        low, high = hop.spans[round_] if hop.spans else (hop.low, hop.high)
        moved = AFFINE_PERMUTE(
            self.b,
            section(self.b, self.x, self.dim, low, high),
            axes=self.r.axes,
            add=hop.add,
            mul=hop.mul,
            div=hop.div,
            round=round_,
            count=None if hop.count == parts(self.r.axes) else hop.count,
        )
        return self._padded(moved, low - hop.low, hop.high - high)

    def _place(self, axes: Axes) -> Value:
        return scalar(self.b, 0, "i32") if parts(axes) == 1 else AXIS_INDEX(self.b, axes=axes)

    def _index(self) -> Expression:
        """The device's index along the operand's axes."""
        return Expression(self.b, self._place(self.r.axes))

    def _floor(self, mul: int, add: int, div: int) -> Expression:
        """floor((mul*i + add) / div) for the index along the operand's axes, by a division of natural numbers."""
        y = self._index() * mul + add
        if div == 1:
            return y
        least = min(add, mul * (parts(self.r.axes) - 1) + add)
        lift = max(0, -(least // div))
        return (y + lift * div) / div - lift

    def _round(self, hop: Hop) -> Expression:
        """How many devices below this one want the same source."""
        i = self._index()
        if hop.mul == 0:
            return i
        y = i * hop.mul + hop.add
        rest = y - self._floor(hop.mul, hop.add, hop.div) * hop.div
        before = rest / hop.mul if hop.mul > 0 else ((hop.div - 1) - rest) / -hop.mul
        return Expression(self.b, _least(self.b, before.value, i.value))

    def _start(self) -> Expression:
        """Where the buffer begins."""
        at = self.plan.start
        return self._floor(at.mul, at.add, at.div) * at.scale + at.offset

    def _dynamic(self, x: Value, at: Expression) -> Value:
        shape, none = list(x.type.shape), scalar(self.b, 0, "i32")
        shape[self.dim] = self.width
        starts = [at.value if d == self.dim else none for d in range(len(shape))]
        return DYNAMIC_SLICE(self.b, x, *starts, sizes=ResultShape(shape))

    def _padded(self, x: Value, low: int, high: int) -> Value:
        if not low and not high:
            return x
        at = [0] * x.type.rank
        before, after = list(at), list(at)
        before[self.dim], after[self.dim] = low, high
        none = scalar(self.b, 0, x.type.dtype)
        return PAD(self.b, x, none, low=tuple(before), high=tuple(after), interior=tuple(at))


def _least(builder: Builder, a: Value, b: Value) -> Value:
    return (
        Expression(builder, a)
        .compare("LT", Expression(builder, b))
        .select(Expression(builder, a), Expression(builder, b))
        .value
    )
