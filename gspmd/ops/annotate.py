"""Ops that change no number: the user's annotation, and a fence for the optimizer (paper section 3.2; StableHLO).

An annotation is where the user says what a value is: it does not let unreduced values pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, OpDef, Trait, Types
from gspmd.ir.rule import DimMap, Factor, Rule, elementwise_rule
from gspmd.ir.sharding import Sharding
from gspmd.ops.rules import require, require_count


@dataclass(frozen=True, slots=True)
class ShardingConstraintAttrs(Attrs):
    """How the value is to be sharded; open dimensions may be split further."""

    sharding: Sharding


def _constraint_infer(types: Types, attrs: ShardingConstraintAttrs, regions: tuple[Region, ...]) -> Types:
    """C0: one operand. C1: the sharding has its rank."""
    require_count("sharding_constraint", types, 1)
    (x,) = types
    require(
        attrs.sharding.rank == x.rank,
        "sharding_constraint.C1",
        f"the sharding {attrs.sharding.text()} has {attrs.sharding.rank} dims, the value {x.bare.text()} {x.rank}",
        "give one entry per dimension",
    )
    return (x.with_sharding(attrs.sharding),)


def _constraint_rule(operands: Types, results: Types, attrs: ShardingConstraintAttrs) -> Rule:
    return elementwise_rule(operands[0].shape, 1)


def _constraint_kernel(attrs: ShardingConstraintAttrs, x: Array) -> Array:
    return x


def _same(ctx: Localizer, operands: Sequence[Value]) -> Sequence[Value]:
    return operands


def _constraint_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The cotangent lies as the value does."""
    (ct,) = cotangents
    return [None if ct is None else node.op.emit(gradient.builder, (ct,), node.attrs)[0]]


SHARDING_CONSTRAINT: OpDef[ShardingConstraintAttrs] = OpDef(
    "sharding_constraint",
    ShardingConstraintAttrs,
    _constraint_infer,
    rule=_constraint_rule,
    kernel=_constraint_kernel,
    localize=_same,
    vjp=_constraint_vjp,
    traits=frozenset({Trait.IDENTITY}),
    examples=("mesh @mesh = [data=2, model=3] sharding_constraint(f32[8, 6, 5]) sharding=[data, model?, _]",),
    doc="The value unchanged, sharded as the user says.",
)


def _barrier_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    return tuple(t.bare for t in types)


def _barrier_rule(operands: Types, results: Types, attrs: Attrs) -> Rule:
    """Each operand goes with its own result."""
    factors: list[Factor] = []
    maps: list[tuple[DimMap, ...]] = []
    for x in operands:
        maps.append(tuple((len(factors) + d,) for d in range(x.rank)))
        factors += [Factor(n) for n in x.shape]
    return Rule(tuple(factors), tuple(maps), tuple(maps))


def _barrier_kernel(attrs: Attrs, *xs: Array) -> tuple[Array, ...]:
    return xs


def _barrier_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """A fence for the cotangents that there are."""
    given = [ct for ct in cotangents if ct is not None]
    fenced = iter(OPTIMIZATION_BARRIER.emit(gradient.builder, given, Attrs()) if given else ())
    return [None if ct is None else next(fenced) for ct in cotangents]


OPTIMIZATION_BARRIER: OpDef[Attrs] = OpDef(
    "optimization_barrier",
    Attrs,
    _barrier_infer,
    rule=_barrier_rule,
    kernel=_barrier_kernel,
    vjp=_barrier_vjp,
    traits=frozenset({Trait.IDENTITY}),
    examples=("optimization_barrier(f32[6, 5], i32[4])",),
    doc="The operands unchanged; nothing is computed on the other side of it before all are there.",
)

FAMILY: tuple[OpDef[Any], ...] = (SHARDING_CONSTRAINT, OPTIMIZATION_BARRIER)
