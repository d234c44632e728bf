"""Propagation over every op of the set: its examples with random annotations around them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import gspmd
from gspmd import numpy as gnp
from gspmd.inspect.explain import explain
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.parser import parse_example
from gspmd.ir.printer import value_names
from gspmd.ir.sharding import parse_sharding
from gspmd.ops import OPS
from gspmd.ops.annotate import SHARDING_CONSTRAINT
from gspmd.propagation import propagate
from tests.propagation.toy import random_annotation

MESH = Mesh({"a": 2, "b": 4, "c": 3})
RULED = [op for op in OPS.values() if op.rule is not None or op.flow is not None]
EXAMPLES = [e for op in RULED for e in op.examples if not e.startswith("mesh ")]  # those bring a mesh of their own


def annotated(example: str, rng: random.Random) -> Program:
    """The op with annotations on some of its operands and results."""
    (node,) = parse_example(example, OPS).body.nodes
    b = Builder()

    def maybe(v: Value) -> Value:
        if v.type.rank and rng.random() < 0.5:
            return SHARDING_CONSTRAINT(b, v, sharding=parse_sharding(random_annotation(rng, v.type.shape), MESH))
        return v

    operands = tuple(maybe(b.param(v.type)) for v in node.operands)
    results = b.append(node.op, operands, node.attrs, [v.type for v in node.results], node.regions)
    return Program.of("example", b.region([maybe(v) for v in results]), MESH)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_op_propagates_within_the_laws(example: str) -> None:
    for seed in range(6):
        program = annotated(example, random.Random(seed))
        done, reasons = propagate(program)
        before, after = nodes_values(program), nodes_values(done)
        for old, new in zip(before, after, strict=True):
            assert new.type.sharding is not None and not new.type.sharding.is_open
            if old.type.sharding is not None:
                assert new.type.sharding.refines(replace(old.type.sharding, replicated=()), old.type.shape)
                continue
            for d, n in zip(new.type.sharding.dims, new.type.shape, strict=True):
                assert d.parts <= max(1, n)
        for name in value_names(done).values():
            explain(done, reasons, name).text()


def test_a_row_and_its_stack_tell_each_other_what_they_know_before_a_product_speaks() -> None:
    mesh = gspmd.Mesh(data=2, model=4)

    def stacked(stack: Any, row: Any, w: Any, i: Any) -> Any:
        held = gnp.dynamic_update_slice(stack, row, (i, 0, 0))
        return gnp.tanh(held), gspmd.shard(gnp.exp(held @ w), mesh, None, "model", None)

    row = gspmd.TensorType("f32", (1, 64, 32), parse_sharding("[_, _, model]", mesh))
    stack, w = gspmd.TensorType("f32", (4, 64, 32)), gspmd.TensorType("f32", (32, 16))
    done, _ = propagate(gspmd.trace(stacked, stack, row, w, gspmd.TensorType("i32", ()), mesh=mesh).program)
    assert [t.sharding.text() for t in done.outputs if t.sharding] == ["[_, _, model]", "[_, model, _]"]


def nodes_values(program: Program) -> list[Value]:
    """Parameters and all results, regions included."""
    nodes: list[Node] = list(program.body.walk())
    inner = [v for n in nodes for r in n.regions for v in r.params]
    return [*program.body.params, *(v for n in nodes for v in n.results), *inner]
