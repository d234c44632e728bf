"""Random programs with per-device code: over some axes of a mesh by hand, over the others the compiler's, ragged.

Regions stand one after the other and in loops; inside are ordinary ops, annotations of free axes, and collectives.
Every stage verifies, reads back, and computes the same.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeVar

import numpy as np
import pytest

from gspmd.driver.pipeline import run_stages
from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes, difference, parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import LOCAL_STAGES, Program, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.ops.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    AXIS_INDEX,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
)
from gspmd.ops.control import WHILE, WhileAttrs
from gspmd.ops.elementwise import ADD, COMPARE, CONVERT, TANH
from gspmd.ops.layout import BROADCAST_IN_DIM
from gspmd.ops.literal import scalar
from gspmd.ops.manual import ManualAttrs, manual_computation
from tests.partitioner import cases
from tests.partitioner.test_random_programs import MAKERS, Rng, Writer

MESHES = (
    Mesh({"x": 2, "y": 3}),
    Mesh({"x": 2, "y": 2, "z": 2}),
    Mesh({"x": 3, "y": 2}),
    Mesh({"x": 2, "y": 2}, [2, 0, 3, 1]),
)
MOST = 4000
T = TypeVar("T")


class Inside(Writer):
    """The code of one device along `manual` axes, under construction; what it needs more of comes in replicated."""

    def __init__(self, outer: Writer, manual: Axes) -> None:
        super().__init__(outer.rng, outer.mesh)
        self.outer, self.manual = outer, manual
        self.operands: list[Value] = []
        self.specs: list[Sharding] = []

    def param(self, shape: tuple[int, ...]) -> Value:
        return self.take(self.outer.param(shape), {})

    def take(self, value: Value, split: dict[int, Axes]) -> Value:
        """A value from outside, split so over manual axes."""
        self.operands.append(value)
        self.specs.append(self.spec([split.get(d, ()) for d in range(value.type.rank)]))
        shape = (n // parts(split.get(d, ())) for d, n in enumerate(value.type.shape))
        inner = self.b.param(TensorType("f32", tuple(shape)))
        self.values.append(inner)
        return inner

    def sharding(self, rank: int) -> Sharding:
        """Free axes on random dimensions."""
        found = super().sharding(rank)
        dims = tuple(DimSharding(difference(d.axes, self.manual), d.open) for d in found.dims)
        return Sharding(self.mesh, dims, manual=self.manual)

    def spec(self, manual: list[Axes]) -> Sharding:
        """How manual axes split a value, and what else is said of it outside: a free axis, dimensions that are open."""
        dims = list(manual)
        free = difference(self.mesh.whole, self.manual)
        if free and dims and not self.rng.integers(3):
            d = int(self.rng.integers(len(dims)))
            dims[d] = (*dims[d], free[0])
        return Sharding(self.mesh, tuple(DimSharding(axes, bool(self.rng.integers(2))) for axes in dims))

    def some_axes(self) -> Axes:
        """Some manual axes in some order."""
        order = self.rng.permutation(len(self.manual))
        return tuple(self.manual[i] for i in order[: int(self.rng.integers(1, len(order) + 1))])


# -- collectives -----------------------------------------------------------------------------------------------------

Exchange = Callable[[Inside, Value], Value | None]


def _divisible(w: Inside, x: Value, axes: Axes) -> int | None:
    fits = [d for d, n in enumerate(x.type.shape) if n % parts(axes) == 0]
    return fits[int(w.rng.integers(len(fits)))] if fits else None


def _gather(w: Inside, x: Value) -> Value | None:
    if not x.type.rank:
        return None
    return ALL_GATHER(w.b, x, dim=int(w.rng.integers(x.type.rank)), axes=w.some_axes())


def _sum(w: Inside, x: Value) -> Value:
    return ALL_REDUCE(w.b, x, axes=w.some_axes(), monoid=str(w.rng.choice(["add", "max", "min"])))


def _scatter(w: Inside, x: Value) -> Value | None:
    axes = w.some_axes()
    dim = _divisible(w, x, axes)
    return None if dim is None else REDUCE_SCATTER(w.b, x, dim=dim, axes=axes, monoid="add")


def _exchange(w: Inside, x: Value) -> Value | None:
    axes = w.some_axes()
    dim = _divisible(w, x, axes)
    if dim is None:
        return None
    return ALL_TO_ALL(w.b, x, from_dim=int(w.rng.integers(x.type.rank)), to_dim=dim, axes=axes)


def _permute(w: Inside, x: Value) -> Value:
    axes = w.some_axes()
    n = parts(axes)
    count = int(w.rng.integers(n + 1))
    ends = zip(w.rng.permutation(n)[:count], w.rng.permutation(n)[:count], strict=True)
    pairs = tuple((int(s), int(d)) for s, d in ends)
    return COLLECTIVE_PERMUTE(w.b, x, source=axes, target=axes, pairs=pairs)


def _number(w: Inside, x: Value) -> Value:
    me = CONVERT(w.b, AXIS_INDEX(w.b, axes=w.some_axes()), dtype=x.type.dtype)
    return ADD(w.b, x, BROADCAST_IN_DIM(w.b, me, shape=ResultShape(x.type.shape), dims=()))


EXCHANGES: tuple[Exchange, ...] = (_gather, _sum, _scatter, _exchange, _permute, _number)


# -- programs --------------------------------------------------------------------------------------------------------


def region(outer: Writer, manual: Axes) -> list[Value]:
    """Append per-device code on some values; its results."""
    w = Inside(outer, manual)
    rng = outer.rng
    for _ in range(2):
        value = outer.values[int(rng.integers(len(outer.values)))]
        w.take(value, _dealt(rng, manual, value.type.shape))
    for _ in range(6):
        x = w.values[int(rng.integers(max(0, len(w.values) - 3), len(w.values)))]
        made = _choice(rng, EXCHANGES)(w, x) if rng.integers(2) else _choice(rng, MAKERS)(w, x)
        if made is not None and 0 < prod(made.type.shape) <= MOST // parts(manual):
            w.values.append(made)
    results, outs = zip(*(_handed_out(w, v) for v in w.values[-2:]), strict=True)
    attrs = ManualAttrs(tuple(w.specs), outs, manual)
    return list(manual_computation(outer.b, w.operands, attrs, w.b.region(results)))


def _dealt(rng: Rng, manual: Axes, shape: tuple[int, ...]) -> dict[int, Axes]:
    """Manual axes on dimensions that divide; axes that find none are left out."""
    split: dict[int, Axes] = {}
    for axis in rng.permutation(len(manual)):
        held = [d for d, n in enumerate(shape) if n % (parts(split.get(d, ())) * manual[axis].size) == 0]
        if held and rng.integers(4):
            d = held[int(rng.integers(len(held)))]
            split[d] = (*split.get(d, ()), manual[axis])
    return split


def _handed_out(w: Inside, x: Value) -> tuple[Value, Sharding]:
    """Put together along some dimensions; over the axes that are left the value is made the same first."""
    dims: list[Axes] = [()] * x.type.rank
    left: list[int] = []
    for i in w.rng.permutation(len(w.manual)):
        if x.type.rank and w.rng.integers(4):
            d = int(w.rng.integers(x.type.rank))
            dims[d] = (*dims[d], w.manual[i])
        else:
            left.append(i)
    if left:
        x = ALL_REDUCE(w.b, x, axes=tuple(w.manual[i] for i in left), monoid="max")
    return x, w.spec(dims)


def _choice(rng: Rng, options: tuple[T, ...]) -> T:
    return options[int(rng.integers(len(options)))]


def in_a_loop(outer: Writer, manual: Axes) -> list[Value]:
    """A value through the same per-device code twice."""
    x = outer.values[int(outer.rng.integers(len(outer.values)))]
    types = [TensorType("i32", ()), x.type.bare]
    cond, body = Builder(), Builder()
    i, _ = (cond.param(t) for t in types)
    test = COMPARE(cond, i, scalar(cond, 2, "i32"), direction="LT")
    j, y = (body.param(t) for t in types)
    w = Inside(Writer(outer.rng, outer.mesh), manual)
    split = _dealt(outer.rng, manual, x.type.shape)
    part = w.take(y, split)
    for _ in range(3):
        made = _choice(outer.rng, (_sum, _permute, _number))(w, part)
        part = TANH(w.b, made)
    rest = difference(manual, tuple(a for axes in split.values() for a in axes))
    part = ALL_REDUCE(w.b, part, axes=rest, monoid="max") if rest else part
    (out,) = manual_computation(body, [y], ManualAttrs((w.specs[0],), (w.specs[0],), manual), w.b.region([part]))
    after = ADD(body, j, scalar(body, 1, "i32"))
    regions = (cond.region([test]), body.region([after, out]))
    start = scalar(outer.b, 0, "i32")
    return [WHILE.emit(outer.b, (start, x), WhileAttrs(2), regions)[1]]


def random_program(seed: int) -> Program:
    """One or two regions, or one in a loop, with ordinary ops before, between and after."""
    rng = np.random.default_rng(seed)
    mesh = MESHES[seed % len(MESHES)]
    axes = [a for a in mesh.whole if rng.integers(2)] or [mesh.whole[int(rng.integers(len(mesh.whole)))]]
    manual = tuple(axes)
    w = Writer(rng, mesh)
    n = parts(manual)
    w.param(tuple(int(rng.choice([n, 2 * n, 5, n * 5, 3])) for _ in range(int(rng.integers(1, 4)))))
    for step in (*"oo", "r", "o", "r" if rng.integers(2) else "l", *"oo"):
        if step == "o":
            x = w.values[int(rng.integers(max(0, len(w.values) - 3), len(w.values)))]
            made = [_choice(rng, MAKERS)(w, x)]
        else:
            made = [*(region if step == "r" else in_a_loop)(w, manual)]
        w.values += [v for v in made if v is not None and 0 < prod(v.type.shape) <= MOST]
    return Program.of("random", w.b.region(w.values[-3:]), mesh)


# The last two once showed a fault that is rare.
@pytest.mark.parametrize("seed", (*range(80), 151, 327))
def test_stages_compute_the_same(seed: int) -> None:
    program = random_program(seed)
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs]
    expected = cases.reference(program, arrays)
    for name, stage in run_stages(program).programs.items():
        text = print_program(stage)
        again = parse_program(text, OPS)
        assert print_program(again) == text
        found = cases.run_local(again, arrays) if name in LOCAL_STAGES else cases.reference(again, arrays)
        for actual, wanted in zip(found, expected, strict=True):
            scale = np.abs(wanted).max(initial=1.0)
            outcome = compare(actual, wanted, magnitude=np.full(wanted.shape, scale), terms=4000)
            assert outcome, f"{name}: {outcome.message}\n{print_program(program)}"


def test_programs_have_what_they_should() -> None:
    """Among them are all collectives, loops, regions over some and over all axes, and ragged free dimensions."""
    text = "\n".join(print_program(random_program(seed)) for seed in range(80))
    for kind in (
        "all_gather",
        "all_reduce",
        "reduce_scatter",
        "all_to_all",
        "collective_permute",
        "axis_index",
        "while",
    ):
        assert f" {kind}(" in text, kind
    assert "axes=[x] (" in text and "axes=[x, y] (" in text
