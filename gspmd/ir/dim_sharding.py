"""The sharding of one dimension: which axes split it, and how large its shards are.

The part of the algebra (paper section 3.1) that looks at a dimension alone; `sharding.py` puts dimensions together. Its
text is `data+model/5?#1`: axes major to minor, the size of a shard if it is not the usual one, `?` if more axes may
come, and the round of propagation in which the annotation counts if it is not the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from gspmd.ir.axes import Axes, canonical, is_prefix, parts
from gspmd.ir.errors import ShardingError
from gspmd.ir.mesh import Mesh

_DIM = re.compile(r"([^/?#]*)(?:/(\d+))?(\?)?(?:#(\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class DimSharding:
    """How one dimension is split: the axes, major to minor; whether more may be added; the size of one shard.

    `chunk` is None when a shard has the usual ceil(n / parts) elements. `priority` belongs to annotations: propagation
    hears of those with 0 first, and of the others round by round.
    """

    axes: Axes = ()
    open: bool = False
    chunk: int | None = None
    priority: int = 0
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.axes, self.open, self.chunk, self.priority)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return DimSharding, (self.axes, self.open, self.chunk, self.priority)

    @property
    def parts(self) -> int:
        """The number of shards along the dimension."""
        return parts(self.axes)

    def size_of_shard(self, n: int) -> int:
        """The elements of one shard's buffer when the dimension has n; ShardingError if the chunk cannot cover n."""
        count = parts(self.axes)
        if self.chunk is None:
            return -(-n // count)
        if self.chunk * count < n:
            raise ShardingError(
                f"{count} shards of {self.chunk} elements cannot hold a dimension of size {n}", rule="sharding.C6"
            )
        return self.chunk


def dim_text(mesh: Mesh, dim: DimSharding) -> str:
    """One dimension as in a printed type, `data+model?`: empty if closed and not split, "?" if open and not split."""
    chunk = "" if dim.chunk is None else f"/{dim.chunk}"
    late = f"#{dim.priority}" if dim.priority else ""
    return f"{'+'.join(map(mesh.axis_text, dim.axes))}{chunk}{'?' if dim.open else ''}{late}"


def parse_dim(text: str, mesh: Mesh) -> DimSharding:
    """Read one dimension: "", "_", "?", "data", "data+model?#1", "data:(1)2/5"; raises ShardingError otherwise."""
    m = _DIM.fullmatch(text.strip())
    if m is None:
        raise ShardingError(
            f"{text!r} is no dimension sharding",
            rule="sharding.C1",
            fix="write axes joined by +, then /chunk, then ?, then #priority",
        )
    names = () if m[1] in ("", "_") else m[1].split("+")
    chunk = None if m[2] is None else int(m[2])
    return DimSharding(tuple(mesh.axis(n.strip()) for n in names), m[3] is not None, chunk, int(m[4] or 0))


def canonical_dim(d: DimSharding) -> DimSharding:
    """The same split with a canonical axis list, and no chunk where nothing is split."""
    axes = canonical(d.axes)
    chunk = d.chunk if axes else None
    if chunk is not None and chunk < 0:
        raise ShardingError(f"a shard cannot have {chunk} elements", rule="sharding.C6")
    return d if axes == d.axes and chunk == d.chunk else DimSharding(axes, d.open, chunk, d.priority)


def dim_refines(fine: DimSharding, coarse: DimSharding, n: int) -> bool:
    """Whether every shard of `fine` lies within the same device's shard of `coarse` for a dimension of size n.

    Ceil chunks do not nest by themselves: p parts refined to p*q must have chunks with c(p*q) * q == c(p).
    """
    if not coarse.axes:
        return True
    if not is_prefix(coarse.axes, fine.axes):
        return False
    return fine.size_of_shard(n) * (fine.parts // coarse.parts) == coarse.size_of_shard(n)
