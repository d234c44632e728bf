"""Random programs with random annotations, through every stage: each verifies, and the local one computes the same.

Sizes are small and odd, so that almost every dimension is ragged on some axis, and padding is poisoned.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.ops.annotate import SHARDING_CONSTRAINT
from gspmd.ops.dot import DOT_GENERAL
from gspmd.ops.elementwise import ADD, MULTIPLY, SUBTRACT, TANH
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE, TRANSPOSE
from gspmd.ops.literal import IOTA, scalar
from gspmd.ops.moving import CONCATENATE, PAD, REVERSE, SLICE
from gspmd.ops.reduce import REDUCE
from gspmd.ops.slicing import DYNAMIC_SLICE
from gspmd.optimizer.expand import expand
from gspmd.partitioner.collectives import lower_reshards
from gspmd.partitioner.explicit import make_explicit
from gspmd.partitioner.localize import localize
from gspmd.propagation import propagate
from tests.partitioner import cases

Rng = np.random.Generator
Maker = Callable[["Writer", Value], Value | None]


class Writer:
    """A random program under construction."""

    def __init__(self, rng: Rng, mesh: Mesh) -> None:
        self.rng, self.mesh = rng, mesh
        self.b = Builder()
        self.values: list[Value] = []

    def pick(self, *options: int) -> int:
        """One of the numbers."""
        return int(self.rng.choice(options))

    def param(self, shape: tuple[int, ...]) -> Value:
        """A parameter, annotated half of the time."""
        sharding = self.sharding(len(shape)) if self.rng.integers(2) else None
        value = self.b.param(TensorType("f32", shape, sharding))
        self.values.append(value)
        return value

    def sharding(self, rank: int) -> Sharding:
        """Whole axes on random dimensions, some of them open."""
        dims: list[list[str]] = [[] for _ in range(rank)]
        for axis, _ in self.mesh.axes:
            if rank and self.rng.integers(3):
                dims[int(self.rng.integers(rank))].append(axis)
        return Sharding(
            self.mesh,
            tuple(DimSharding(tuple(map(self.mesh.axis, d)), bool(self.rng.integers(2))) for d in dims),
        )


def _binary(w: Writer, x: Value) -> Value:
    alike = [v for v in w.values if v.type.shape == x.type.shape]
    op = (ADD, MULTIPLY, SUBTRACT)[int(w.rng.integers(3))]
    return op(w.b, x, alike[int(w.rng.integers(len(alike)))])


def _dot(w: Writer, x: Value) -> Value | None:
    if not 0 < x.type.rank < 4:
        return None
    d = int(w.rng.integers(x.type.rank))
    other = w.param((x.type.shape[d], w.pick(3, 5, 6)))
    return DOT_GENERAL(w.b, x, other, lhs_contract=(d,), rhs_contract=(0,))


def _reduce(w: Writer, x: Value) -> Value | None:
    if not x.type.rank:
        return None
    dims = tuple(d for d in range(x.type.rank) if not w.rng.integers(3))
    return REDUCE(w.b, x, dims=dims, monoid=str(w.rng.choice(["add", "max", "min", "add"])))


def _broadcast(w: Writer, x: Value) -> Value | None:
    if x.type.rank > 2:
        return None
    at = int(w.rng.integers(x.type.rank + 1))
    dims = tuple(d + (d >= at) for d in range(x.type.rank))
    shape = (*x.type.shape[:at], w.pick(2, 3, 5), *x.type.shape[at:])
    return BROADCAST_IN_DIM(w.b, x, shape=ResultShape(shape), dims=dims)


def _reshape(w: Writer, x: Value) -> Value:
    n, shape = x.type.size, list[int]()
    for _ in range(int(w.rng.integers(3))):
        shape.append(w.pick(*(q for q in range(1, n + 1) if n % q == 0)) if n else 1)
        n //= shape[-1]
    return RESHAPE(w.b, x, shape=ResultShape((*shape, n)))


def _slice(w: Writer, x: Value) -> Value:
    start = tuple(int(w.rng.integers(0, max(n // 2, 1))) for n in x.type.shape)
    limit = tuple(int(w.rng.integers(min(a + 1, n), n + 1)) for a, n in zip(start, x.type.shape, strict=True))
    return SLICE(w.b, x, start=start, limit=limit, stride=tuple(w.pick(1, 1, 2) for _ in start))


def _pad(w: Writer, x: Value) -> Value:
    low, high, gap = (tuple(w.pick(0, 0, 0, 1, 2) for _ in x.type.shape) for _ in range(3))
    return PAD(w.b, x, scalar(w.b, w.pick(0, 1), "f32"), low=low, high=high, interior=gap)


def _concatenate(w: Writer, x: Value) -> Value | None:
    if not x.type.rank:
        return None
    return CONCATENATE(w.b, x, TANH(w.b, x), dimension=int(w.rng.integers(x.type.rank)))


def _dynamic_slice(w: Writer, x: Value) -> Value:
    sizes = tuple(int(w.rng.integers(min(n, 1), n + 1)) for n in x.type.shape)
    return DYNAMIC_SLICE(w.b, x, *(scalar(w.b, w.pick(-1, 0, 2, 9), "i32") for _ in sizes), sizes=ResultShape(sizes))


def _iota(w: Writer, x: Value) -> Value | None:
    if not x.type.rank:
        return None
    d = int(w.rng.integers(x.type.rank))
    return ADD(w.b, x, IOTA(w.b, shape=ResultShape(x.type.shape), dtype=x.type.dtype, dimension=d))


MAKERS: tuple[Maker, ...] = (
    _binary,
    lambda w, x: TANH(w.b, x),
    _dot,
    _reduce,
    _broadcast,
    _reshape,
    lambda w, x: TRANSPOSE(w.b, x, permutation=tuple(int(d) for d in w.rng.permutation(x.type.rank))),
    _slice,
    _pad,
    _concatenate,
    lambda w, x: REVERSE(w.b, x, dims=tuple(d for d in range(x.type.rank) if w.rng.integers(2))),
    _dynamic_slice,
    _iota,
    lambda w, x: SHARDING_CONSTRAINT(w.b, x, sharding=w.sharding(x.type.rank)),
)


def random_program(seed: int) -> Program:
    """A program of about ten ops."""
    rng = np.random.default_rng(seed)
    mesh = Mesh([{"x": 2, "y": 3}, {"x": 4}, {"x": 2, "y": 2}, {"x": 3, "idle": 2}][seed % 4])
    w = Writer(rng, mesh)
    w.param(tuple(int(n) for n in rng.choice([1, 2, 3, 4, 5, 6, 8], int(rng.integers(1, 4)))))
    for _ in range(10):
        x = w.values[int(rng.integers(max(0, len(w.values) - 4), len(w.values)))]
        value = MAKERS[int(rng.integers(len(MAKERS)))](w, x)
        if value is not None and prod(value.type.shape) <= 4000:
            w.values.append(value)
    return Program.of("random", w.b.region(w.values[-3:]), mesh)


@pytest.mark.parametrize("seed", range(100))
def test_stages_compute_the_same(seed: int) -> None:
    """From annotated to expanded: legal at every stage, equal at the end; the local text reads back."""
    program = random_program(seed)
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs]
    expected = cases.reference(program, arrays)
    stages = [propagate(program)[0]]
    for run in (make_explicit, lower_reshards, localize, expand):
        stages.append(run(stages[-1]))
    for stage in stages:
        verify(stage, OPS)
    again = parse_program(print_program(stages[-2]), OPS)
    for stage in (again, stages[-1]):
        for actual, wanted in zip(cases.run_local(stage, arrays), expected, strict=True):
            scale = np.abs(wanted).max(initial=1.0)
            outcome = compare(actual, wanted, magnitude=np.full(wanted.shape, scale), terms=4000)
            assert outcome, f"{outcome.message}\n{print_program(program)}\n{print_program(stages[1])}"
