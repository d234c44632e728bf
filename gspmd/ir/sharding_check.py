"""What makes a sharding well formed: constraints sharding.C2 to C4, and the canonical form of its fields.

An axis, or a digit of one, does one job in a tensor, and the cut points of an axis within one tensor form a chain of
divisors. Shardings are built often and repeat, so that the answer is memoised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gspmd.ir.axes import Axes, as_set, first_overlap
from gspmd.ir.dim_sharding import DimSharding, canonical_dim
from gspmd.ir.errors import ShardingError
from gspmd.ir.mesh import Mesh


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a sharding in canonical form, its axes in use, and its hash."""

    dims: tuple[DimSharding, ...]
    unreduced: Axes
    monoid: str | None
    replicated: Axes
    manual: Axes
    used: Axes
    hash: int


@lru_cache(maxsize=1 << 16)
def checked(
    mesh: Mesh, dims: tuple[DimSharding, ...], unreduced: Axes, monoid: str | None, replicated: Axes, manual: Axes
) -> Fields:
    """The canonical fields of a sharding; raises ShardingError if they clash."""
    facts = [(f"dim {i}", d.axes) for i, d in enumerate(dims)]
    facts += [("unreduced", unreduced), ("replicated", replicated), ("manual", manual)]
    for _, axes in facts:
        for axis in axes:
            mesh.check_axis(axis)
    _check_disjoint(mesh, facts)
    names = mesh.axis_names
    dims = tuple(canonical_dim(d) for d in dims)
    unreduced, replicated, manual = as_set(unreduced, names), as_set(replicated, names), as_set(manual, names)
    if unreduced and monoid is None:
        raise ShardingError(
            f"unreduced over {', '.join(map(mesh.axis_text, unreduced))} without a monoid",
            rule="sharding.C4",
            fix='name how the parts combine, such as monoid="add"',
        )
    monoid = monoid if unreduced else None
    used = tuple(a for d in dims for a in d.axes)
    return Fields(
        dims, unreduced, monoid, replicated, manual, used, hash((mesh, dims, unreduced, monoid, replicated, manual))
    )


def _check_disjoint(mesh: Mesh, facts: list[tuple[str, Axes]]) -> None:
    flat = [(where, a) for where, axes in facts for a in axes if a.size > 1]
    clash = first_overlap([a for _, a in flat])
    if clash is None:
        return
    p, q = clash
    first = next(w for w, a in flat if a is p)
    second = next(w for w, a in reversed(flat) if a is q)
    if p.pre * p.size <= q.pre or q.pre * q.size <= p.pre:
        raise ShardingError(
            f"{first} uses {mesh.axis_text(p)} and {second} uses {mesh.axis_text(q)}, but no digits of axis {p.name!r} "
            "give both: of any two cut points one must divide the other",
            rule="sharding.C3",
            fix="cut the axis at a chain of divisors",
        )
    raise ShardingError(
        f"a sharding can use an axis once: {first} uses {mesh.axis_text(p)}, {second} uses {mesh.axis_text(q)}",
        rule="sharding.C2",
        fix="use another axis, or disjoint pieces such as x:(1)2 and x:(2)2",
    )
