"""Ops with a window: their local bodies, from the rule's accesses and the `Window` attribute (paper section 4.3).

Along each window dimension that is split a device fetches what the windows over its own results read. The op itself,
with its window rewritten, is then the local body: padding becomes what the buffer lacks, the rest stays. Where the
operand is dilated its phase would differ from device to device; results are therefore computed from a multiple of the
dilation's period on, and those before the device's own dropped. If the taps are split and ragged, a tap beyond the end
multiplies elements that no real tap reads: all but the needed range of the operand is then replaced by the fill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from gspmd.ir.attrs import Attrs, Window, WindowDim
from gspmd.ir.axes import parts
from gspmd.ir.graph import Value
from gspmd.ir.rule import Access
from gspmd.ops import cells
from gspmd.ops.elementwise import MINIMUM
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.fetch import FETCH
from gspmd.ops.fetch_plan import Geometry, Reading, fetch_plan, geometry
from gspmd.ops.literal import full, scalar
from gspmd.ops.moving import PAD
from gspmd.ops.reduce import scalar_region
from gspmd.partitioner import padding
from gspmd.partitioner.context import LocalContext
from gspmd.partitioner.halo import undilated


@dataclass(frozen=True, slots=True)
class _Line:
    """A window dimension of one operand, and what is read along it."""

    dim: int
    reading: Reading
    geometry: Geometry


@dataclass(frozen=True, slots=True)
class _Fill:
    """What windows read outside a tensor."""

    context: LocalContext
    operands: Sequence[Value]
    access: Access
    operand: Value

    def number(self) -> int | float | None:
        """As a number, if it is known."""
        init = self.access.fill_operand
        if init is None:
            return self.access.fill
        return 0.0 if self.operands[init] in self.context.devices.zeros else None

    def value(self) -> Value:
        """As a scalar."""
        init = self.access.fill_operand
        if init is not None:
            return self.operands[init]
        return scalar(self.context.builder, self.access.fill or 0, self.operand.type.dtype)


def window_body(context: LocalContext, operands: Sequence[Value]) -> Sequence[Value]:
    """The op on what its windows read."""
    if any(0 in t.shape for t in context.form.results):
        return [full(context.builder, 0, t.dtype, t.shape) for t in context.form.results]
    held, changed, blocks = list(operands), dict[int, WindowDim](), dict[int, int]()
    sides = window_of(context.form.attrs)
    for number, tensor in enumerate(context.rule.operands):
        for d, dim in enumerate(tensor):
            if isinstance(dim, Access) and dim.window is not None and _is_split(context, dim.window):
                fill = _Fill(context, operands, dim, operands[number])
                held[number], line = _read(context, number, held[number], d, fill)
                changed[dim.window] = _side(sides[dim.window], line)
                blocks[dim.factor] = line.geometry.block
    attrs = _with_window(context.form.attrs, changed)
    regions = tuple(map(scalar_region, context.node.regions))
    results = context.node.op.emit(context.builder, held, attrs, regions)
    return [_crop(context, i, x, blocks) for i, x in enumerate(results)]


def window_of(attrs: Attrs) -> Window:
    """The window among an op's attributes."""
    return next(v for f in fields(attrs) if isinstance(v := getattr(attrs, f.name), Window))


def _with_window(attrs: Attrs, changed: dict[int, WindowDim]) -> Any:
    """The attributes with some sides of the window replaced."""
    window = Window(changed.get(i, side) for i, side in enumerate(window_of(attrs)))
    name = next(f.name for f in fields(attrs) if isinstance(getattr(attrs, f.name), Window))
    return replace(attrs, **{name: window})


def _is_split(context: LocalContext, window: int) -> bool:
    """Whether any operand, the positions or the taps of a window dimension are split."""
    for tensor, value in zip(context.rule.operands, context.node.operands, strict=True):
        for d, dim in enumerate(tensor):
            if isinstance(dim, Access) and dim.window == window:
                k = dim.kernel_factor
                split = context.axes_of(dim.factor) or (k is not None and context.axes_of(k))
                if split or (value.type.sharding is not None and value.type.sharding.dims[d].axes):
                    return True
    return False


