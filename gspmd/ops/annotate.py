"""Ops that change no number: the user's annotations, and a fence for the optimizer (paper 3.2; StableHLO; Shardy).

An annotation is where the user says what a value is: it does not let unreduced values pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, Localizer, OpDef, Trait, Types
from gspmd.ir.rule import DimMap, Direction, Factor, Rule, elementwise_rule
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


def _constraint_rule(operands: Types, results: Types, attrs: Attrs) -> Rule:
    return elementwise_rule(operands[0].shape, 1)


def _constraint_kernel(attrs: Attrs, x: Array) -> Array:
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


# -- groups and barriers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShardingGroupAttrs(Attrs):
    """The group's name. The values of an exact group have one sharding; those of another one tell each other theirs."""

    group: str
    exact: bool = True


def _one(name: str) -> Callable[[Types, Any, tuple[Region, ...]], Types]:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
        require_count(name, types, 1)
        return (types[0].bare,)

    return infer


def _through(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    return cotangents


SHARDING_GROUP: OpDef[ShardingGroupAttrs] = OpDef(
    "sharding_group",
    ShardingGroupAttrs,
    _one("sharding_group"),
    rule=_constraint_rule,
    kernel=_constraint_kernel,
    localize=_same,
    group=lambda attrs: (attrs.group, attrs.exact),
    vjp=_through,
    traits=frozenset({Trait.IDENTITY}),
    examples=('sharding_group(f32[8, 6]) group="g"', 'sharding_group(f32[8, 6]) group="h" exact=false'),
    doc="The value unchanged, sharded as the other values of its group are.",
)


@dataclass(frozen=True, slots=True)
class PropagationBarrierAttrs(Attrs):
    """The direction in which shardings pass: "none", "forward" (from the operand to the result) or "backward"."""

    allowed: Literal["none", "forward", "backward"] = "none"


def _quiet_rule(operands: Types, results: Types, attrs: PropagationBarrierAttrs) -> Rule:
    directions: tuple[Direction, ...] = ("forward", "backward")
    silent = tuple(d for d in directions if d != attrs.allowed)
    return replace(elementwise_rule(operands[0].shape, 1), silent=silent)


def _quiet_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The cotangent flows the other way, and so do shardings."""
    (ct,), attrs = cotangents, node.attrs
    assert isinstance(attrs, PropagationBarrierAttrs)
    turned = {"none": "none", "forward": "backward", "backward": "forward"}
    return [None if ct is None else PROPAGATION_BARRIER(gradient.builder, ct, allowed=turned[attrs.allowed])]


PROPAGATION_BARRIER: OpDef[PropagationBarrierAttrs] = OpDef(
    "propagation_barrier",
    PropagationBarrierAttrs,
    _one("propagation_barrier"),
    rule=_quiet_rule,
    kernel=_constraint_kernel,
    localize=_same,
    vjp=_quiet_vjp,
    traits=frozenset({Trait.IDENTITY}),
    examples=("propagation_barrier(f32[8, 6])", "propagation_barrier(f32[8, 6]) allowed=forward"),
    doc="The value unchanged; shardings pass in the allowed direction only.",
)

# -- a fence for the optimizer ---------------------------------------------------------------------------------------


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


def _barrier_kernel(attrs: Attrs, *xs: Array) -> Array | tuple[Array, ...]:
    return xs[0] if len(xs) == 1 else xs


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
    examples=("optimization_barrier(f32[6, 5], i32[4])", "optimization_barrier(f32[6, 5])"),
    doc="The operands unchanged; nothing is computed on the other side of it before all are there.",
)

FAMILY: tuple[OpDef[Any], ...] = (SHARDING_CONSTRAINT, SHARDING_GROUP, PROPAGATION_BARRIER, OPTIMIZATION_BARRIER)
