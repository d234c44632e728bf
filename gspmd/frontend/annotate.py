"""The user's annotations: `shard` and the paper's `mesh_split` (sections 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from gspmd.frontend.numpy_core import lift
from gspmd.frontend.scope import current_scope
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.axes import intersection
from gspmd.ir.errors import GspmdError, ShardingError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ops.annotate import PROPAGATION_BARRIER, SHARDING_CONSTRAINT, SHARDING_GROUP

Entry = str | Sequence[str] | None


def shard_tracer(x: ArrayLike, mesh: Mesh, *entries: Entry) -> Tracer:
    """The value, annotated: one entry per dimension, None, "data", ("a", "b"), and a trailing "?" leaves it open.

    Raises ShardingError at the user's line: for axes that the mesh has not or that are used twice, for another number
    of entries than dimensions, and for a second mesh that cannot be said in the first one's axes.
    """
    return constrain(x, sharding_of_entries(lift(x).ndim, mesh, entries))


def sharding_of_entries(rank: int, mesh: Mesh, entries: Sequence[Entry]) -> Sharding:
    """The sharding that entries, one per dimension, say."""
    loc = user_location()
    if len(entries) != rank:
        raise ShardingError(
            f"{len(entries)} entries for a value of {rank} dimensions",
            rule="shard.C1",
            loc=loc,
            fix="pass the entries one by one: shard(x, mesh, *entries)"
            if len(entries) == 1 and not isinstance(entries[0], str) and entries[0] is not None
            else "give one entry per dimension: None for one that is not split",
        )
    for e in entries:
        given: object = e
        if not (given is None or isinstance(given, (str, tuple, list))):
            raise ShardingError(
                f"{e!r} is no entry",
                rule="shard.C3",
                loc=loc,
                fix='write None, "axis", "axis?", or ("a", "b") for several axes',
            )
    try:
        return Sharding.of(mesh, *(e if e is None or isinstance(e, str) else tuple(e) for e in entries))
    except GspmdError as error:
        raise error.at(loc) from None


def constrain(x: ArrayLike, sharding: Sharding) -> Tracer:
    """The value, annotated with a sharding; over axes that are manual here there is nothing to say."""
    scope = current_scope()
    sharding = scope.state.on_its_mesh(sharding, user_location())
    taken = intersection(sharding.used, scope.manual)
    if taken:
        raise ShardingError(
            f"the sharding {sharding.text()} splits over {sharding.axes_text(taken)}, which is manual here",
            rule="shard.C4",
            loc=user_location(),
            fix="each device has its own array along a manual axis already: leave it out",
        )
    return emit(SHARDING_CONSTRAINT, lift(x), sharding=replace(sharding, manual=scope.manual))


def shard_as(*xs: ArrayLike) -> tuple[Tracer, ...]:
    """The values, all sharded alike, however propagation splits them; they must have one shape."""
    return _grouped(xs, "shard_as", exact=True)


def shard_like(*xs: ArrayLike) -> tuple[Tracer, ...]:
    """The values, each of which tells the others how it is sharded; annotations and ops may still pull them apart."""
    return _grouped(xs, "shard_like", exact=False)


def _grouped(xs: Sequence[ArrayLike], name: str, exact: bool) -> tuple[Tracer, ...]:
    values = [lift(x) for x in xs]
    shapes = {x.shape for x in values}
    if len(shapes) > 1:
        raise ShardingError(
            f"{name} takes values of one shape, got {', '.join(x.type.bare.text() for x in values)}",
            rule="shard.C5",
            loc=user_location(),
        )
    state = current_scope().state
    state.groups += 1
    return tuple(emit(SHARDING_GROUP, x, group=f"g{state.groups}", exact=exact) for x in values)


def propagation_barrier(x: ArrayLike, allowed: Literal["none", "forward", "backward"] = "none") -> Tracer:
    """The value, through which shardings pass in one direction only: "forward" to its users, "backward", or "none"."""
    if allowed not in ("none", "forward", "backward"):
        raise ShardingError(f"{allowed!r} is no direction", rule="shard.C6", loc=user_location())
    return emit(PROPAGATION_BARRIER, lift(x), allowed=allowed)


def entries_of_mapping(mesh: Mesh, dims_mapping: Sequence[Any]) -> tuple[Entry, ...]:
    """The paper's dims_mapping as entries: the number of a mesh dimension, or -1; names and None stay."""
    names = mesh.axis_names
    entries: list[Entry] = []
    for item in dims_mapping:
        if not isinstance(item, (int, np.integer)):
            entries.append(item)
        elif -1 <= item < len(names):
            entries.append(None if item == -1 else names[item])
        else:
            raise ShardingError(
                f"dims_mapping names mesh dimension {item}, but the mesh {mesh.text()} has {len(names)}",
                rule="shard.C2",
                loc=user_location(),
                fix="use -1 for a dimension that is not split",
            )
    return tuple(entries)
