"""The law over collectives in per-device code: what their rules say of the axes that are left to the compiler.

Each is put alone into a region over one axis; along another one every dimension of its operand and result is split,
evenly and not, and its operand is a sum that is not complete. Whatever passes must pass without a reshard.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Program, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import OpDef, Trait, node_rule
from gspmd.ir.rule import Rule
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.ir.types import TensorType
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.ops.annotate import SHARDING_CONSTRAINT
from gspmd.ops.collective_types import AllReduceAttrs, AllToAllAttrs, DimAxesAttrs, PermuteAttrs, ReduceScatterAttrs
from gspmd.ops.dot import DOT_GENERAL
from gspmd.ops.manual import ManualAttrs, manual_computation
from gspmd.partitioner.collectives import lower_reshards
from gspmd.partitioner.explicit import make_explicit
from gspmd.partitioner.localize import localize
from gspmd.propagation import propagate
from tests.partitioner import cases

# What each takes over the manual axis; shapes have pairwise different dims.
_ATTRS: dict[str, Any] = {
    "all_gather": (lambda m: DimAxesAttrs(1, m),),
    "reduce_scatter": (lambda m: ReduceScatterAttrs(1, m, "add"), lambda m: ReduceScatterAttrs(0, m, "max")),
    "all_to_all": (lambda m: AllToAllAttrs(0, 1, m), lambda m: AllToAllAttrs(1, 1, m)),
    "all_reduce": (lambda m: AllReduceAttrs(m, "add"), lambda m: AllReduceAttrs(m, "min")),
    "collective_permute": (lambda m: PermuteAttrs(m, m, None, ((0, 1),)), lambda m: PermuteAttrs(m, m)),
}
RULED = tuple(op.name for op in OPS.values() if op.has(Trait.COLLECTIVE) and op.rule is not None)
_NAME = "alone"
_SHAPE = (4, 6, 5)
_TERMS = 60  # of a sum, so many that nobody gathers them
_MESHES = tuple(Mesh({"m": 2, "x": n}) for n in (2, 3, 4))


def rules(op: OpDef[Any]) -> list[Rule]:
    """The op's rule for each of its attributes."""
    alone = _alone(op)
    found = [node_rule(_node(_program(alone, attrs, _MESHES[0]))) for attrs in _attributes(op, _MESHES[0])]
    return [rule for rule in found if rule is not None]


def check(op: OpDef[Any]) -> None:
    """Split whatever can be split; raises AssertionError where numbers differ or a rule says too little."""
    for mesh in _MESHES:
        for attrs in _attributes(op, mesh):
            _check(_alone(op), attrs, mesh)


def _alone(op: OpDef[Any]) -> OpDef[Any]:
    """The op under a name of its own: the compiler's own collectives are not what is looked at."""
    return replace(op, name=_NAME)


def _attributes(op: OpDef[Any], mesh: Mesh) -> list[Attrs]:
    return [make((mesh.axis("m"),)) for make in _ATTRS[op.name]]


def _check(op: OpDef[Any], attrs: Attrs, mesh: Mesh) -> None:
    program = _program(op, attrs, mesh)
    rule = node_rule(_node(program))
    assert rule is not None
    shapes = [v.type.shape for v in (*_node(program).operands, *_node(program).results)]
    assert [tuple(rule.dim_size(d) for d in t) for t in rule.tensors] == shapes
    exchanged = {getattr(attrs, name) for name in ("dim", "from_dim", "to_dim") if hasattr(attrs, name)}
    for d in range(len(_SHAPE)):
        for before, after in ((d, None), (None, d), (d, d)):
            explicit = _run(_program(op, attrs, mesh, before, after), op)
            passes = before == after and d not in exchanged
            assert not passes or _split(_node(explicit), d), f"it could pass dim {d}: {rule.text()}"
    explicit = _run(_program(op, attrs, mesh, summed=True), op)
    (operand,) = _node(explicit).operands
    if getattr(attrs, "monoid", "add") == "add" and _node(explicit).result.type.size <= operand.type.size:
        assert operand.type.placed.unreduced, f"it could pass sums: {rule.text()}"


def _program(
    op: OpDef[Any], attrs: Attrs, mesh: Mesh, before: int | None = None, after: int | None = None, summed: bool = False
) -> Program:
    """The collective alone in a region over `m`; dims of operand and result annotated, or the operand a product."""
    manual, free = (mesh.axis("m"),), (mesh.axis("x"),)
    inner, outer = Builder(), Builder()
    annotate = partial(_annotated, inner, mesh, manual, free)
    params = [inner.param(TensorType("f32", (*_SHAPE[:2], _TERMS) if summed else _SHAPE))]
    x = annotate(params[0], before)
    if summed:
        params.append(inner.param(TensorType("f32", (_TERMS, _SHAPE[2]))))
        x = DOT_GENERAL(inner, annotate(params[0], 2), annotate(params[1], 0), lhs_contract=(2,), rhs_contract=(0,))
    (y,) = op.emit(inner, (x,), attrs)
    results = [annotate(y, after)]
    region = inner.region(results)
    first = [
        Sharding(mesh, (DimSharding(manual, True), *[DimSharding((), True)] * (v.type.rank - 1))) for v in (*params, y)
    ]
    operands = [outer.param(TensorType("f32", (2 * v.type.shape[0], *v.type.shape[1:]))) for v in params]
    made = manual_computation(outer, operands, ManualAttrs(tuple(first[:-1]), (first[-1],), manual), region)
    return Program.of("alone", outer.region(made), mesh)


def _annotated(builder: Builder, mesh: Mesh, manual: Axes, free: Axes, x: Value, dim: int | None) -> Value:
    if dim is None:
        return x
    dims = tuple(DimSharding(free if d == dim else ()) for d in range(x.type.rank))
    return SHARDING_CONSTRAINT(builder, x, sharding=Sharding(mesh, dims, manual=manual))


def _run(program: Program, op: OpDef[Any]) -> Program:
    """The explicit stage, when all stages have been found to compute the same."""
    ops = {**OPS, op.name: op}
    rng = np.random.default_rng(len(program.inputs))
    arrays = [rng.standard_normal(t.shape).astype(np.float32) for t in program.inputs]
    (expected,) = cases.reference(program, arrays)
    explicit = make_explicit(propagate(program)[0])
    local = localize(lower_reshards(explicit))
    verify(explicit, ops)
    verify(local, ops)
    (actual,) = cases.run_local(local, arrays)
    outcome = compare(actual, expected, np.full(expected.shape, np.abs(expected).max()), 64)
    assert outcome, outcome.message
    return explicit


def _node(program: Program) -> Node:
    """The collective in the region."""
    return next(n for node in program.body.nodes for r in node.regions for n in r.nodes if n.op.name == _NAME)


def _split(node: Node, dim: int) -> bool:
    return all(v.type.placed.dims[dim].axes for v in (*node.operands, *node.results))
