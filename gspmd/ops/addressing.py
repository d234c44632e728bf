"""What gather and scatter share: dimension numbers, their type rules and their factor rules (StableHLO).

An operand dimension is *batching* (goes with a dimension of the indices), *covered* by the window (passes into the
window's dimension, whatever the start: a gather's start is clamped to 0, a scatter's other starts are dropped),
*addressed* by a component of the start index, or else read at 0 by a smaller window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import dtype_kind, is_integer
from gspmd.ir.graph import Region
from gspmd.ir.opdef import Types
from gspmd.ir.rule import DimMap, Factor, Rule
from gspmd.ir.types import TensorType
from gspmd.kernels.indexing import Addressing
from gspmd.ops.reduce import CUSTOM
from gspmd.ops.rules import require, require_dims

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GatherAttrs(Attrs):
    """StableHLO's dimension numbers of a gather, and the shape of a slice."""

    offset_dims: Ints
    collapsed_slice_dims: Ints
    operand_batching_dims: Ints
    indices_batching_dims: Ints
    start_index_map: Ints
    index_vector_dim: int
    slice_sizes: Ints


@dataclass(frozen=True, slots=True)
class ScatterAttrs(Attrs):
    """StableHLO's dimension numbers of a scatter, and how updates combine.

    "set": the last one wins; "custom": by the region, which then has 2N scalar params, first those of what is there.
    """

    update_window_dims: Ints
    inserted_window_dims: Ints
    input_batching_dims: Ints
    scatter_indices_batching_dims: Ints
    scatter_dims_to_operand_dims: Ints
    index_vector_dim: int
    monoid: str = "set"


SCATTER_MONOIDS = ("set", "add", "mul", "max", "min", "and", "or", "xor", CUSTOM)
_BITS = ("and", "or", "xor")


def gather_addressing(attrs: GatherAttrs, rank: int) -> Addressing:
    """How a gather's start indices address an operand of a rank."""
    gone = attrs.collapsed_slice_dims + attrs.operand_batching_dims
    return Addressing(
        window=attrs.slice_sizes,
        kept=tuple(d for d in range(rank) if d not in gone),
        start_map=attrs.start_index_map,
        index_vector_dim=attrs.index_vector_dim,
        batching=attrs.operand_batching_dims,
        indices_batching=attrs.indices_batching_dims,
    )


def scatter_addressing(attrs: ScatterAttrs, rank: int, updates: Sequence[int]) -> Addressing:
    """How a scatter's start indices address an operand of a rank; the updates' shape tells the window."""
    gone = attrs.inserted_window_dims + attrs.input_batching_dims
    kept = tuple(d for d in range(rank) if d not in gone)
    window = [1] * rank
    for d, w in zip(kept, attrs.update_window_dims, strict=True):
        window[d] = updates[w]
    return Addressing(
        window=tuple(window),
        kept=kept,
        start_map=attrs.scatter_dims_to_operand_dims,
        index_vector_dim=attrs.index_vector_dim,
        batching=attrs.input_batching_dims,
        indices_batching=attrs.scatter_indices_batching_dims,
    )


def batch_dims(rank: int, index_vector_dim: int) -> Ints:
    """The dimensions of the indices, but for the one that holds the components of a start index."""
    return tuple(d for d in range(rank) if d != index_vector_dim)


def others(rank: int, dims: Sequence[int]) -> Ints:
    """The dimensions below `rank` that are not named."""
    return tuple(d for d in range(rank) if d not in dims)


# -- type rules ------------------------------------------------------------------------------------------------------


def _sorted_dims(op: str, constraint: str, name: str, dims: Ints, rank: int) -> None:
    require_dims(op, constraint, name, dims, rank)
    require(list(dims) == sorted(dims), f"{op}.{constraint}", f"{name} must be sorted, got {list(dims)}")


def _check_addressing(how: Addressing, collapsed: Ints, x: TensorType, indices: TensorType, op: str, name: str) -> None:
    """The constraints on the indices that both ops have, C5 to C9."""
    at, rank = how.index_vector_dim, indices.rank
    require(is_integer(indices.dtype), f"{op}.C5", f"the indices must be integers, got {indices.bare}")
    require(0 <= at <= rank, f"{op}.C6", f"index_vector_dim {at} must lie in [0, {rank}]")
    count = indices.shape[at] if at < rank else 1
    require(
        len(how.start_map) == count, f"{op}.C6", f"{name} names {len(how.start_map)} dims, a start index has {count}"
    )
    require_dims(op, "C7", f"{name} and the batching dims", how.start_map + how.batching, x.rank)
    require_dims(op, "C7", "collapsed and batching dims", collapsed + how.batching, x.rank)
    require_dims(op, "C8", "the indices' batching dims", how.indices_batching, rank)
    require(at not in how.indices_batching, f"{op}.C8", f"dim {at} of the indices holds components, it cannot batch")
    require(len(how.batching) == len(how.indices_batching), f"{op}.C8", "batching dims must come in pairs")
    for d, i in zip(how.batching, how.indices_batching, strict=True):
        n, m = x.shape[d], indices.shape[i]
        require(n == m, f"{op}.C9", f"batching dims must agree: operand dim {d} is {n}, indices dim {i} is {m}")


