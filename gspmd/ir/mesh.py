"""The device mesh: named axes over the devices, and pieces of axes (sub-axes).

A mesh is the paper's logical array of devices (section 3.1) with a name for each dimension. A *logical device* is a
position in row-major mesh order; `device_order` maps it to a physical id when the two differ. An axis may be used in
pieces: of an axis of size 8, `data:(2)4` is the digit of size 4 below a more significant digit of size 2.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from operator import index
from typing import Any, cast

from gspmd.ir.errors import ShardingError

_AXIS_NAME = re.compile(r"(?!_$)[A-Za-z_]\w*")
_AXIS_TEXT = re.compile(r"(\w+)(?::\((\d+)\)(\d+))?")
_MESH_TEXT = re.compile(r"\[([^\]]*)\](?:\s*devices=\[([\d,\s]*)\])?")


@dataclass(frozen=True, slots=True)
class Axis:
    """A piece of a mesh axis: the digit of `name` whose more significant digits have the product `pre`.

    The whole axis has `pre == 1` and the axis's own size. Pieces of size 1 vanish from canonical axis lists.
    """

    name: str
    pre: int
    size: int
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.name, self.pre, self.size)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # The hash of a string differs from process to process, so a copy must compute its own.
        return Axis, (self.name, self.pre, self.size)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Mesh:
    """A logical array of devices with named axes, major to minor: `Mesh({"data": 2, "model": 4})`.

    `Mesh(data=2, model=4)` is the same, for axes that are not called as a parameter is.

    `device_order[i]` is the physical id of logical device i; None stands for the identity. The name is for printing
    and takes no part in equality.
    """

    axes: tuple[tuple[str, int], ...]
    device_order: tuple[int, ...] | None
    name: str
    size: int
    _places: dict[str, tuple[int, int]]  # name -> (size, distance of neighbours along it in logical device numbers)
    _whole: dict[str, Axis]
    _hash: int

    def __init__(
        self,
        axes: Mapping[str, int] | Iterable[tuple[str, int]] = (),
        device_order: Iterable[int] | None = None,
        name: str = "mesh",
        **sizes: int,
    ) -> None:
        """Build and check a mesh; raises ShardingError for bad names, bad sizes, or an order that is no permutation."""
        if type(name) is not str:
            raise ShardingError(
                f"the name of a mesh is a text, got {name!r}",
                rule="mesh.C1",
                fix='write Mesh({"name": ...}) for an axis',
            )
        pairs = _checked_axes(axes, sizes)
        size = prod(s for _, s in pairs)
        order = None if device_order is None else tuple(int(d) for d in device_order)
        if order is not None:
            order = _checked_order(order, size)
        places: dict[str, tuple[int, int]] = {}
        stride = size
        for n, s in pairs:
            stride //= s
            places[n] = (s, stride)
        put = object.__setattr__
        put(self, "axes", pairs)
        put(self, "device_order", order)
        put(self, "name", name)
        put(self, "size", size)
        put(self, "_places", places)
        put(self, "_whole", {n: Axis(n, 1, s) for n, s in pairs})
        put(self, "_hash", hash((pairs, order)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mesh):
            return NotImplemented
        return self._hash == other._hash and self.axes == other.axes and self.device_order == other.device_order

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Mesh, (self.axes, self.device_order, self.name)

    def __repr__(self) -> str:
        return f"Mesh({self.text()})"

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, major to minor."""
        return tuple(n for n, _ in self.axes)

    @property
    def whole(self) -> tuple[Axis, ...]:
        """All axes that have at least two devices, whole, major to minor."""
        return tuple(a for a in self._whole.values() if a.size > 1)

    def axis_size(self, name: str) -> int:
        """The size of a named axis; raises ShardingError if the mesh has no such axis."""
        return self._place(name)[0]

    def axis(self, text: str) -> Axis:
        """The axis `data`, or the piece `data:(pre)size`, as text names it; raises ShardingError if there is none."""
        whole = self._whole.get(text)
        if whole is not None:
            return whole
        m = _AXIS_TEXT.fullmatch(text)
        if m is None:
            raise ShardingError(
                f"{text!r} is no axis name: expected a name or a piece name:(pre)size",
                rule="mesh.C4",
                fix=f"use one of {', '.join(self.axis_names)}",
            )
        if m[2] is None:
            return Axis(m[1], 1, self.axis_size(m[1]))
        axis = Axis(m[1], int(m[2]), int(m[3]))
        self.check_axis(axis)
        return axis

    def check_axis(self, axis: Axis) -> None:
        """Raise ShardingError unless the piece belongs to this mesh: the axis exists and pre*size divides its size."""
        size = self._place(axis.name)[0]
        if axis.pre < 1 or axis.size < 1 or size % (axis.pre * axis.size):
            raise ShardingError(
                f"the piece {axis.name}:({axis.pre}){axis.size} does not fit axis {axis.name!r} of size {size}: "
                f"{axis.pre}*{axis.size} must divide {size}",
                rule="mesh.C5",
                fix="choose pre and size whose product divides the size of the axis",
            )

    def stride(self, axis: Axis) -> int:
        """The distance, in logical device numbers, between devices whose digit of this piece differs by one."""
        size, stride = self._place(axis.name)
        return stride * (size // (axis.pre * axis.size))

    def digit(self, index: int, axis: Axis) -> int:
        """The coordinate of a logical device along an axis or a piece of one."""
        size, stride = self._place(axis.name)
        return index // (stride * (size // (axis.pre * axis.size))) % axis.size

    def tile_index(self, index: int, axes: tuple[Axis, ...]) -> int:
        """The mixed-radix number that a logical device's digits along the axes, major to minor, make."""
        tile = 0
        for axis in axes:
            tile = tile * axis.size + self.digit(index, axis)
        return tile

    def group(self, index: int, axes: tuple[Axis, ...]) -> tuple[int, ...]:
        """The logical devices that differ from `index` only along the axes, in the order of their tile index."""
        base = index - sum(self.digit(index, a) * self.stride(a) for a in axes)
        members = [base]
        for axis in axes:
            stride = self.stride(axis)
            members = [m + d * stride for m in members for d in range(axis.size)]
        return tuple(members)

    def coordinates(self, index: int) -> tuple[int, ...]:
        """The coordinates of a logical device, one per axis."""
        if not 0 <= index < self.size:
            raise ShardingError(
                f"device {index} is outside the mesh {self.text()} of {self.size} devices", rule="mesh.C6"
            )
        return tuple(index // stride % size for size, stride in self._places.values())

    def index(self, coords: tuple[int, ...]) -> int:
        """The logical device at the coordinates, one per axis."""
        if len(coords) != len(self.axes) or any(not 0 <= c < s for c, (_, s) in zip(coords, self.axes, strict=True)):
            raise ShardingError(f"coordinates {coords} are outside the mesh {self.text()}", rule="mesh.C6")
        return sum(c * stride for c, (_, stride) in zip(coords, self._places.values(), strict=True))

    def device(self, index: int) -> int:
        """The physical id of a logical device."""
        return index if self.device_order is None else self.device_order[index]

    def axis_text(self, axis: Axis) -> str:
        """`data` for a whole axis, `data:(pre)size` for a piece."""
        whole = axis.pre == 1 and axis.size == self._place(axis.name)[0]
        return axis.name if whole else f"{axis.name}:({axis.pre}){axis.size}"

    def text(self) -> str:
        """The mesh as `[data=2, model=4]`, followed by ` devices=[0,1,3,2]` if it has a device order."""
        body = "[" + ", ".join(f"{n}={s}" for n, s in self.axes) + "]"
        return body if self.device_order is None else f"{body} devices=[{','.join(map(str, self.device_order))}]"

    def _place(self, name: str) -> tuple[int, int]:
        place = self._places.get(name)
        if place is None:
            raise ShardingError(
                f"the mesh {self.text()} has no axis {name!r}",
                rule="mesh.C4",
                fix=f"use one of {', '.join(self.axis_names) or '(this mesh has no axes)'}",
            )
        return place


def parse_mesh(text: str, name: str = "mesh") -> Mesh:
    """Read what Mesh.text prints; raises ShardingError if the text is not of that form."""
    m = _MESH_TEXT.fullmatch(text.strip())
    pairs = [p.partition("=") for p in m[1].split(",") if p.strip()] if m else []
    if m is None or any(not size.strip().isdigit() for _, _, size in pairs):
        raise ShardingError(f"{text!r} is no mesh: expected [name=size, ...] with an optional devices=[...]")
    order = None if m[2] is None else [int(d) for d in m[2].split(",") if d.strip()]
    return Mesh([(n.strip(), int(size)) for n, _, size in pairs], order, name)


def _checked_axes(
    axes: Mapping[str, int] | Iterable[tuple[str, int]], further: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """The axes as pairs of name and size, if the names are distinct identifiers and the sizes positive."""
    items: Iterable[tuple[str, int]] = cast("Mapping[str, int]", axes).items() if isinstance(axes, Mapping) else axes
    try:
        pairs = tuple((name, index(size)) for name, size in (*items, *further.items()))
    except (TypeError, ValueError):
        raise ShardingError(
            f"a mesh has axes with a name and a whole number of devices each, got {axes if axes != () else further!r}",
            rule="mesh.C2",
            fix='write Mesh({"data": 2, "model": 4}) or Mesh(data=2, model=4)',
        ) from None
    seen: set[str] = set()
    for name, size in pairs:
        if not isinstance(cast(object, name), str) or not _AXIS_NAME.fullmatch(name):
            raise ShardingError(
                f"{name!r} cannot name a mesh axis: it must be an identifier, and not _", rule="mesh.C1"
            )
        if size < 1:
            raise ShardingError(f"mesh axis {name!r} has size {size}: it must be at least 1", rule="mesh.C2")
        if name in seen:
            raise ShardingError(f"mesh axis {name!r} is named twice", rule="mesh.C1", fix="give each axis its own name")
        seen.add(name)
    return pairs


def _checked_order(order: tuple[int, ...], size: int) -> tuple[int, ...] | None:
    """The device order if it is a permutation of the devices; None if it is the identity."""
    if sorted(order) != list(range(size)):
        raise ShardingError(
            f"the device order {list(order)[:16]} is no permutation of the {size} devices of the mesh",
            rule="mesh.C3",
            fix=f"list each of 0..{size - 1} once",
        )
    return None if order == tuple(range(size)) else order
