"""The sharding of one tensor on a named mesh, and the order in which shardings refine each other.

Paper sections 3.1 (representation), 3.2 (partial tiling) and 3.5 (merging compatible shardings). A dimension of size n
split over axes with p parts in all has shards of c = ceil(n / p) elements, unless `chunk` says otherwise; shard i holds
[i*c, min(n, (i+1)*c)): trailing shards may be short or empty, buffers all have c.

Text, which `parse_sharding` reads back:

    sharding := "[" dim ", " dim ... "]" tail
    dim      := ["_" | axis "+" axis ...] ["/" chunk] ["?"] ["#" priority]   axes major to minor; "?" = open
    axis     := name | name ":(" pre ")" size                   a whole axis, or a piece of one
    tail     := ["~" monoid "(" axes ")"] ["^(" axes ")"] ["!(" axes ")"]      unreduced, explicitly replicated, manual

for example `[data+model, _?]`, `[data:(1)2/5, _]~add(model)`, `[_, model]^(data)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from gspmd.ir import hlo_sharding
from gspmd.ir.axes import Axes, contains, first_overlap, union
from gspmd.ir.dim_sharding import DimSharding, dim_refines, dim_text, parse_dim
from gspmd.ir.errors import ShardingError
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding_check import checked

Entry = str | tuple[str, ...] | None
_SHARDING = re.compile(r"\[([^\]]*)\](.*)", re.DOTALL)
_SET = r"\(((?:[^()]|\(\d+\))*)\)"
_TAIL = re.compile(rf"(?:~(\w+){_SET})?(?:\^{_SET})?(?:!{_SET})?")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sharding:
    """The sharding of one tensor: per-dimension axes, and the axes over which it is unreduced, replicated or manual.

    Over `unreduced` axes each device holds a partial value to be combined by `monoid` (None iff there are none).
    Over `replicated` axes propagation may not split. Over `manual` axes the user's own per-device code is in charge.
    The constructor puts everything into canonical form and raises ShardingError if an axis is used twice, is cut in two
    incompatible ways, or does not belong to the mesh.
    """

    mesh: Mesh
    dims: tuple[DimSharding, ...]
    unreduced: Axes = ()
    monoid: str | None = None
    replicated: Axes = ()
    manual: Axes = ()
    used: Axes = field(init=False)  # all axes of dims, in order
    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        fields = checked(self.mesh, self.dims, self.unreduced, self.monoid, self.replicated, self.manual)
        put = object.__setattr__
        put(self, "dims", fields.dims)
        put(self, "unreduced", fields.unreduced)
        put(self, "monoid", fields.monoid)
        put(self, "replicated", fields.replicated)
        put(self, "manual", fields.manual)
        put(self, "used", fields.used)
        put(self, "_hash", fields.hash)

    @classmethod
    def replicate(cls, mesh: Mesh, rank: int, open: bool = False) -> Sharding:
        """The sharding that splits nothing, all of its dimensions closed or all open."""
        return cls(mesh, (DimSharding((), open),) * rank)

    @classmethod
    def of(
        cls,
        mesh: Mesh,
        *entries: Entry,
        unreduced: str | tuple[str, ...] = (),
        monoid: str = "add",
        replicated: str | tuple[str, ...] = (),
        manual: str | tuple[str, ...] = (),
    ) -> Sharding:
        """Build a sharding from one entry per dimension: None, "data", "data?#1", "?", ("a", "b?"), "data:(1)2"."""
        dims = tuple(parse_dim("+".join(e) if isinstance(e, tuple) else e or "", mesh) for e in entries)
        sets = [
            tuple(mesh.axis(a) for a in ((s,) if isinstance(s, str) else s)) for s in (unreduced, replicated, manual)
        ]
        return cls(mesh, dims, sets[0], monoid if sets[0] else None, sets[1], sets[2])

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Sharding):
            return NotImplemented
        return self._hash == other._hash and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Sharding, self._key()

    def __repr__(self) -> str:
        return f"Sharding({self.text()} on {self.mesh.text()})"

    def _key(self) -> tuple[Any, ...]:
        return (self.mesh, self.dims, self.unreduced, self.monoid, self.replicated, self.manual)

    # -- what it says ---------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def is_replicated(self) -> bool:
        """Whether every device holds the whole, final value: nothing is split, unreduced or manual."""
        return not (self.used or self.unreduced or self.manual)

    @property
    def is_open(self) -> bool:
        """Whether any dimension may be split further."""
        return any(d.open for d in self.dims)

    def with_dims(self, dims: tuple[DimSharding, ...]) -> Sharding:
        """The same with other dimensions."""
        return Sharding(self.mesh, dims, self.unreduced, self.monoid, self.replicated, self.manual)

    def with_unreduced(self, axes: Axes, monoid: str | None) -> Sharding:
        """The same, but unreduced over exactly these axes."""
        return Sharding(self.mesh, self.dims, axes, monoid if axes else None, self.replicated, self.manual)

    def reduced(self) -> Sharding:
        """The same, with nothing unreduced."""
        return self if not self.unreduced else self.with_unreduced((), None)

    def closed(self) -> Sharding:
        """The same, with every dimension closed, and all of one priority."""
        return self._with_open(False)

    def settled(self) -> Sharding:
        """The same without what only propagation heeds: openness, priorities, and axes that are to be kept out."""
        closed = self.closed()
        if not closed.replicated:
            return closed
        return Sharding(self.mesh, closed.dims, self.unreduced, self.monoid, (), self.manual)

    def opened(self) -> Sharding:
        """The same, with every dimension open."""
        return self._with_open(True)

    def _with_open(self, open: bool) -> Sharding:
        if all(d.open == open and not d.priority for d in self.dims):
            return self
        return self.with_dims(tuple(DimSharding(d.axes, open, d.chunk) for d in self.dims))

    def normal(self, shape: tuple[int, ...]) -> Sharding:
        """The same without chunks that say no more than the default ceil(n / parts) for the shape."""
        _local_shape(self, shape)
        if all(d.chunk is None for d in self.dims):
            return self
        dims = zip(self.dims, shape, strict=True)
        return self.with_dims(tuple(replace(d, chunk=None) if d.chunk == -(-n // d.parts) else d for d, n in dims))

    # -- where the elements are -----------------------------------------------------------------------------------

    def chunk(self, dim: int, n: int) -> int:
        """The elements along a dimension of size n in one shard's buffer."""
        return self.dims[dim].size_of_shard(n)

    def shard_bounds(self, dim: int, n: int, tile: int) -> tuple[int, int]:
        """The elements [lo, hi) of a dimension of size n that shard `tile` holds; lo == hi if it is empty."""
        c = self.chunk(dim, n)
        return min(n, tile * c), min(n, (tile + 1) * c)

    def local_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of every device's buffer for a tensor of this global shape."""
        return _local_shape(self, shape)

    # -- order ----------------------------------------------------------------------------------------------------

    def refines(self, other: Sharding, shape: tuple[int, ...]) -> bool:
        """Whether this splits further than `other` or alike: each shard lies within the same device's shard of other.

        Per dimension other's axes are a major prefix of this one's and the chunks nest. Openness does not count.
        """
        return _refines(self, other, shape)

    def merge(self, other: Sharding, shape: tuple[int, ...]) -> Sharding | None:
        """The least sharding that refines both, or None if there is none (paper section 3.5).

        A dimension of the result is open only if it is open in both. Commutative and idempotent.
        """
        return _merge(self, other, shape)

    # -- text -----------------------------------------------------------------------------------------------------

    def axes_text(self, axes: Axes, separator: str = "+") -> str:
        """The names of the axes on this mesh, joined."""
        return separator.join(map(self.mesh.axis_text, axes))

    def dim_text(self, dim: int) -> str:
        """One dimension as in a printed type, `data+model?`; empty if closed and not split."""
        return dim_text(self.mesh, self.dims[dim])

    def tail_text(self) -> str:
        """What follows the dimensions: `~add(x,y)` unreduced, `^(x)` explicitly replicated, `!(x)` manual."""
        marks = ((f"~{self.monoid}", self.unreduced), ("^", self.replicated), ("!", self.manual))
        return "".join(f"{mark}({self.axes_text(axes, ',')})" for mark, axes in marks if axes)

    def text(self, shape: tuple[int, ...] | None = None) -> str:
        """The sharding as text, `[data+model, _?]~add(x)`; with a shape `[256@data+model, 1024@?]~add(x)`."""
        names = [self.dim_text(i) for i in range(self.rank)]
        if shape is None:
            items = [n if n and n[0] not in "?#" else "_" + n for n in names]
        else:
            _local_shape(self, shape)  # checks the rank
            items = [f"{size}@{n}" if n else str(size) for size, n in zip(shape, names, strict=True)]
        return f"[{', '.join(items)}]{self.tail_text()}"

    def to_hlo(self) -> str:
        """XLA's text of the sharding, such as `{devices=[2,1,2]<=[4] last_tile_dim_replicate}`.

        XLA cannot say open, explicitly replicated, or a chunk: the first two are dropped, the last is an error.
        """
        if any(d.chunk is not None for d in self.dims):
            raise ShardingError(
                f"XLA's text cannot express the shard size of {self.text()}: its shards have ceil(n / parts) elements",
                rule="hlo.C8",
                fix="call normal(shape) first if the size is the usual one",
            )
        if self.unreduced and self.monoid != "add":
            raise ShardingError(
                f"XLA's text cannot express {self.text()}: its unreduced values are sums, this one's monoid is "
                f"{self.monoid}",
                rule="hlo.C8",
            )
        tiling = hlo_sharding.AxisTiling(tuple(d.axes for d in self.dims), self.unreduced, self.manual)
        return hlo_sharding.to_text(self.mesh, tiling)

    @classmethod
    def from_hlo(cls, text: str, mesh: Mesh | None = None, rank: int | None = None) -> Sharding:
        """Read XLA's text on a mesh, or on one made for it; all dimensions are closed.

        `{replicated}` and the like have the given rank (0 if it is left out). Raises ShardingError, saying why, for
        what no sharding on the mesh expresses.
        """
        mesh = hlo_sharding.mesh_of([text]) if mesh is None else mesh
        tiling = hlo_sharding.to_axes(text, mesh, rank)
        dims = tuple(DimSharding(axes) for axes in tiling.dims)
        return cls(mesh, dims, tiling.unreduced, "add" if tiling.unreduced else None, (), tiling.manual)


