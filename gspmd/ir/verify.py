"""The invariants of a program at each stage, checked.

The type check is each op's own type rule run again; the sharding check is its own factor rule (`gspmd.ir.agreement`).

Structure, at every stage:
  C1 the stage is one of STAGES        C2 an operand is defined before it is used, in its own region
  C3 no value is defined twice         C4 a node's op is the registered record, its attributes are of the op's class
  C5 result types are what the type rule gives (for collectives on global types the sharding too)
  C6 the signature is that of the body (from `local` on: its per-device form)
Shardings:
  C7 annotated: only the function's parameters and results of annotating ops have one
  C8 propagated and later global stages: every value has one, on the program's mesh
  C9 explicit, collectives: the shardings around an op agree with its rule
  C10 explicit, collectives: an op without a rule takes unreduced values only if it communicates or passes them on
  C11 explicit, collectives: values that are one value at different places (loop carries) have one sharding; a value
      at the border of per-device code is split as its part inside is, below the manual axes
  C12 from `local` on: none has one
  C13 before `local` devices exchange data, and have numbers, only along the manual axes of per-device code
  C14 a sharding's manual axes are those of the per-device code that it stands in
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from gspmd.ir.agreement import assignment
from gspmd.ir.axes import Axes, as_set, contains
from gspmd.ir.builder import infer_types
from gspmd.ir.errors import GspmdError, VerifyError
from gspmd.ir.graph import LOCAL_STAGES, STAGES, Node, Program, Region, Value
from gspmd.ir.manual import named_axes
from gspmd.ir.opdef import OpDef, Trait, manual_axes, node_rule, sets_sharding
from gspmd.ir.printer import print_node
from gspmd.ir.sharding import Sharding
from gspmd.ir.type_text import type_text
from gspmd.ir.types import TensorType

_AGREEING = frozenset(("explicit", "collectives"))
# What an op's own hooks may raise on operands or attributes that they never expected.
_MISUSE = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError)


def verify(program: Program, ops: Mapping[str, OpDef[Any]]) -> None:
    """Raise VerifyError, naming the invariant and the node, unless the program keeps the invariants of its stage."""
    if program.stage not in STAGES:
        raise VerifyError(f"unknown stage {program.stage!r}; the stages are {', '.join(STAGES)}", rule="verify.C1")
    checker = _Checker(program, ops)
    checker.region(program.body, outermost=True)
    _check_signature(program)


class _Checker:
    """One run over a program; what was found right of an op on some types is not asked again (layers repeat)."""

    __slots__ = ("defined", "good", "ops", "program", "stage")

    def __init__(self, program: Program, ops: Mapping[str, OpDef[Any]]) -> None:
        self.program = program
        self.stage = program.stage
        self.ops = ops
        self.defined: set[Value] = set()  # everywhere
        self.good: set[tuple[object, ...]] = set()

    def region(self, region: Region, outermost: bool = False, manual: Axes = ()) -> None:
        """Check the nodes of a region in order, inner regions with the node that holds them.

        The region is per-device code over the manual axes.
        """
        here: set[Value] = set()
        self.define(region.params, here, None)
        for value in region.params:
            self.place(value, None, manual, annotation=outermost)
        for node in region.nodes:
            for value in node.operands:
                if value not in here:
                    self.undefined(value, node)
            self.node(node, manual)
            if node.regions:
                own = manual_axes(node)
                for inner in node.regions:
                    self.region(inner, manual=(*manual, *own))
            self.define(node.results, here, node)
        for value in region.results:
            if value not in here:
                self.undefined(value, None)

    def define(self, values: tuple[Value, ...], here: set[Value], node: Node | None) -> None:
        for value in values:
            if value in self.defined:
                _fail("C3", f"the value {_named(value)} is defined twice", node)
            self.defined.add(value)
            here.add(value)

    def undefined(self, value: Value, node: Node | None) -> NoReturn:
        where = "is defined in another region" if value in self.defined else "is not defined"
        use = "returned" if node is None else "used"
        _fail("C2", f"{_named(value)} is {use} here, but {where} before", node, "regions see only their own values")

    def node(self, node: Node, manual: Axes) -> None:
        op, attrs = node.op, node.attrs
        operands = tuple([v.type for v in node.operands])
        results = tuple([v.type for v in node.results])
        # Regions make a node its own; everything else is decided by op, attributes and types.
        key = (op, attrs, operands, results, manual)
        if not node.regions and key in self.good:
            return
        if self.ops.get(op.name) is not op:
            _fail("C4", f"{op.name} is not the registered op of that name", node)
        if type(attrs) is not op.attrs:
            _fail("C4", f"{op.name} has attributes of {type(attrs).__name__}, not of {op.attrs.__name__}", node)
        inferred = _inferred(node, operands)
        self.types(node, results, inferred)
        for value, type_ in zip(node.results, inferred, strict=True):
            self.place(
                value, node, manual, annotation=type_.sharding is not None and type_.sharding == value.type.sharding
            )
        if self.stage in _AGREEING:
            _check_agreement(node)
        if self.stage not in LOCAL_STAGES and op.crossings is None and not any(t.sharding for t in inferred):
            _check_axes(node, manual)
        if not node.regions:
            self.good.add(key)

    def types(self, node: Node, results: tuple[TensorType, ...], inferred: tuple[TensorType, ...]) -> None:
        """C5. A sharding is the pass's choice, except where communication determines it."""
        if len(results) != len(inferred):
            _fail("C5", f"{node.op.name} has {len(results)} results, its type rule gives {len(inferred)}", node)
        fixed = node.op.has(Trait.COLLECTIVE) or node.op.has(Trait.RESHARD)
        for i, (has, wants) in enumerate(zip(results, inferred, strict=True)):
            same = has.dtype == wants.dtype and has.shape == wants.shape
            if not same or (fixed and wants.sharding is not None and wants.sharding != has.sharding):
                gives = type_text(wants if fixed else wants.bare)
                _fail("C5", f"result {i} has type {type_text(has)}, the type rule gives {gives}", node)

    def place(self, value: Value, node: Node | None, manual: Axes, annotation: bool) -> None:
        """C7, C8, C12 and C14: whether a value may, must or must not have a sharding at this stage."""
        sharding = value.type.sharding
        if self.stage in LOCAL_STAGES:
            if sharding is not None:
                _fail("C12", f"{_typed(value)} has a sharding, but types are per device at stage {self.stage}", node)
            return
        if sharding is not None and sharding.mesh != self.program.mesh:
            mesh = "no mesh" if self.program.mesh is None else f"the mesh {self.program.mesh.text()}"
            _fail("C8", f"{_typed(value)} is sharded on {sharding.mesh.text()}, the program has {mesh}", node)
        if sharding is not None:
            _check_manual(value, sharding, as_set(manual, sharding.mesh.axis_names), node)
        if self.stage == STAGES[0]:
            if sharding is not None and not annotation:
                _fail("C7", f"{_typed(value)} has a sharding, but is no annotation", node, "annotate the value instead")
        elif sharding is None:
            _fail("C8", f"{_typed(value)} has no sharding at stage {self.stage}", node)


