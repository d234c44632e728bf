"""The verbs with which local bodies are written: this device's index, offset, positions, masks (ir.opdef.Localizer)."""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.axes import Axes, parts
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Node, Value
from gspmd.ir.rule import Rule
from gspmd.ir.types import TensorType
from gspmd.ops import cells
from gspmd.ops.collective import ALL_GATHER, AXIS_INDEX
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.literal import scalar
from gspmd.partitioner import padding
from gspmd.partitioner.form import LocalForm


class Devices:
    """Where a device stands, asked once in a region and kept; and which scalars are known to be zero."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.zeros: set[Value] = set()
        self._indices: dict[Axes, Value] = {}
        self._offsets: dict[tuple[Axes, int], Value] = {}

    def index(self, axes: Axes) -> Value:
        """This device's index along axes."""
        if axes not in self._indices:
            alone = parts(axes) == 1
            self._indices[axes] = scalar(self.builder, 0, cells.I32) if alone else AXIS_INDEX(self.builder, axes=axes)
        return self._indices[axes]

    def offset(self, axes: Axes, chunk: int) -> Value:
        """Where this device's chunk starts."""
        key = (axes, chunk)
        if key not in self._offsets:
            index = Expression(self.builder, self.index(axes))
            self._offsets[key] = index.value if chunk == 1 else (index * chunk).value
        return self._offsets[key]


class LocalContext:
    """A `Localizer`: one application, and the region that its local body goes to."""

    def __init__(self, devices: Devices, node: Node, form: LocalForm) -> None:
        self.devices = devices
        self.form = form
        self._node = node

    @property
    def builder(self) -> Builder:
        """The region under construction."""
        return self.devices.builder

    @property
    def node(self) -> Node:
        """The application, with global types."""
        return self._node

    @property
    def rule(self) -> Rule:
        """Its factor rule."""
        return self.form.rule

    def axes_of(self, factor: int) -> Axes:
        """The axes that split a factor; () when it is whole."""
        return self.form.axes.get(factor, ())

    def index(self, axes: Axes) -> Value:
        """This device's index in its group over the axes, an i32 scalar."""
        return self.devices.index(axes)

    def offset(self, factor: int) -> Value:
        """Where this device's chunk of a factor starts, an i32 scalar (constant 0 when the factor is whole)."""
        return self.devices.offset(self.axes_of(factor), self.chunk(factor))

    def chunk(self, factor: int) -> int:
        """Elements of a factor that every device holds (real or padding)."""
        return self.form.chunks.get(factor, self.rule.factors[factor].size)

    def positions(self, factor: int, shape: Sequence[int], dim: int, dtype: DType | str = cells.I32) -> Value:
        """An array of a local shape that holds, along `dim`, the global index of the factor."""
        offset = self.offset(factor) if self.axes_of(factor) else None
        return cells.positions(self.builder, shape, dim, offset, dtype)

    def mask(self, value: Value, dim: int, factor: int, fill: Value) -> Value:
        """`value` with the scalar `fill` where `dim`, which carries the factor, lies outside the tensor."""
        size = self.rule.factors[factor].size
        if self.chunk(factor) * parts(self.axes_of(factor)) <= size:
            return value
        return padding.masked(self.builder, value, dim, self.offset(factor), size, fill)

    def all_gather(self, value: Value, dim: int, axes: Axes) -> Value:
        """The shards of all devices of the group, in a row along `dim`."""
        return value if parts(axes) == 1 else ALL_GATHER(self.builder, value, dim=dim, axes=axes)

    def local_result(self, number: int = 0) -> TensorType:
        """The per-device type that a result must have."""
        return self.form.results[number]