def parse_tail(text: str, mesh: Mesh) -> dict[str, Any]:
    """Read what Sharding.tail_text prints, as the keyword arguments of Sharding."""
    m = _TAIL.fullmatch(text.strip())
    if m is None:
        raise ShardingError(
            f"{text!r} cannot follow the dimensions of a sharding",
            rule="sharding.C1",
            fix="write ~monoid(axes), ^(axes), !(axes), in this order",
        )
    sets = [tuple(mesh.axis(n.strip()) for n in s.split(",")) if s else () for s in (m[2], m[3], m[4])]
    return {"unreduced": sets[0], "monoid": m[1], "replicated": sets[1], "manual": sets[2]}


def parse_sharding(text: str, mesh: Mesh) -> Sharding:
    """Read what Sharding.text prints without a shape; raises ShardingError if it is not of that form."""
    m = _SHARDING.fullmatch(text.strip())
    if m is None:
        raise ShardingError(f"{text!r} is no sharding", rule="sharding.C1", fix="write one entry per dim: [data, _?]")
    dims = tuple(parse_dim(d, mesh) for d in m[1].split(",")) if m[1].strip() else ()
    return Sharding(mesh, dims, **parse_tail(m[2], mesh))


@lru_cache(maxsize=1 << 16)
def _local_shape(sharding: Sharding, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) != sharding.rank:
        raise ShardingError(
            f"the sharding {sharding.text()} has {sharding.rank} dimensions, but the shape {shape} has {len(shape)}",
            rule="sharding.C5",
        )
    return tuple(d.size_of_shard(n) for d, n in zip(sharding.dims, shape, strict=True))


