"""All generators, and which ops of ours they draw."""

from __future__ import annotations

from collections.abc import Mapping

from tests.xla.sweep import contraction, control, elementwise, indexing, layout, matrices, ordering, reductions, special
from tests.xla.sweep.cases import Generator

GENERATORS: tuple[Generator, ...] = (
    *elementwise.GENERATORS,
    *special.GENERATORS,
    *layout.GENERATORS,
    *contraction.GENERATORS,
    *reductions.GENERATORS,
    *indexing.GENERATORS,
    *ordering.GENERATORS,
    *matrices.GENERATORS,
    *control.GENERATORS,
)

# Ops of ours that no generator is named after, and why.
_PROGRAMS = "no op of StableHLO or CHLO; JAX's programs (programs.py) come to it"
_OURS = "no op of StableHLO or CHLO"
_PARTITIONED = "of partitioned programs alone"
NOT_GENERATED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("lu", "geqrf", "householder_product", "svd", "eigh", "eig", "gehrd", "geqp3", "schur", "sytrd"),
            "tridiagonal_solve",
        ),
        _PROGRAMS,
    ),
    "cumulative_reduce": "drawn as a reduce_window",
    **dict.fromkeys(("qr", "solve", "random_block", "threefry2x32", "call", "bessel_i0e"), _OURS),
    **dict.fromkeys(("sharding_constraint", "sharding_group", "propagation_barrier"), "an annotation"),
    **dict.fromkeys(("custom", "manual_computation"), "a function of the user's, on whole arrays or a device's"),
    "fused": "of optimised programs alone",
    **dict.fromkeys(
        (
            *("reshard", "all_gather", "all_slice", "all_to_all", "all_reduce", "reduce_scatter"),
            *("collective_permute", "axis_index", "rechunk", "fetch", "affine_permute", "hold_once"),
        ),
        _PARTITIONED,
    ),
}