def _inferred(node: Node, operands: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    try:
        if node.regions:
            return tuple(node.op.infer(operands, node.attrs, node.regions))
        return infer_types(node.op, operands, node.attrs)
    except GspmdError as error:
        _fail("C5", str(GspmdError(error.message, rule=error.rule)), node, error.fix)
    except _MISUSE as error:
        _fail("C5", f"the type rule of {node.op.name} fails: {error}", node)


def _check_manual(value: Value, sharding: Sharding, manual: Axes, node: Node | None) -> None:
    if sharding.manual != manual:
        here = f"per-device code along {sharding.axes_text(manual, ', ')}" if manual else "code on whole arrays"
        told = f"{_typed(value)} is manual over {sharding.axes_text(sharding.manual, ', ') or 'nothing'}"
        fix = f"end its sharding in !({sharding.axes_text(manual, ',')})" if manual else "leave !(...) out"
        _fail("C14", f"{told}, but this is {here}", node, fix)


def _check_axes(node: Node, manual: Axes) -> None:
    odd = next((a for a in named_axes(node.attrs) if not contains(manual, a)), None)
    if odd is not None:
        _fail(
            "C13",
            f"{node.op.name} works along the mesh axis {odd.name}, which is not manual here",
            node,
            "put it into a manual computation (shard_map) over that axis",
        )


def _check_agreement(node: Node) -> None:
    operands = _shardings(node.operands)
    rule = None if sets_sharding(node.op, _types(node.operands), node.attrs) else node_rule(node)
    if rule is not None:
        found = assignment(rule, operands, _shardings(node.results))
        if isinstance(found, str):
            _fail("C9", f"{node.op.name} does not agree with its rule {rule.text()}: {found}", node)
        return
    groups = () if node.op.flow is None else node.op.flow(node)
    for group in groups:
        odd = next((v for v in group if v.type.sharding != group[0].type.sharding), None)
        if odd is not None:
            _fail("C11", f"{_typed(group[0])} and {_typed(odd)} are one value, but are sharded differently", node)
    crossings = () if node.op.crossings is None else node.op.crossings(node)
    for crossing in crossings:
        inner, outer = crossing.inner.type, crossing.outer.type
        parts = (inner.placed, outer.placed)
        if _axes(*parts) != _axes(*crossing.homes(*parts)) or inner.local.shape != outer.local.shape:
            _fail("C11", f"{_typed(crossing.outer)} is no whole of its part {_typed(crossing.inner)}", node)
    if node.op.has(Trait.COLLECTIVE) or node.op.has(Trait.RESHARD):
        return
    passed = {v for group in groups for v in group} | {c.outer for c in crossings}
    for value in node.operands:
        if value.type.sharding is not None and value.type.sharding.unreduced and value not in passed:
            _fail("C10", f"{node.op.name} takes the unreduced value {_typed(value)}", node, "reduce it first")


def _axes(*shardings: Sharding) -> list[Axes]:
    return [d.axes for s in shardings for d in s.dims]


def _types(values: tuple[Value, ...]) -> tuple[TensorType, ...]:
    return tuple([v.type for v in values])


def _shardings(values: tuple[Value, ...]) -> tuple[Sharding, ...]:
    return tuple([v.type.sharding for v in values if v.type.sharding is not None])


def _check_signature(program: Program) -> None:
    """C6."""
    for kind, given, values in (
        ("parameter", program.inputs, program.body.params),
        ("result", program.outputs, program.body.results),
    ):
        if len(given) != len(values):
            _fail("C6", f"the signature has {len(given)} {kind}s, the body {len(values)}", None)
        for i, (type_, value) in enumerate(zip(given, values, strict=True)):
            expected = type_.local if program.is_local else type_
            if expected != value.type:
                per = f" ({type_text(expected)} per device)" if program.is_local else ""
                _fail(
                    "C6", f"{kind} {i} is {type_text(type_)}{per} in the signature, {_typed(value)} in the body", None
                )


def _fail(number: str, message: str, node: Node | None, fix: str = "") -> NoReturn:
    if node is not None:
        message = f"{message}\n  {_line(node)}"
    raise VerifyError(message, rule=f"verify.{number}", loc=None if node is None else node.loc, fix=fix)


def _line(node: Node) -> str:
    """The node as one line, its operands' types behind it."""
    line = print_node(Node(node.op, node.operands, node.results, node.attrs)) if _printable(node) else repr(node.op)
    return f"{line}   with {', '.join(map(_typed, node.operands))}" if node.operands else line


def _printable(node: Node) -> bool:
    return type(node.attrs) is node.op.attrs


def _named(value: Value) -> str:
    return f"%{value.name}" if value.name else "a value without a name"


def _typed(value: Value) -> str:
    return f"%{value.name}: {type_text(value.type)}" if value.name else type_text(value.type)