@lru_cache(maxsize=1 << 16)
def _refines(fine: Sharding, coarse: Sharding, shape: tuple[int, ...]) -> bool:
    _check_ranks(fine, coarse, shape)
    if fine.mesh != coarse.mesh:
        return False
    if coarse.unreduced and (fine.unreduced, fine.monoid) != (coarse.unreduced, coarse.monoid):
        return False
    kept = ((coarse.replicated, fine.replicated), (coarse.manual, fine.manual))
    if any(not contains(mine, axis) for theirs, mine in kept for axis in theirs):
        return False
    return all(dim_refines(f, c, n) for f, c, n in zip(fine.dims, coarse.dims, shape, strict=True))


@lru_cache(maxsize=1 << 16)
def _merge(a: Sharding, b: Sharding, shape: tuple[int, ...]) -> Sharding | None:
    _check_ranks(a, b, shape)
    if a.mesh != b.mesh:
        return None
    dims: list[DimSharding] = []
    for p, q, n in zip(a.dims, b.dims, shape, strict=True):
        if dim_refines(p, q, n):
            finer = p
        elif dim_refines(q, p, n):
            finer = q
        else:
            return None
        # Split alike, one may write out the usual size of a shard that the other leaves unwritten.
        chunk = None if p.axes == q.axes and p.chunk != q.chunk else finer.chunk
        dims.append(DimSharding(finer.axes, p.open and q.open, chunk, min(p.priority, q.priority)))
    if a.unreduced and b.unreduced and (a.unreduced, a.monoid) != (b.unreduced, b.monoid):
        return None
    unreduced, monoid = (a.unreduced, a.monoid) if a.unreduced else (b.unreduced, b.monoid)
    replicated, manual = union(a.replicated, b.replicated), union(a.manual, b.manual)
    if replicated is None or manual is None:
        return None
    if first_overlap([*(x for d in dims for x in d.axes), *unreduced, *replicated, *manual]) is not None:
        return None
    return Sharding(a.mesh, tuple(dims), unreduced, monoid, replicated, manual)


def _check_ranks(a: Sharding, b: Sharding, shape: tuple[int, ...]) -> None:
    for s in (a, b):
        if s.rank != len(shape):
            _local_shape(s, shape)  # raises, naming both ranks
