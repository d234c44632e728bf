"""Programs of one op with a chosen partitioning, run device by device and compared with the op itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.axes import Axes, parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import node_rule
from gspmd.ir.rule import Access, DimMap, Rule, TensorMap
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops.collective import RESHARD
from gspmd.ops.collective_types import ReshardAttrs
from gspmd.optimizer.expand import expand
from gspmd.partitioner.collectives import lower_reshards
from gspmd.partitioner.localize import localize
from gspmd.runtime.layout import assemble, cut_shard, distribute, shard_index
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker
from tests.poison import poison

Array = NDArray[Any]
Split = Mapping[int, Axes]


def run_local(program: Program, arrays: Sequence[Array | list[Array]]) -> list[Array]:
    """Distribute the arguments with poisoned padding, run the local program in lockstep, and assemble the results.

    An argument that is unreduced is given as the list of its summands. Replicas of results must agree in every bit.
    """
    assert program.mesh is not None
    transport = LockstepTransport(program.mesh)
    shards = [_shards(a, t, transport.indices) for a, t in zip(arrays, program.inputs, strict=True)]
    results = Walker(transport).run(program.body, shards)
    for xs, t in zip(results, program.outputs, strict=True):
        _check_replicas(xs, t)
    return [assemble(xs, t) for xs, t in zip(results, program.outputs, strict=True)]


def _shards(array: Array | list[Array], type_: TensorType, indices: Sequence[int]) -> list[Array]:
    sharding = type_.sharding
    if not isinstance(array, list):
        return distribute(array, type_, indices, poison(type_.dtype))
    assert sharding is not None
    terms = [sharding.mesh.tile_index(i, sharding.unreduced) for i in indices]
    return [cut_shard(array[k], type_, i, poison(type_.dtype)) for k, i in zip(terms, indices, strict=True)]


def _check_replicas(shards: Sequence[Array], type_: TensorType) -> None:
    """Devices that hold the same part of a result hold the same bits."""
    first: dict[tuple[tuple[int, int], ...], Array] = {}
    for device, shard in enumerate(shards):
        index = shard_index(type_, device)
        real = shard[tuple(slice(0, s.stop - s.start) for s in index)]
        other = first.setdefault(tuple((s.start, s.stop) for s in index), real)
        outcome = compare(real, other, exact=True)
        assert outcome, f"replicas of {type_.text()} differ: {outcome.message}"


def summands(array: Array, count: int) -> list[Array]:
    """Arrays whose sum is nearly the given one (exactly, of integers)."""
    rng = np.random.default_rng(array.size)
    if array.dtype.kind == "b":
        return [array & (rng.integers(0, 2, array.shape) > 0) for _ in range(count - 1)] + [array]
    if array.dtype.kind in "iu":
        parts_ = [rng.integers(0, 3, array.shape).astype(array.dtype) for _ in range(count - 1)]
    else:
        parts_ = [(array * rng.choice([-1.0, 0.25, 2.0], array.shape)).astype(array.dtype) for _ in range(count - 1)]
        # What is infinite is so in one summand only; what is no number is one infinity less another.
        parts_ = [np.where(np.isfinite(p), p, np.zeros_like(p)) for p in parts_]
        parts_[0] = np.where(np.isnan(array), np.full_like(array, np.inf), parts_[0])
    rest = array.copy()
    for p in parts_:
        rest = (rest - p).astype(array.dtype)
    if array.dtype.kind not in "iu":
        rest = np.where(np.isnan(array), np.full_like(array, -np.inf), rest)
    return [*parts_, rest]


def lowered(program: Program, expanded: bool = True) -> Program:
    """From explicit to local, fetches expanded."""
    local = localize(lower_reshards(program))
    return expand(local) if expanded else local


def reference(program: Program, arrays: Sequence[Array]) -> list[Array]:
    """What a program computes on one device."""
    one = LockstepTransport(Mesh({"only": 1}))
    return [xs[0] for xs in Walker(one).run(program.body, [[a] for a in arrays])]


# -- partitionings -----------------------------------------------------------------------------------------------------


def tensor_sharding(rule: Rule, tensor: TensorMap, split: Split, mesh: Mesh) -> Sharding | None:
    """The sharding of a tensor if its factors are split so; None if it cannot be expressed."""
    dims: list[DimSharding] = []
    for dim in tensor:
        found = _dim(rule, dim, split)
        if found is None:
            return None
        dims.append(found)
    return Sharding(mesh, tuple(dims))


def _dim(rule: Rule, dim: DimMap, split: Split) -> DimSharding | None:
    """One dimension; the innermost split factor of a product may be ragged if no more-major one is split."""
    if isinstance(dim, Access):
        return DimSharding(split.get(dim.factor, ()))
    if len(dim) == 1:
        return DimSharding(split.get(dim[0], ()))
    out: Axes = ()
    chunk, below, full = None, rule.dim_size(dim), True
    for f in dim:
        axes, size = split.get(f, ()), rule.factors[f].size
        below //= max(size, 1)
        if axes and (not full or parts(axes) > size or (out and size % parts(axes))):
            return None
        if axes and size % parts(axes):
            chunk = -(-size // parts(axes)) * below
        full = full and parts(axes) == size
        out += axes
    return DimSharding(out, chunk=chunk)


def majors(rule: Rule, factor: int) -> tuple[int, ...]:
    """The factors that must be split to single elements before a factor can be split at all."""
    found, todo = set[int](), [factor]
    while todo:
        f = todo.pop()
        above = {g for t in rule.tensors for d in t if not isinstance(d, Access) and f in d for g in d[: d.index(f)]}
        todo += above - found
        found |= above
    return tuple(sorted(g for g in found if rule.factors[g].size > 1))


def splits(rule: Rule, factor: int) -> Iterator[tuple[Mesh, dict[int, Axes]]]:
    """A factor split over meshes of 2, 3 and 4, with an idle axis and, if it is small, into single elements."""
    above, size = majors(rule, factor), rule.factors[factor].size
    if prod(rule.factors[g].size for g in above) > 12:
        return
    names = {f"major{g}": rule.factors[g].size for g in above}
    wanted = [{"x": n} for n in (2, 3, 4)] + [{"idle": 2, "x": 3}] + ([{"x": size}] if 4 < size < 9 else [])
    for axes in wanted:
        mesh = Mesh(names | axes)
        yield mesh, {g: (mesh.axis(f"major{g}"),) for g in above} | {factor: (mesh.axis("x"),)}


def splittable(rule: Rule) -> tuple[int, ...]:
    """The factors that may be split at all."""
    return tuple(f for f, factor in enumerate(rule.factors) if factor.kind != "whole")


def explicit(
    program: Program,
    split: Split,
    mesh: Mesh,
    sums: tuple[int, ...] = (),
    over: Axes = (),
    reads: Mapping[tuple[int, int], Axes] = MappingProxyType({}),
) -> Program | None:
    """The one op of a program with its factors split so, its results reduced; None if a tensor cannot express it.

    Literals before it are operands that are whole on every device. The operands numbered `sums` are unreduced. `reads`:
    the axes of access dimensions, by operand and dimension, that are split otherwise than the positions that read them.
    """
    *literals, node = program.body.nodes
    rule = node_rule(node)
    assert rule is not None
    maps = [tensor_sharding(rule, t, split, mesh) for t in rule.tensors]
    for (i, d), axes in reads.items():
        found = maps[i]
        if found is not None:
            dims = [DimSharding(axes) if j == d else s for j, s in enumerate(found.dims)]
            maps[i] = Sharding(mesh, tuple(dims))
    inner = rule.result_factors()
    left = [(f, a) for f, a in split.items() if a and rule.factors[f].kind in ("reduce", "lookup") and f not in inner]
    monoids = {rule.factors[f].monoid for f, _ in left}
    if any(m is None for m in maps) or len(monoids) > 1:
        return None
    shardings = [m.with_unreduced(over, "add") if i in sums else m for i, m in enumerate(maps) if m is not None]
    count = len(node.operands)
    builder = Builder()
    now: dict[Value, Value] = {}
    for literal in literals:
        whole = literal.result.type.with_sharding(Sharding.replicate(mesh, literal.result.type.rank))
        (now[literal.result],) = builder.append(literal.op, (), literal.attrs, (whole,))
    held = dict(zip(node.operands, shardings[:count], strict=True))
    now.update((v, builder.param(v.type.with_sharding(held[v]))) for v in program.body.params)
    operands = tuple(now[v] for v in node.operands)
    axes = over + tuple(a for _, split_over in left for a in split_over)
    monoid = next(iter(monoids), "add")
    types = [
        v.type.with_sharding(s.with_unreduced(axes, monoid))
        for v, s in zip(node.results, shardings[count:], strict=True)
    ]
    regions = tuple(_replicated(r, mesh) for r in node.regions)
    results = builder.append(node.op, operands, node.attrs, types, regions)
    if axes:
        results = tuple(
            builder.append(RESHARD, (v,), ReshardAttrs(s), (v.type.with_sharding(s),))[0]
            for v, s in zip(results, shardings[count:], strict=True)
        )
    return Program.of("case", builder.region(results), mesh, "explicit")


def _replicated(region: Region, mesh: Mesh) -> Region:
    """A region whose values are whole on every device."""
    now: dict[Value, Value] = {}

    def fresh(values: Sequence[Value]) -> tuple[Value, ...]:
        for v in values:
            now[v] = Value(v.type.with_sharding(Sharding.replicate(mesh, v.type.rank)), v.name)
        return tuple(now[v] for v in values)

    params = fresh(region.params)
    nodes = [
        Node(n.op, tuple(now[v] for v in n.operands), fresh(n.results), n.attrs, n.regions, n.loc) for n in region.nodes
    ]
    return Region(params, tuple(nodes), tuple(now[v] for v in region.results))
