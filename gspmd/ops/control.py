"""while, case and call: regions that run as data says (StableHLO's specification; paper section 3.6).

Regions are closed. A loop carry is one value at five places, a branch's operand and result at two and more: `flow`
names these groups, and nothing else is known of control flow by any pass. Devices run regions in lockstep; in the
user's per-device code they may come to different predicates, and then each goes its own way. Those that exchange data
must do so together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Gradient, Machine, OpDef, Shards, Types
from gspmd.ir.types import TensorType
from gspmd.ops.loop_gradient import while_save, while_vjp
from gspmd.ops.region_gradient import pulled_back
from gspmd.ops.rules import require

Groups = tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class WhileAttrs(Attrs):
    """How often the body runs, where that is known: the front end's word, on which gradients rely."""

    trip_count: int | None = None


def _bare(values: Sequence[Value]) -> Types:
    return tuple(v.type.bare for v in values)


def _text(types: Types) -> str:
    return f"({', '.join(t.text() for t in types)})"


def _check_signature(found: Types, wanted: Types, rule: str, what: str, of: str) -> None:
    require(found == wanted, rule, f"{what} {_text(found)}, {of} {_text(wanted)}")


def _picked(lists: Sequence[Shards], places: Sequence[int]) -> list[Shards]:
    return [[xs[p] for p in places] for xs in lists]


def _put(lists: Sequence[Shards], places: Sequence[int], given: Sequence[Shards]) -> list[Shards]:
    """The lists with the shards at some places replaced."""
    out = [list(xs) for xs in lists]
    for xs, own in zip(out, given, strict=True):
        for p, x in zip(places, own, strict=True):
            xs[p] = x
    return out


# -- while -----------------------------------------------------------------------------------------------------------