def gather_infer(types: Types, attrs: GatherAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: operand, indices. C2: ranks add up. C3: sorted dims. C4: slice sizes fit. C5-C9: see the indices' rules."""
    require(len(types) == 2 and not regions, "gather.C1", f"takes an operand and indices, got {len(types)} operands")
    x, indices = types
    gone = attrs.collapsed_slice_dims + attrs.operand_batching_dims
    require(
        x.rank == len(attrs.offset_dims) + len(gone) == len(attrs.slice_sizes),
        "gather.C2",
        f"offset, collapsed and batching dims must add up to the operand's rank {x.rank}, as must slice_sizes "
        f"{list(attrs.slice_sizes)}; got {len(attrs.offset_dims)} and {len(gone)}",
    )
    batch = [n for d, n in enumerate(indices.shape) if d != attrs.index_vector_dim]
    rank = len(batch) + len(attrs.offset_dims)
    _sorted_dims("gather", "C3", "offset_dims", attrs.offset_dims, rank)
    _sorted_dims("gather", "C3", "collapsed_slice_dims", attrs.collapsed_slice_dims, x.rank)
    _sorted_dims("gather", "C3", "operand_batching_dims", attrs.operand_batching_dims, x.rank)
    for d, (w, n) in enumerate(zip(attrs.slice_sizes, x.shape, strict=True)):
        require(0 <= w <= n, "gather.C4", f"dim {d}: a slice of {w} elements does not fit the operand's {n}")
        ok = d not in gone or w == 1 or (d in attrs.operand_batching_dims and w == n)
        require(ok, "gather.C4", f"dim {d} is not in the result, so its slice must have 1 element, not {w}")
    how = gather_addressing(attrs, x.rank)
    _check_addressing(how, attrs.collapsed_slice_dims, x, indices, "gather", "start_index_map")
    shape = [0] * rank
    for d, k in zip(attrs.offset_dims, how.kept, strict=True):
        shape[d] = attrs.slice_sizes[k]
    for d, n in zip(others(rank, attrs.offset_dims), batch, strict=True):
        shape[d] = n
    return (x.with_shape(shape),)


def scatter_infer(types: Types, attrs: ScatterAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: operands, indices, updates. C2: ranks. C3: sorted dims. C4: updates' dtype, shape. C5-C9 as for gather.

    C10: the monoid. C11: it or a region. C12: operands of one shape, updates too. C13, C14: the region's signature.
    """
    custom = attrs.monoid == CUSTOM
    require(custom == bool(regions), "scatter.C11", f"monoid {attrs.monoid} with {len(regions)} regions")
    count = len(types)
    ok = count % 2 == 1 and count > 1 if custom else count == 3
    require(ok, "scatter.C1", f"takes operand, indices, updates; got {len(types)}")
    n = len(types) // 2
    operands, indices, new = types[:n], types[n], types[n + 1 :]
    shapes = types[0].shape, types[n + 1].shape
    for x, updates in zip(operands, new, strict=True):
        same = (x.shape, updates.shape) == shapes
        require(same, "scatter.C12", f"operands {_texts(operands)} and updates {_texts(new)} are not of one shape each")
        _check_scatter(x, indices, updates, attrs)
    if custom:
        _check_region(operands, regions[0])
    return tuple(x.bare for x in operands)


def _texts(types: Types) -> str:
    return ", ".join(t.bare.text() for t in types)


def _check_region(operands: Types, region: Region) -> None:
    wanted = tuple(t.with_shape(()) for t in operands)
    params, results = (tuple(v.type.bare for v in vs) for vs in (region.params, region.results))
    require(params == wanted * 2, "scatter.C13", f"the region takes {_texts(params)}, wanted is {_texts(wanted * 2)}")
    require(results == wanted, "scatter.C14", f"the region returns {_texts(results)}, wanted is {_texts(wanted)}")


def _check_scatter(x: TensorType, indices: TensorType, updates: TensorType, attrs: ScatterAttrs) -> None:
    gone = attrs.inserted_window_dims + attrs.input_batching_dims
    require(
        x.rank == len(attrs.update_window_dims) + len(gone),
        "scatter.C2",
        f"window, inserted and batching dims must add up to the operand's rank {x.rank}, got "
        f"{len(attrs.update_window_dims)} and {len(gone)}",
    )
    _sorted_dims("scatter", "C3", "update_window_dims", attrs.update_window_dims, updates.rank)
    _sorted_dims("scatter", "C3", "inserted_window_dims", attrs.inserted_window_dims, x.rank)
    _sorted_dims("scatter", "C3", "input_batching_dims", attrs.input_batching_dims, x.rank)
    require(x.dtype == updates.dtype, "scatter.C4", f"the updates are {updates.bare}, the operand {x.bare}")
    how = scatter_addressing(attrs, x.rank, updates.shape)
    for d in how.kept:
        w, n = how.window[d], x.shape[d]
        require(w <= n, "scatter.C4", f"a window of {w} elements does not fit the operand's {n} in dim {d}")
    batch = [n for d, n in enumerate(indices.shape) if d != attrs.index_vector_dim]
    given = [updates.shape[d] for d in others(updates.rank, attrs.update_window_dims)]
    require(batch == given, "scatter.C4", f"the indices ask for updates {batch}, the updates' other dims are {given}")
    _check_addressing(how, attrs.inserted_window_dims, x, indices, "scatter", "scatter_dims_to_operand_dims")
    require(
        attrs.monoid in SCATTER_MONOIDS,
        "scatter.C10",
        f"monoid {attrs.monoid!r} is none of {', '.join(SCATTER_MONOIDS)}",
    )
    ordered = x.dtype.kind != "c" or attrs.monoid not in ("max", "min")
    require(ordered, "scatter.C10", f"{attrs.monoid} needs ordered elements, the operand is {x.bare}")
    bits = attrs.monoid not in _BITS or dtype_kind(x.dtype) in ("bool", "int", "uint")
    require(bits, "scatter.C10", f"{attrs.monoid} combines bits, the operand is {x.bare}")


# -- factor rules ----------------------------------------------------------------------------------------------------


def _window_maps(
    how: Addressing, x: TensorType, factors: list[Factor], batch: dict[int, int], lookup: Factor
) -> tuple[tuple[DimMap, ...], dict[int, DimMap]]:
    """The operand's map, and of each kept dimension the map of the window's; new factors are appended.

    `batch` has the factor of each dimension of the indices; `lookup` is the pattern of an addressed dim's factor.
    """
    dims: list[DimMap] = []
    window: dict[int, DimMap] = {}
    for d, n in enumerate(x.shape):
        if d in how.batching:
            dims.append((batch[how.indices_batching[how.batching.index(d)]],))
            continue
        covered = d in how.kept and how.window[d] == n
        dims.append((len(factors),))
        if covered:
            window[d] = dims[-1]
            factors.append(Factor(n))
            continue
        factors.append(Factor(n, lookup.kind, lookup.monoid) if d in how.start_map else Factor(n, "whole"))
        if d in how.kept:
            window[d] = (len(factors),)
            factors.append(Factor(how.window[d], "whole"))
    return tuple(dims), window


def _index_map(indices: TensorType, at: int, factors: list[Factor], batch: dict[int, int]) -> tuple[DimMap, ...]:
    if at < indices.rank:
        factors.append(Factor(indices.shape[at], "whole"))
    return tuple((len(factors) - 1,) if d == at else (batch[d],) for d in range(indices.rank))


def gather_rule(operands: Types, results: Types, attrs: GatherAttrs) -> Rule:
    """Batch and covered dims pass; an addressed dim is looked up (unreduced when split); other dims stay whole."""
    x, indices = operands
    how = gather_addressing(attrs, x.rank)
    index_dims = batch_dims(indices.rank, attrs.index_vector_dim)
    factors = [Factor(indices.shape[i]) for i in index_dims]
    batch = {i: f for f, i in enumerate(index_dims)}
    index_map = _index_map(indices, attrs.index_vector_dim, factors, batch)
    x_map, window = _window_maps(how, x, factors, batch, Factor(0, "lookup", "add"))
    rank = results[0].rank
    result: dict[int, DimMap] = dict(zip(attrs.offset_dims, (window[d] for d in how.kept), strict=True))
    for d, i in zip(others(rank, attrs.offset_dims), index_dims, strict=True):
        result[d] = (batch[i],)
    return Rule(tuple(factors), (x_map, index_map), (tuple(result[d] for d in range(rank)),), ((0,),))


def scatter_rule(operands: Types, results: Types, attrs: ScatterAttrs) -> Rule:
    """Batching and covered dims pass; updates are reduced into the operand, whose addressed dims may be split too."""
    n = len(operands) // 2
    x, indices, updates = operands[0], operands[n], operands[n + 1]
    how = scatter_addressing(attrs, x.rank, updates.shape)
    index_dims = batch_dims(indices.rank, attrs.index_vector_dim)
    # Order decides what a "set" or a region leaves, and an update without a start cannot be dropped when it is padding.
    whole = attrs.monoid in ("set", CUSTOM) or not how.start_map
    factors = [
        Factor(indices.shape[i])
        if i in how.indices_batching
        else Factor(indices.shape[i], "whole")
        if whole
        else Factor(indices.shape[i], "reduce", attrs.monoid)
        for i in index_dims
    ]
    batch = {i: f for f, i in enumerate(index_dims)}
    index_map = _index_map(indices, attrs.index_vector_dim, factors, batch)
    x_map, window = _window_maps(how, x, factors, batch, Factor(0, "lookup"))
    update: dict[int, DimMap] = dict(zip(attrs.update_window_dims, (window[d] for d in how.kept), strict=True))
    for d, i in zip(others(updates.rank, attrs.update_window_dims), index_dims, strict=True):
        update[d] = (batch[i],)
    update_map = tuple(update[d] for d in range(updates.rank))
    linear = ((0, 2),) if attrs.monoid == "add" else ()
    return Rule(tuple(factors), ((x_map,) * n + (index_map,) + (update_map,) * n), (x_map,) * n, linear)
