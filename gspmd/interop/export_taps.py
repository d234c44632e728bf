"""select_and_scatter tap by tap: windows with holes, and elements and windows that are left out.

StableHLO's op has none of these; ours has them where a device computes windows around its part of a tensor. Of every
window the element that is kept is found by comparing tap after tap; then each tap's sources go to their elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from gspmd.interop.export_writer import Expansion
from gspmd.interop.import_monoid import COMBINE
from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import as_dtype
from gspmd.ir.graph import Region, Value
from gspmd.kernels.finite import is_narrow
from gspmd.kernels.monoids import identity
from gspmd.kernels.window import around
from gspmd.ops.elementwise import AND, CONVERT, NOT, SELECT
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.literal import full, scalar
from gspmd.ops.mapping import MAP
from gspmd.ops.moving import PAD, SLICE
from gspmd.ops.reduce import CUSTOM
from gspmd.ops.window.select_and_scatter import SelectAndScatterAttrs

_NOBODY = -1  # the tap of a window that keeps no element


def by_taps(regions: tuple[Region, ...]) -> Expansion:
    """The expansion of a select_and_scatter with these regions (none if it compares and combines by name)."""

    def expand(builder: Builder, operands: Sequence[Value], attrs: SelectAndScatterAttrs) -> Sequence[Value]:
        return (_Taps(builder, operands, attrs, regions).run(),)

    return expand


class _Taps:
    """One application."""

    def __init__(
        self, b: Builder, operands: Sequence[Value], attrs: SelectAndScatterAttrs, regions: tuple[Region, ...]
    ) -> None:
        self.b, self.attrs, self.regions = b, attrs, regions
        self.custom = attrs.select == CUSTOM
        self.x, self.source = operands[:2]
        self.dtype = self.x.type.dtype
        self.init = operands[2] if self.custom else None
        self.eligible, self.live = [*operands[2 + self.custom :], None, None][:2]
        self.taps = list(product(*(range(s.size) for s in attrs.window)))

    def run(self) -> Value:
        """The result, like x."""
        if not self.custom and is_narrow(self.dtype):
            self.source = CONVERT(self.b, self.source, dtype=as_dtype("f32"))
        held = self._start()
        if self.source.type.size and self.x.type.size:
            kept = self._kept()
            for number, tap in enumerate(self.taps):
                held = self._scattered(held, Expression(self.b, kept).compare("EQ", number).value, tap)
        return held if held.type.dtype == self.dtype else CONVERT(self.b, held, dtype=self.dtype)

    def _start(self) -> Value:
        shape, dtype = self.x.type.shape, self.source.type.dtype
        if self.init is None:
            return full(self.b, around(self.attrs.scatter, dtype), dtype, shape)
        return Expression(self.b, self.init).spread(shape).value if shape else self.init

    def _kept(self) -> Value:
        """The number of the tap that each window keeps."""
        b = self.b
        valid = self.eligible or full(b, True, as_dtype("bool"), self.x.type.shape)
        best, have = self._read(self.x, self.taps[0]), self._read(valid, self.taps[0])
        nobody = full(b, _NOBODY, as_dtype("i32"), best.type.shape)
        kept = SELECT(b, have, full(b, 0, as_dtype("i32"), best.type.shape), nobody)
        for number, tap in list(enumerate(self.taps))[1:]:
            x, ok = self._read(self.x, tap), self._read(valid, tap)
            stays = AND(b, have, self._first_stays(best, x))
            taken = AND(b, ok, NOT(b, stays))
            best = SELECT(b, taken, x, best)
            kept = SELECT(b, taken, full(b, number, as_dtype("i32"), kept.type.shape), kept)
            have = Expression(b, kept).compare("NE", _NOBODY).value
        return kept if self.live is None else SELECT(b, self.live, kept, nobody)

    def _first_stays(self, a: Value, c: Value) -> Value:
        if self.custom:
            return self._mapped(self.regions[0], a, c)
        return Expression(self.b, a).compare(self.attrs.select, Expression(self.b, c)).value

    def _mapped(self, region: Region, a: Value, c: Value) -> Value:
        (value,) = MAP.emit(self.b, (a, c), Attrs(), (region,))
        return value

    def _read(self, x: Value, tap: tuple[int, ...]) -> Value:
        """What each window sees at a tap; zero (False) outside of the tensor."""
        window, counts = self.attrs.window, self.source.type.shape
        low, high = (tuple(getattr(s, side) for s in window) for side in ("low", "high"))
        none = scalar(self.b, 0, x.type.dtype)
        padded = PAD(self.b, x, none, low=low, high=high, interior=(0,) * len(window))
        start = [k * s.window_dilation for k, s in zip(tap, window, strict=True)]
        limit = [at + s.stride * (n - 1) + 1 for at, s, n in zip(start, window, counts, strict=True)]
        return SLICE(self.b, padded, start=tuple(start), limit=tuple(limit), stride=tuple(s.stride for s in window))

    def _place(self, y: Value, tap: tuple[int, ...], fill: Any) -> Value:
        """What windows hand to the elements under a tap; `fill` for elements under none."""
        window, counts, shape = self.attrs.window, self.source.type.shape, self.x.type.shape
        low = [k * s.window_dilation - s.low for k, s in zip(tap, window, strict=True)]
        spans = [s.stride * (n - 1) + 1 for s, n in zip(window, counts, strict=True)]
        high = [n - at - span for n, at, span in zip(shape, low, spans, strict=True)]
        none = scalar(self.b, fill, y.type.dtype)
        holes = tuple(s.stride - 1 for s in window)
        return PAD(self.b, y, none, low=tuple(low), high=tuple(high), interior=holes)

    def _scattered(self, held: Value, chosen: Value, tap: tuple[int, ...]) -> Value:
        """The result so far, with the sources of a tap."""
        b, monoid = self.b, self.attrs.scatter
        if self.custom:
            new = self._mapped(self.regions[1], held, self._place(self.source, tap, 0))
            return SELECT(b, self._place(chosen, tap, False), new, held)
        fill = identity(monoid, self.source.type.dtype)
        neutral = full(b, fill, self.source.type.dtype, chosen.type.shape)
        given = self._place(SELECT(b, chosen, self.source, neutral), tap, fill)
        return COMBINE[monoid](b, held, given)