def _while_infer(types: Types, attrs: WhileAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: cond and body. C2: both take the carries. C3: cond gives a bool scalar. C4: body gives carries. C5: count."""
    require(len(regions) == 2, "while.C1", f"takes two regions, cond and body, got {len(regions)}")
    cond, body = regions
    carries = tuple(t.bare for t in types)
    for name, region in (("cond", cond), ("body", body)):
        _check_signature(_bare(region.params), carries, "while.C2", f"{name} takes", "the carries are")
    _check_signature(_bare(cond.results), (TensorType("bool", ()),), "while.C3", "cond gives", "wanted is")
    _check_signature(_bare(body.results), carries, "while.C4", "body gives", "the carries are")
    count = attrs.trip_count
    require(count is None or count >= 0, "while.C5", f"the trip count cannot be negative, got {count}")
    return carries


def _while_flow(node: Node) -> Groups:
    cond, body = node.regions
    places = zip(node.operands, cond.params, body.params, body.results, node.results, strict=True)
    return tuple(places)


def _while_execute(machine: Machine, node: Node, operands: Sequence[Shards]) -> Sequence[Shards]:
    """While some devices go on and others are done, those that go on do so among themselves."""
    cond, body = node.regions
    carries = held = list(operands)
    own, here = machine, list(range(len(carries[0]) if carries else 1))
    while True:
        test = own.run(cond, held)[0]
        more = [p for p, go in enumerate(test) if go]
        if len(more) < len(here):
            carries = _put(carries, here, held)
            here, held = [here[p] for p in more], _picked(held, more)
            own = machine.among(here) if here else machine
        if not here:
            return carries
        held = own.run(body, held)


WHILE: OpDef[WhileAttrs] = OpDef(
    "while",
    WhileAttrs,
    _while_infer,
    execute=_while_execute,
    flow=_while_flow,
    trips=lambda attrs: attrs.trip_count,
    vjp=while_vjp,
    save=while_save,
    examples=(
        "while(i32[], f32[6, 5], f32[6, 5]) trip_count=3 "
        "(%i: i32[], %x: f32[6, 5], %w: f32[6, 5]) { "
        "%n = constant() value=dense<3 : i32[]> : i32[] "
        "%go = compare(%i, %n) direction=LT : bool[] "
        "return %go } "
        "(%j: i32[], %y: f32[6, 5], %v: f32[6, 5]) { "
        "%one = constant() value=dense<1 : i32[]> : i32[] "
        "%k = maximum(%j, %one) : i32[] "
        "%next = add(%k, %one) : i32[] "
        "%z = multiply(%y, %v) : f32[6, 5] "
        "return %next, %z, %v }",
    ),
    doc="Runs the body on the carries while cond holds of them; the body's results are the next carries.",
)

# -- case ------------------------------------------------------------------------------------------------------------


def _case_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> Types:
    """C1: branches. C2: an i32 or bool scalar index. C3: branches take the operands. C4: and give alike results."""
    require(bool(regions) and bool(types), "case.C1", "takes an index and at least one branch")
    index = types[0].bare
    ok = index.rank == 0 and index.dtype in (DTYPES["i32"], DTYPES["bool"])
    require(ok, "case.C2", f"the index must be an i32 or bool scalar, got {index.text()}")
    require(index.dtype != np.bool_ or len(regions) == 2, "case.C2", f"a bool needs two branches, got {len(regions)}")
    operands = tuple(t.bare for t in types[1:])
    results = _bare(regions[0].results)
    for i, region in enumerate(regions):
        _check_signature(_bare(region.params), operands, "case.C3", f"branch {i} takes", "operands are")
        _check_signature(_bare(region.results), results, "case.C4", f"branch {i} gives", "branch 0")
    return results


def _case_flow(node: Node) -> Groups:
    branches = node.regions
    inputs = [(x, *(r.params[i] for r in branches)) for i, x in enumerate(node.operands[1:])]
    outputs = [(*(r.results[j] for r in branches), y) for j, y in enumerate(node.results)]
    return (*inputs, *outputs)


def _case_execute(machine: Machine, node: Node, operands: Sequence[Shards]) -> Sequence[Shards]:
    """Each branch on the devices that picked it, in order."""
    last = len(node.regions) - 1
    wanted = [int(i) if 0 <= i <= last else last for i in operands[0]]
    ways = sorted(set(wanted))
    if len(ways) == 1:
        return machine.run(node.regions[ways[0]], operands[1:])
    out: list[Shards] = [list(operands[0]) for _ in node.results]
    for way in ways:
        places = [p for p, w in enumerate(wanted) if w == way]
        out = _put(out, places, machine.among(places).run(node.regions[way], _picked(operands[1:], places)))
    return out


def _case_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The same branch's pullback."""
    return pulled_back(gradient, node, cotangents, Attrs(), own=1)


CASE: OpDef[Attrs] = OpDef(
    "case",
    Attrs,
    _case_infer,
    execute=_case_execute,
    flow=_case_flow,
    vjp=_case_vjp,
    examples=(
        "case(i32[], f32[6, 5], f32[6, 5]) "
        "(%a: f32[6, 5], %b: f32[6, 5]) { %s = add(%a, %b) : f32[6, 5] return %s, %a } "
        "(%c: f32[6, 5], %d: f32[6, 5]) { %p = multiply(%c, %d) : f32[6, 5] return %p, %d } "
        "(%e: f32[6, 5], %f: f32[6, 5]) { return %f, %e }",
        "case(bool[], f32[6, 5]) "
        "(%a: f32[6, 5]) { return %a } "
        "(%b: f32[6, 5]) { %n = negate(%b) : f32[6, 5] return %n }",
    ),
    doc="Runs the branch that an index picks; an index out of range picks the last, False branch 0 and True branch 1.",
)

# -- call ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallAttrs(Attrs):
    """What the function is called: for readers alone."""

    name: str = ""


def _call_infer(types: Types, attrs: CallAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: one function. C2: it takes the operands."""
    require(len(regions) == 1, "call.C1", f"takes one region, got {len(regions)}")
    _check_signature(_bare(regions[0].params), tuple(t.bare for t in types), "call.C2", "it takes", "operands are")
    return _bare(regions[0].results)


def _call_flow(node: Node) -> Groups:
    (region,) = node.regions
    pairs = (*zip(node.operands, region.params, strict=True), *zip(region.results, node.results, strict=True))
    return tuple(pairs)


def _call_execute(machine: Machine, node: Node, operands: Sequence[Shards]) -> Sequence[Shards]:
    return machine.run(node.regions[0], operands)


def _call_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """A call of the function's pullback."""
    return pulled_back(gradient, node, cotangents, CallAttrs())


CALL: OpDef[CallAttrs] = OpDef(
    "call",
    CallAttrs,
    _call_infer,
    execute=_call_execute,
    flow=_call_flow,
    vjp=_call_vjp,
    examples=(
        'call(f32[6, 5], f32[6, 5]) name="layer" '
        "(%a: f32[6, 5], %b: f32[6, 5]) { "
        "%s = add(%a, %b) : f32[6, 5] %p = multiply(%s, %b) : f32[6, 5] return %p, %a }",
        "call(f64[4]) (%a: f64[4]) { %n = sine(%a) : f64[4] return %n }",
    ),
    doc="Runs its region once: a function that another one calls.",
)

FAMILY: tuple[OpDef[Any], ...] = (WHILE, CASE, CALL)