def _read(context: LocalContext, number: int, x: Value, d: int, fill: _Fill) -> tuple[Value, _Line]:
    """Fetch what the windows over this device's results read of one operand dimension."""
    dim = fill.access
    k, o = dim.kernel_factor, dim.factor
    assert k is not None
    factors = context.rule.factors
    axes = context.node.operands[number].type.placed.dims[d].axes
    r = Reading(
        dim.size,
        axes,
        x.type.shape[d],
        factors[o].size,
        context.axes_of(o),
        context.chunk(o),
        dim.mul,
        dim.add,
        dim.div,
        factors[k].size,
        context.axes_of(k),
        context.chunk(k),
        dim.kmul,
    )
    if (whole := undilated(r)) is not r:
        x, r = _dilated(context, x, d, fill.value(), r.div), whole
    line = _Line(d, r, geometry(r))
    if r.size == 0:
        return x, line
    strict = r.k_chunk * parts(r.k_axes) > r.k_size
    x = FETCH(context.builder, x, dim=d, reading=r, fill=None if strict else fill.number())
    if strict:
        x = _only_needed(context, x, line, fill.value())
    elif fill.number() is None and fetch_plan(r).outside:
        low = cells.first_read(context.builder, r, context.index).value
        x = cells.replaced_outside(context.builder, x, d, low, r.size, fill.value())
    return x, line


def _dilated(context: LocalContext, x: Value, d: int, fill: Value, dilation: int) -> Value:
    """A device's part of the dilated operand."""
    none = (0,) * x.type.rank
    gaps = tuple(dilation - 1 if i == d else 0 for i in range(x.type.rank))
    return PAD(context.builder, x, fill, low=none, high=gaps, interior=gaps)


def _side(side: WindowDim, line: _Line) -> WindowDim:
    """How the window moves over the buffer."""
    r, g = line.reading, line.geometry
    if r.size == 0:
        return replace(side, size=r.k_chunk, base_dilation=1, low=g.span, high=0)
    high = g.span - g.phase - ((g.width - 1) * r.div + 1)
    return replace(side, size=r.k_chunk, base_dilation=r.div, low=g.phase, high=high)


def _crop(context: LocalContext, number: int, x: Value, blocks: dict[int, int]) -> Value:
    """Drop the results before the device's own."""
    shape = context.local_result(number).shape
    if x.type.shape == shape:
        return x
    leads: list[tuple[Value, int] | None] = []
    for dim in context.rule.results[number]:
        block = 1 if isinstance(dim, Access) or len(dim) != 1 else blocks.get(dim[0], 1)
        leads.append(None if block == 1 or isinstance(dim, Access) else (context.offset(dim[0]), block))
    return padding.crop(context.builder, x, shape, leads)


# -- masks -----------------------------------------------------------------------------------------------------------


def _places(context: LocalContext, line: _Line) -> Expression:
    """The position in the tensor of each cell of the buffer."""
    low = cells.first_read(context.builder, line.reading, context.index)
    return Expression(context.builder, cells.positions(context.builder, (line.geometry.width,), 0, low.value))


def _only_needed(context: LocalContext, x: Value, line: _Line, fill: Value) -> Value:
    """The fill wherever no real result reads through a real tap."""
    b, r = context.builder, line.reading
    o, k = context.index(r.to_axes), context.index(r.k_axes)
    first, last = _range(context, o, r.to_chunk, r.to_size)
    k_first, k_last = _range(context, k, r.k_chunk, r.k_size)
    near, far = (k_first, k_last) if r.kmul > 0 else (k_last, k_first)
    low, high = (first * r.mul + near * r.kmul + r.add), (last * r.mul + far * r.kmul + r.add)
    places, line_shape = _places(context, line), (line.geometry.width,)
    dilated = places * r.div
    where = cells.inside(b, places.value, 0, r.size)
    for test in (
        dilated.compare("GE", low.spread(line_shape)),
        dilated.compare("LE", high.spread(line_shape)),
        k_first.spread(line_shape).compare("LT", r.k_size),
    ):
        where = cells.both(b, where, test.value)
    assert where is not None
    return cells.choose(b, cells.along(b, where, x.type.shape, line.dim), x, fill)


def _range(context: LocalContext, index: Value, chunk: int, size: int) -> tuple[Expression, Expression]:
    """The first and the last real index of a device's chunk; the last lies before the first if there is none."""
    first = Expression(context.builder, index) * chunk
    return first, (first + chunk).apply(MINIMUM, first.number(size)) - 1
