"""slice, pad, concatenate, reverse with random attributes, sizes and meshes against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops.literal import scalar
from gspmd.ops.moving import CONCATENATE, PAD, REVERSE, SLICE
from tests.partitioner import cases

Rng = np.random.Generator
SEEDS = range(25)


def whole(builder: Builder, shape: tuple[int, ...]) -> Value:
    """A parameter."""
    return builder.param(TensorType("f32", shape))


def check(builder: Builder, result: Value, rng: Rng) -> None:
    """Split some factors of the one op at random; the result must be the op's in every bit."""
    program = Program.of("moves", builder.region([result]), None)
    arrays = [rng.standard_normal(v.type.shape).astype(np.float32) for v in program.body.params]
    expected = cases.reference(program, arrays)[0]
    mesh = Mesh({"x": int(rng.integers(2, 6)), "y": int(rng.integers(1, 4)), "z": 2})
    axes: list[Axes] = [(mesh.axis("x"),), (mesh.axis("y"),), (mesh.axis("y"), mesh.axis("x")), ()]
    first = axes[int(rng.integers(3))]
    second = {0: axes[1], 1: axes[0], 2: ()}[axes.index(first)]
    rank = result.type.rank
    order = [int(f) for f in rng.permutation(rank)]
    split = {f: a for f, a in zip(order, (first, second), strict=False) if a}
    explicit = cases.explicit(program, split, mesh)
    assert explicit is not None
    for expanded in (True, False):
        (actual,) = cases.run_local(cases.lowered(explicit, expanded), arrays)
        outcome = compare(actual, expected, exact=True)
        node = program.body.nodes[-1]
        what = f"{node.op.name} {[v.type.text() for v in node.operands]} {node.attrs} split {split} on {mesh.text()}"
        assert outcome, f"{what}: {outcome.message}"


def sizes(rng: Rng, low: int = 0, high: int = 14) -> tuple[int, ...]:
    """A shape of rank 1 to 3."""
    return tuple(int(n) for n in rng.integers(low, high, int(rng.integers(1, 4))))


@pytest.mark.parametrize("seed", SEEDS)
def test_slice(seed: int) -> None:
    """Any start, limit and stride."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        b, shape = Builder(), sizes(rng)
        start = tuple(int(rng.integers(0, n + 1)) for n in shape)
        limit = tuple(int(rng.integers(a, n + 1)) for a, n in zip(start, shape, strict=True))
        stride = tuple(int(rng.choice([1, 1, 2, 3, 7])) for _ in shape)
        check(b, SLICE(b, whole(b, shape), start=start, limit=limit, stride=stride), rng)


@pytest.mark.parametrize("seed", SEEDS)
def test_pad(seed: int) -> None:
    """Any low, high and interior, negative ones too; the fill is data, or a constant zero of either sign."""
    rng = np.random.default_rng(seed)
    done = 0
    while done < 8:
        b, shape = Builder(), sizes(rng)
        low, high = (tuple(int(rng.integers(-4, 7)) for _ in shape) for _ in range(2))
        interior = tuple(int(rng.choice([0, 0, 1, 2, 4])) for _ in shape)
        lengths = [n + max(n - 1, 0) * i + a + z for n, i, a, z in zip(shape, interior, low, high, strict=True)]
        if min(lengths) < 0:
            continue
        done += 1
        fill = scalar(b, float(rng.choice([0.0, -0.0])), "f32") if done % 2 else whole(b, ())
        check(b, PAD(b, whole(b, shape), fill, low=low, high=high, interior=interior), rng)


@pytest.mark.parametrize("seed", SEEDS)
def test_concatenate(seed: int) -> None:
    """One to five operands, empty ones among them."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        b, shape = Builder(), sizes(rng, 1)
        at = int(rng.integers(len(shape)))
        lengths = rng.integers(0, 9, int(rng.integers(1, 6)))
        operands = [whole(b, (*shape[:at], int(n), *shape[at + 1 :])) for n in lengths]
        check(b, CONCATENATE(b, *operands, dimension=at), rng)


@pytest.mark.parametrize("seed", SEEDS)
def test_reverse(seed: int) -> None:
    """Any dims."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        b, shape = Builder(), sizes(rng)
        dims = tuple(d for d in range(len(shape)) if rng.integers(2))
        check(b, REVERSE(b, whole(b, shape), dims=dims), rng)
