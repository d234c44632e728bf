"""A region on scalars applied to every place of arrays (StableHLO: map)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Gradient, Localizer, Machine, OpDef, Shards, Types, rule_of
from gspmd.ir.rule import Rule, elementwise_rule, identity_map
from gspmd.ops.cells import spread
from gspmd.ops.reduce import scalar_region
from gspmd.ops.region_gradient import pulled_back
from gspmd.ops.rules import require


def _map_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    """C1: operands and one region. C2: of one shape. C3: the region takes their scalars. C4: and gives scalars."""
    require(bool(types) and len(regions) == 1, "map.C1", f"{len(types)} operands and {len(regions)} regions")
    shape = types[0].shape
    for i, t in enumerate(types):
        require(t.shape == shape, "map.C2", f"operand 0 has shape {list(shape)}, operand {i} {list(t.shape)}")
    wanted = tuple(t.with_shape(()) for t in types)
    params = tuple(v.type.bare for v in regions[0].params)
    require(params == wanted, "map.C3", f"the region takes {list(params)}, wanted is {list(wanted)}")
    results = tuple(v.type.bare for v in regions[0].results)
    require(bool(results) and all(t.rank == 0 for t in results), "map.C4", f"the region returns {list(results)}")
    return tuple(t.with_shape(shape) for t in results)


def _map_rule(types: Types, results: Types, attrs: Attrs) -> Rule:
    return elementwise_rule(types[0].shape, len(types), len(results))


def _map_execute(machine: Machine, node: Node, arguments: Sequence[Shards]) -> Sequence[Shards]:
    """The region on whole arrays; what it computes from constants alone is still a scalar."""
    found = machine.run(node.regions[0], arguments)
    shapes = [x.shape for x in arguments[0]]
    return [[np.broadcast_to(y, shape) for y, shape in zip(ys, shapes, strict=True)] for ys in found]


def _map_inline(builder: Builder, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """The region's nodes on whole arrays; what comes from constants alone is spread where it meets an array."""
    shape = operands[0].type.shape
    steps = node.regions[0].nodes
    made: dict[Value, Value] = dict(zip(node.regions[0].params, operands, strict=True))
    wide = set(made)
    for step in steps:
        if not wide.isdisjoint(step.operands):
            if not _is_pointwise(step, shape):
                return None
            wide.update(step.results)
    for step in steps:
        given = [made[v] for v in step.operands]
        if not wide.isdisjoint(step.operands):
            given = [spread(builder, v, shape) for v in given]
        results = step.op.emit(builder, given, step.attrs, tuple(map(scalar_region, step.regions)), step.loc)
        made.update(zip(step.results, results, strict=True))
    return [spread(builder, made[v], shape) for v in node.regions[0].results]


def _is_pointwise(step: Node, shape: tuple[int, ...]) -> bool:
    """Whether the op of a node on scalars does the same at every place of arrays of a shape."""
    if step.regions or any(v.type.shape for v in (*step.operands, *step.results)):
        return False
    given, wanted = ([v.type.with_shape(shape).bare for v in vs] for vs in (step.operands, step.results))
    try:
        found = [t.bare for t in step.op.infer(tuple(given), step.attrs, ())]
    except TypeRuleError:  # an op with dimensions of its own
        return False
    rule = rule_of(step.op, tuple(given), tuple(found), step.attrs) if found == wanted else None
    whole = identity_map(len(shape))
    return rule is not None and all(t == whole for t in rule.tensors) and all(f.kind == "pass" for f in rule.factors)


def _map_localize(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    return MAP.emit(ctx.builder, operands, Attrs(), (scalar_region(ctx.node.regions[0]),))


def _map_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The region's pullback at every place."""
    return pulled_back(gradient, node, cotangents, Attrs())


MAP = OpDef(
    "map",
    Attrs,
    _map_infer,
    rule=_map_rule,
    execute=_map_execute,
    localize=_map_localize,
    inline=_map_inline,
    vjp=_map_vjp,
    examples=(
        "map(f32[4, 7], f32[4, 7]) (%a: f32[], %b: f32[]) { "
        "%p = multiply(%a, %b) : f32[] %s = add(%p, %a) : f32[] return %s }",
        "map(i32[6, 5]) (%a: i32[]) { %one = constant() value=dense<1 : i32[]> : i32[] return %one }",
        "map(f32[9], i32[9]) (%a: f32[], %b: i32[]) { "
        "%f = convert(%b) dtype=f32 : f32[] %c = compare(%a, %f) direction=LT : bool[] return %c }",
    ),
    doc="A region on scalars, applied at every place.",
)

FAMILY: tuple[OpDef[Any], ...] = (MAP,)
