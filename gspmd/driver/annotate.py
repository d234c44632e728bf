"""`gspmd.shard` and `gspmd.mesh_split`: an annotation on a traced value, a real split of an array outside of traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gspmd.array import Array, from_numpy
from gspmd.driver.meshes import check_mesh
from gspmd.driver.reshard import resharded
from gspmd.frontend.annotate import Entry, entries_of_mapping, shard_tracer, sharding_of_entries
from gspmd.frontend.config import canonical_array
from gspmd.frontend.scope import is_tracing
from gspmd.ir.errors import UsageError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh


def shard(x: Any, mesh: Mesh, *entries: Entry) -> Any:
    """Annotate how a value is split over the mesh: one entry per dimension.

    An entry is None (not split), "data", ("a", "b") for several axes major to minor, or one of these with a trailing
    "?", which lets propagation split the dimension further; "?" alone leaves it open. Inside a traced function this
    annotates and returns a traced value; outside it splits an array (the same on every rank; 64-bit data is narrowed
    to 32 bits unless `enable_x64` is on) into a `gspmd.Array`, or moves one to another sharding. Raises ShardingError
    at the user's line for unknown or repeated axes and a wrong number of entries,
    UsageError for a dict.
    """
    check_mesh(mesh)
    if isinstance(x, Mapping):
        raise UsageError(
            "shard takes one array, not a nesting of them",
            loc=user_location(),
            fix="name one of them, or annotate all with gspmd.tree_map(lambda x: gspmd.shard(x, mesh, ...), nesting)",
        )
    if is_tracing():
        return shard_tracer(x, mesh, *entries)
    held = x if isinstance(x, Array) else np.asarray(x)
    target = sharding_of_entries(held.ndim, mesh, entries).closed()
    if isinstance(held, Array) and held.sharding.mesh == mesh:
        return resharded(held, target)
    return from_numpy(canonical_array(np.asarray(held)), target)


def mesh_split(x: Any, mesh: Mesh, dims_mapping: Sequence[Any]) -> Any:
    """Annotate as the paper writes it (section 3.2): for each dimension the number of a mesh dimension, or -1."""
    return shard(x, mesh, *entries_of_mapping(mesh, dims_mapping))
