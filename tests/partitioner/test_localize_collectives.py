"""Resharding, run device by device: any sharding to any other is the identity, at no more than gather + slice costs."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from gspmd.ir.axes import Axes, parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.kernels.monoids import combine
from gspmd.ops.collective import RESHARD
from gspmd.ops.collective_types import ReshardAttrs
from gspmd.runtime.layout import assemble, cut_shard
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker
from tests.partitioner import cases

Rng = np.random.Generator


def random_sharding(rng: Rng, mesh: Mesh, shape: tuple[int, ...]) -> Sharding:
    """Axes and pieces of axes dealt out to the dimensions in any order; now and then a chunk of its own."""
    pieces: list[Axis] = []
    for axis in mesh.whole:
        if axis.size % 2 == 0 and axis.size > 2 and rng.integers(2):
            pieces += [Axis(axis.name, 1, 2), Axis(axis.name, 2, axis.size // 2)]
        else:
            pieces.append(axis)
    dims: list[list[Axis]] = [[] for _ in shape]
    for i in rng.permutation(len(pieces)):
        if shape and rng.integers(4):
            dims[int(rng.integers(len(shape)))].append(pieces[int(i)])
    chunks = [
        -(-n // prod(a.size for a in axes)) + 1 if axes and rng.integers(8) == 0 else None
        for n, axes in zip(shape, dims, strict=True)
    ]
    return Sharding(mesh, tuple(DimSharding(tuple(a), chunk=c) for a, c in zip(dims, chunks, strict=True)))


def chain(shape: tuple[int, ...], shardings: list[Sharding]) -> Program:
    """A program that reshards its argument again and again."""
    builder = Builder()
    value = builder.param(TensorType("f32", shape, shardings[0]))
    for s in shardings[1:]:
        (value,) = builder.append(RESHARD, (value,), ReshardAttrs(s), (TensorType("f32", shape, s),))
    return Program.of("chain", builder.region([value]), shardings[0].mesh, "explicit")


def traffic(program: Program) -> float:
    """Wire bytes of a local program."""
    total = 0.0
    for node in program.body.nodes:
        if node.op.traffic is not None:
            total += node.op.traffic(node.attrs, node.operands[0].type.nbytes, node.result.type.nbytes).wire_bytes
    return total


@pytest.mark.parametrize("seed", range(60))
def test_chains_are_the_identity(seed: int) -> None:
    """Ragged, empty and odd shards, sub-axes, any order of axes."""
    rng = np.random.default_rng(seed)
    mesh = Mesh([{"x": 2, "y": 4}, {"x": 3, "y": 2}, {"x": 2, "y": 2, "z": 2}, {"x": 4}][seed % 4])
    for _ in range(3):
        shape = tuple(int(n) for n in rng.integers(0, 11, int(rng.integers(1, 4))))
        shardings = [random_sharding(rng, mesh, shape) for _ in range(4)]
        program = chain(shape, shardings)
        x = rng.standard_normal(shape).astype(np.float32)
        for expanded in (False, True):
            (got,) = cases.run_local(cases.lowered(program, expanded), [x])
            outcome = compare(got, x, exact=True)
            assert outcome, f"{[s.text() for s in shardings]} of {shape}: {outcome.message}"


@pytest.mark.parametrize("seed", range(60))
def test_no_dearer_than_gather_and_slice(seed: int) -> None:
    """Even dimensions: wire bytes at most those of gathering all, and no step holds more than the larger end."""
    rng = np.random.default_rng(seed)
    mesh = Mesh([{"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2}][seed % 2])
    shape = tuple(int(n) * 8 for n in rng.integers(1, 4, int(rng.integers(1, 4))))
    ends = [random_sharding(rng, mesh, shape) for _ in range(2)]
    ends = [s.with_dims(tuple(DimSharding(d.axes) for d in s.dims)) for s in ends]
    local = cases.lowered(chain(shape, ends))
    size = 4 * prod(shape)
    whole = size - 4 * prod(ends[0].local_shape(shape))
    assert traffic(local) <= whole + 1e-6, f"{ends[0].text()} to {ends[1].text()} of {shape}"
    bound = max(4 * prod(s.local_shape(shape)) for s in ends)
    for node in local.body.nodes:
        assert node.result.type.nbytes <= bound


@pytest.mark.parametrize("monoid", ["add", "max", "min"])
@pytest.mark.parametrize("seed", range(12))
def test_unreduced_values_are_combined(seed: int, monoid: str) -> None:
    """Partial values of every device, combined wherever they go; ragged dimensions included."""
    rng = np.random.default_rng(seed)
    mesh = Mesh([{"x": 2, "y": 3}, {"x": 4, "y": 2}, {"x": 2, "y": 2, "z": 2}][seed % 3])
    for _ in range(4):
        shape = tuple(int(n) for n in rng.integers(1, 11, int(rng.integers(1, 3))))
        over: Axes = tuple(a for a in mesh.whole if rng.integers(2)) or (mesh.whole[0],)
        rest = random_sharding(rng, mesh, shape)
        taken = {a.name for a in over}
        held = rest.with_dims(tuple(DimSharding(tuple(p for p in d.axes if p.name not in taken)) for d in rest.dims))
        source, target = held.with_unreduced(over, monoid), random_sharding(rng, mesh, shape)
        _check_sum(rng, shape, source, target, monoid)


def _check_sum(rng: Rng, shape: tuple[int, ...], source: Sharding, target: Sharding, monoid: str) -> None:
    terms = [rng.integers(-9, 9, shape).astype(np.float32) for _ in range(parts(source.unreduced))]
    program = chain(shape, [source, target])
    local = cases.lowered(program)
    transport, type_ = LockstepTransport(source.mesh), TensorType("f32", shape, source.reduced())
    shards = [
        cut_shard(terms[source.mesh.tile_index(i, source.unreduced)], type_, i, np.nan) for i in transport.indices
    ]
    (results,) = Walker(transport).run(local.body, [shards])
    expected = terms[0]
    for t in terms[1:]:
        expected = combine(monoid)(expected, t)
    outcome = compare(assemble(results, local.outputs[0]), expected, exact=False)
    assert outcome, f"{source.text()} to {target.text()} of {shape}: {outcome.message}"
