"""Reshapes, split as both sides can express: free where the factors agree, one flat fetch where ragged."""

from __future__ import annotations

import numpy as np
import pytest

from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.errors import PartitionError
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Trait, node_rule
from gspmd.ir.sharding import DimSharding, Sharding, parse_sharding
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.ops.layout import RESHAPE, ReshapeAttrs
from gspmd.partitioner.collectives import lower_reshards
from gspmd.partitioner.localize import localize
from tests.partitioner import cases


def program_of(shape: tuple[int, ...], result: tuple[int, ...], held: Sharding, wanted: Sharding) -> Program:
    """A reshape under given shardings."""
    b = Builder()
    x = b.param(TensorType("i32", shape, held))
    (y,) = b.append(RESHAPE, (x,), ReshapeAttrs(ResultShape(result)), (TensorType("i32", result, wanted),))
    return Program.of("reshape", b.region([y]), held.mesh, "explicit")


def run(program: Program) -> int:
    """Check the values; how many collectives there are."""
    shape, result = program.inputs[0].shape, program.outputs[0].shape
    x = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape) + 1
    for expanded in (False, True):
        (got,) = cases.run_local(cases.lowered(program, expanded), [x])
        outcome = compare(got, x.reshape(result))
        assert outcome, f"{program.inputs[0].text()} -> {program.outputs[0].text()}: {outcome.message}"
    return sum(node.op.has(Trait.COLLECTIVE) for node in cases.lowered(program).body.nodes)


def random_shapes(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of one size."""

    def cut(n: int) -> tuple[int, ...]:
        out: list[int] = []
        for _ in range(int(rng.integers(1, 4)) - 1):
            d = int(rng.choice([q for q in range(1, n + 1) if n % q == 0]))
            out.append(d)
            n //= d
        return (*out, n)

    n = int(rng.choice([1, 4, 6, 8, 12, 16, 18, 20, 24, 30, 36, 62 * 8]))
    return cut(n), cut(n)


@pytest.mark.parametrize("seed", range(40))
def test_even_factors_are_free(seed: int) -> None:
    """Factors split evenly on two axes: no collective at all."""
    rng = np.random.default_rng(seed)
    done = 0
    while done < 4:
        shape, result = random_shapes(rng)
        b = Builder()
        y = RESHAPE(b, b.param(TensorType("i32", shape)), shape=ResultShape(result))
        program = Program.of("free", b.region([y]), None)
        rule = node_rule(program.body.nodes[0])
        assert rule is not None
        mesh = Mesh({"x": int(rng.integers(2, 5)), "y": int(rng.integers(2, 4))})
        factors = list(cases.splittable(rule))
        rng.shuffle(factors)
        axes: list[Axes] = [(mesh.axis("x"),), (mesh.axis("y"),)]
        explicit = cases.explicit(program, dict(zip(factors, axes, strict=False)), mesh)
        done += 1
        if explicit is not None:
            assert run(explicit) == 0


@pytest.mark.parametrize("seed", range(40))
def test_ragged_leading_dimension(seed: int) -> None:
    """Only leading dimensions are split: flat runs of different length are fetched."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        shape, result = random_shapes(rng)
        mesh = Mesh({"x": int(rng.integers(2, 6))})
        x = (mesh.axis("x"),)
        leading = [next((d for d, n in enumerate(s) if n > 1), None) for s in (shape, result)]
        if None in leading:
            continue
        held, wanted = (
            Sharding(mesh, tuple(DimSharding(x if d == at else ()) for d in range(len(s))))
            for s, at in zip((shape, result), leading, strict=True)
        )
        program = program_of(shape, result, held, wanted)
        rule = node_rule(program.body.nodes[0])
        assert rule is not None
        if rule.factors[0].kind != "whole":
            run(program)


def test_one_flat_fetch() -> None:
    """[62, 8] -> [496] on 4 devices moves 12 elements and gathers nothing."""
    mesh = Mesh({"x": 4})
    program = program_of((62, 8), (496,), parse_sharding("[x, _]", mesh), parse_sharding("[x]", mesh))
    assert run(program) == 1
    (fetch,) = [n for n in localize(lower_reshards(program)).body.nodes if n.op.has(Trait.COLLECTIVE)]
    assert fetch.op.traffic is not None
    assert fetch.op.traffic(fetch.attrs, 4 * 128, 4 * 124).wire_bytes == 4 * 12
    free = program_of((62, 8), (496,), parse_sharding("[x, _]", mesh), parse_sharding("[x/128]", mesh))
    assert run(free) == 0


def test_uneven_minor_factor_is_refused() -> None:
    """What no local reshape can do is an error, never a wrong number."""
    mesh = Mesh({"x": 4, "y": 4})
    program = program_of((4, 6), (24,), parse_sharding("[x, y]", mesh), parse_sharding("[x+y]", mesh))
    with pytest.raises(PartitionError, match="unevenly"):
        localize(lower_reshards(program))
