"""Fetches become permutes or an all-gather, and slices: HOW a halo is exchanged (paper section 4.3).

The plan (ops.fetch_plan) says which cells of which neighbour make up a buffer and where in it a device's part begins;
cells beyond the tensor's ends are replaced by the fill where a real result reads them.
"""

from __future__ import annotations

from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes, parts
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ops.collective import ALL_GATHER, AXIS_INDEX
from gspmd.ops.elementwise import AND, SELECT
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.fetch import AFFINE_PERMUTE, FetchAttrs
from gspmd.ops.fetch_plan import FetchPlan, Geometry, Hop, Reading, fetch_plan, geometry
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import IOTA, full, scalar
from gspmd.ops.moving import CONCATENATE, PAD, SLICE
from gspmd.ops.slicing import DYNAMIC_SLICE


def expand_fetches(program: Program) -> Program:
    """The local program with every fetch replaced by what moves the data."""
    body = _expand(program.body)
    return Program(program.name, body, program.mesh, program.stage, program.inputs, program.outputs)


def _expand(region: Region) -> Region:
    if not any(isinstance(node.attrs, FetchAttrs) or node.regions for node in region.nodes):
        return region
    builder = Builder()
    builder.params.extend(region.params)
    now: dict[Value, Value] = {}
    for node in region.nodes:
        operands = tuple(now.get(v, v) for v in node.operands)
        if isinstance(node.attrs, FetchAttrs):
            builder.loc = node.loc
            now[node.result] = emit_fetch(builder, node.attrs, operands[0], fetch_plan(node.attrs.reading))
        else:
            regions = tuple(map(_expand, node.regions))
            builder.nodes.append(Node(node.op, operands, node.results, node.attrs, regions, node.loc))
    return builder.region([now.get(v, v) for v in region.results])


def emit_fetch(builder: Builder, attrs: FetchAttrs, x: Value, plan: FetchPlan) -> Value:
    """One fetch, done as a plan of its reading says."""
    return _Fetch(builder, attrs, x, plan).run()


class _Fetch:
    """Emits one fetch."""

    def __init__(self, builder: Builder, attrs: FetchAttrs, x: Value, plan: FetchPlan) -> None:
        self.b, self.x, self.dim, self.fill = builder, x, attrs.dim, attrs.fill
        self.r: Reading = attrs.reading
        self.g: Geometry = geometry(self.r)
        self.plan = plan

    def run(self) -> Value:
        """The buffer, the device's part of it, and the fill outside the tensor."""
        plan, width = self.plan, self.g.width
        if plan.kind == "gathered":
            buffer = ALL_GATHER(self.b, self.x, dim=self.dim, axes=self.r.axes)
        else:
            slabs = [self._hop(h) for h in plan.hops]
            buffer = slabs[0] if len(slabs) == 1 else CONCATENATE(self.b, *slabs, dimension=self.dim)
        buffer = self._padded(buffer, plan.pad_low, plan.pad_high)
        lo = None
        if plan.slice_at is not None:
            part = self._slice(buffer, plan.slice_at, plan.slice_at + width)
        else:
            lo = self._low()
            part = self._dynamic(buffer, lo - self._start() + plan.pad_low)
        if self.fill is None or not plan.outside or (plan.zeros and str(float(self.fill)) == "0.0"):
            return part
        return self._masked(part, lo or self._low())

    def _hop(self, hop: Hop) -> Value:
        slab = self._slice(self.x, hop.low, hop.high)
        if not hop.rounds:
            return slab
        got: Value | None = None
        for round_ in range(hop.rounds):
            moved = AFFINE_PERMUTE(
                self.b,
                slab,
                axes=self.r.axes,
                add=hop.add,
                mul=hop.mul,
                div=hop.div,
                round=round_,
                count=None if hop.count == parts(self.r.axes) else hop.count,
            )
            if got is None:
                got = moved
            else:
                mine = self._round(hop).compare("EQ", round_)
                got = SELECT(self.b, mine.value, moved, got)
        assert got is not None
        return got

    def _index(self, axes: Axes) -> Expression:
        if parts(axes) == 1:
            return Expression(self.b, scalar(self.b, 0, "i32"))
        return Expression(self.b, AXIS_INDEX(self.b, axes=axes))

    def _floor(self, mul: int, add: int, div: int) -> Expression:
        """floor((mul*i + add) / div) for the index along the operand's axes, by a division of natural numbers."""
        y = self._index(self.r.axes) * mul + add
        if div == 1:
            return y
        least = min(add, mul * (parts(self.r.axes) - 1) + add)
        lift = max(0, -(least // div))
        return (y + lift * div) / div - lift

    def _round(self, hop: Hop) -> Expression:
        """How many devices below this one want the same source."""
        i = self._index(self.r.axes)
        if hop.mul == 0:
            return i
        y = i * hop.mul + hop.add
        rest = y - self._floor(hop.mul, hop.add, hop.div) * hop.div
        before = rest / hop.mul if hop.mul > 0 else ((hop.div - 1) - rest) / -hop.mul
        return Expression(self.b, _least(self.b, before.value, i.value))

    def _low(self) -> Expression:
        """Where the part that this device reads begins."""
        g = self.g
        low = self._index(self.r.to_axes) * g.scale / g.block * g.slope + g.base
        return low + self._index(self.r.k_axes) * g.kslope if g.kslope else low

    def _start(self) -> Expression:
        """Where the buffer begins."""
        at = self.plan.start
        return self._floor(at.mul, at.add, at.div) * at.scale + at.offset

    def _slice(self, x: Value, low: int, high: int) -> Value:
        shape = x.type.shape
        if (low, high) == (0, shape[self.dim]):
            return x
        start, limit = [0] * len(shape), list(shape)
        start[self.dim], limit[self.dim] = low, high
        return SLICE(self.b, x, start=tuple(start), limit=tuple(limit), stride=(1,) * len(shape))

    def _dynamic(self, x: Value, at: Expression) -> Value:
        shape, none = list(x.type.shape), scalar(self.b, 0, "i32")
        shape[self.dim] = self.g.width
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

    def _masked(self, part: Value, low: Expression) -> Value:
        """The fill where a position lies outside the tensor."""
        shape = part.type.shape
        line = (self.g.width,)
        place = Expression(self.b, IOTA(self.b, shape=ResultShape(line), dtype=as_dtype("i32"), dimension=0))
        place = place + low.spread(line)
        inside = AND(self.b, place.compare("GE", 0).value, place.compare("LT", self.r.size).value)
        where = BROADCAST_IN_DIM(self.b, inside, shape=ResultShape(shape), dims=(self.dim,))
        return SELECT(self.b, where, part, full(self.b, self.fill, part.type.dtype, shape))


def _least(builder: Builder, a: Value, b: Value) -> Value:
    return (
        Expression(builder, a)
        .compare("LT", Expression(builder, b))
        .select(Expression(builder, a), Expression(builder, b))
        .value
    )
