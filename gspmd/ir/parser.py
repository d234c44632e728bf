"""Text to programs: the inverse of `gspmd.ir.printer`. docs/ir.md describes the format.

Result types stand in the text and are checked against the op's own type rule. Whatever the input, the only exception is
ParseError, which shows line, column and the source line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from gspmd.ir.attr_text import read_attrs
from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import infer_types
from gspmd.ir.errors import GspmdError, ParseError
from gspmd.ir.graph import STAGES, Node, Program, Region, Value
from gspmd.ir.lexer import Scanner, suggestion
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import OpDef
from gspmd.ir.printer import NO_FILE
from gspmd.ir.type_text import read_mesh, read_type, type_text
from gspmd.ir.types import TensorType

Ops = Mapping[str, OpDef[Any]]
Types = tuple[TensorType, ...]

_NAME = re.compile(r"@([\w.$-]+)", re.ASCII)
_VALUE = re.compile(r"%([\w.$-]+)", re.ASCII)
_OP = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LOCATION = re.compile(r'(?:([^\s"]+)|("(?:[^"\\]|\\.)*")):(\d{1,9})')
# What an op's own hooks may raise when a text gives them operands or attributes that they never expected.
_MISUSE = (GspmdError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError, MemoryError)


def parse_program(text: str, ops: Ops, filename: str = NO_FILE) -> Program:
    """Read one program; ops are looked up by name in `ops`. Raises ParseError.

    A node's location is its `// file:line` comment, or else its own line in `filename`.
    """
    parser = _Parser(text, ops, filename)
    program = parser.program()
    parser.end()
    return program


def parse_bytes(data: bytes, ops: Ops, filename: str = NO_FILE) -> Program:
    """Read one program from the bytes of a file, which must be UTF-8. Raises ParseError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(
            f"{filename}: byte {error.start} is not UTF-8 text: this is no gspmd program",
            fix="give a .gspmd text file",
        ) from None
    return parse_program(text, ops, filename)


def parse_example(text: str, ops: Ops, mesh: Mesh | None = None) -> Program:
    """Read one application of an op to operands given by type: `dot_general(f32[4,6], f32[6,8]) lhs_contract=[1] ...`.

    The program's parameters are the operands, its results the op's. Result types may be left out. A declaration
    `mesh @mesh = [data=2]` may stand before the op. Raises ParseError.
    """
    parser = _Parser(text, ops, NO_FILE, mesh)
    program = parser.example()
    parser.end()
    return program


class _Parser:
    """Recursive descent over the text; one method a construct of the grammar."""

    __slots__ = ("defined", "last_line", "last_pos", "mesh", "ops", "scan")

    def __init__(self, text: str, ops: Ops, filename: str, mesh: Mesh | None = None) -> None:
        self.scan = Scanner(text, filename)
        self.ops = ops
        self.mesh = mesh
        self.defined: list[dict[str, Value]] = []  # the values of each open region, the outermost first
        self.last_pos = 0
        self.last_line = 1

    def program(self) -> Program:
        scan = self.scan
        self.mesh_line()
        if not scan.keyword("func"):
            if not scan.text.strip():
                scan.fail("the text is empty: expected func @name(...)")
            scan.fail(f"expected 'func' (or 'mesh' before it), found {scan.found()}")
        name = scan.need(_NAME, "a name such as @main")[1]
        params = self.params()
        scan.expect("->")
        scan.skip()
        results_at = scan.pos
        results = self.types()
        stage = self.stage()
        signature: tuple[Types, Types] | None = None
        if scan.keyword("global"):
            inputs = self.types()
            scan.expect("->")
            signature = inputs, self.types()
        body = self.region_body(params)
        actual = tuple(v.type for v in body.results)
        if actual != results:
            scan.fail(f"the function says it returns {_show(results)}, but it returns {_show(actual)}", results_at)
        if signature is None:
            return Program.of(name, body, self.mesh, stage)
        return Program(name, body, self.mesh, stage, *signature)

    def example(self) -> Program:
        self.mesh_line()
        start, op = self.op()
        operands = tuple(Value(t) for t in self.types())
        node = self.application(op, start, operands, ())
        return Program.of("example", Region(operands, (node,), node.results), self.mesh, "annotated")

    def end(self) -> None:
        self.scan.skip()
        if self.scan.pos < len(self.scan.text):
            self.scan.fail(f"expected the end of the text, found {self.scan.found()}")

    # -- the head -----------------------------------------------------------------------------------------------------

    def mesh_line(self) -> None:
        if self.scan.keyword("mesh"):
            name = self.scan.need(_NAME, "a name such as @mesh")[1]
            self.scan.expect("=")
            self.mesh = read_mesh(self.scan, name)

    def stage(self) -> str:
        scan = self.scan
        if not scan.keyword("stage"):
            return STAGES[0]
        scan.expect("=")
        match = scan.need(_OP, "the name of a stage")
        if match[0] not in STAGES:
            scan.fail(f"unknown stage {match[0]!r}; the stages are {', '.join(STAGES)}", match.start())
        return match[0]

    def types(self) -> Types:
        """`(type, type)`."""
        scan = self.scan
        scan.expect("(")
        types: list[TensorType] = []
        while not scan.take(")"):
            if types:
                scan.expect(",")
            types.append(read_type(scan, self.mesh))
        return tuple(types)

    def params(self) -> dict[str, Value]:
        """`(%x: type, %y: type)`: the values that a region starts with."""
        scan = self.scan
        scan.expect("(")
        values: dict[str, Value] = {}
        while not scan.take(")"):
            if values:
                scan.expect(",")
            match = scan.need(_VALUE, "a parameter such as %x")
            if match[1] in values:
                scan.fail(f"the parameter {match[0]} is defined twice", match.start())
            scan.expect(":")
            values[match[1]] = Value(read_type(scan, self.mesh), match[1])
        return values

    # -- regions and nodes --------------------------------------------------------------------------------------------

    def region_body(self, params: dict[str, Value]) -> Region:
        """`{ node ... return %x, %y }`; the region sees its parameters and nothing from outside."""
        scan = self.scan
        scan.expect("{")
        scan.enter()
        inputs = tuple(params.values())
        self.defined.append(params)
        nodes: list[Node] = []
        while not scan.keyword("return"):
            nodes.append(self.node())
        results: tuple[Value, ...] = ()
        # An empty list of results ends with its line, or with the bracket.
        if not scan.at_line_end() and not scan.peek("}"):
            results = self.values()
        scan.expect("}")
        scan.leave()
        self.defined.pop()
        return Region(inputs, tuple(nodes), results)

    def node(self) -> Node:
        """`%a, %b = op(%x) key=value (...) { ... } : (type, type)  // file:line`."""
        scan = self.scan
        names: list[tuple[str, int]] = []
        while match := scan.match(_VALUE):
            names.append((match[1], match.start()))
            if not scan.take(","):
                break
        if names:
            scan.expect("=")
        start, op = self.op()
        scan.expect("(")
        operands = () if scan.peek(")") else self.values()
        scan.expect(")")
        node = self.application(op, start, operands, tuple(n for n, _ in names))
        known = self.defined[-1]
        for (name, at), value in zip(names, node.results, strict=True):
            if name in known:
                scan.fail(f"%{name} is defined twice in this region", at, fix="give one of the two another name")
            known[name] = value
        return node

    def op(self) -> tuple[int, OpDef[Any]]:
        """The name of an op, and where it stands."""
        scan = self.scan
        match = scan.need(_OP, "an op, or return")
        op = self.ops.get(match[0])
        if op is None:
            scan.fail(f"unknown op {match[0]!r}{suggestion(match[0], list(self.ops))}", match.start())
        return match.start(), op

    def values(self) -> tuple[Value, ...]:
        """`%x, %y`, at least one."""
        values = [self.value()]
        while self.scan.take(","):
            values.append(self.value())
        return tuple(values)

    def value(self) -> Value:
        scan = self.scan
        match = scan.need(_VALUE, "a value such as %x")
        found = self.defined[-1].get(match[1])
        if found is None:
            if any(match[1] in outer for outer in self.defined):
                fix = f"pass {match[0]} to the op as an operand and name a parameter of the region for it"
                scan.fail(f"{match[0]} is defined outside, and a region sees its own values only", match.start(), fix)
            hint = suggestion(match[1], list(self.defined[-1]))
            scan.fail(f"unknown value {match[0]}{hint}", match.start(), fix="define a value before it is used")
        return found

    def application(self, op: OpDef[Any], start: int, operands: tuple[Value, ...], names: tuple[str, ...]) -> Node:
        """What follows the operands: attributes, regions, result types and the location; names are () in an example."""
        scan = self.scan
        attrs = read_attrs(scan, op.attrs, self.mesh, op.name)
        regions: list[Region] = []
        while scan.peek("("):
            regions.append(self.region_body(self.params()))
        inferred = self.inferred(op, start, operands, attrs, tuple(regions))
        types = self.result_types(inferred, op, required=bool(self.defined))
        if self.defined and len(names) != len(types):
            scan.fail(f"{op.name} has {len(types)} results, but {len(names)} names are given", start)
        results = tuple(Value(t, names[i] if names else "") for i, t in enumerate(types))
        return Node(op, operands, results, attrs, tuple(regions), self.location(start))

    def inferred(
        self, op: OpDef[Any], start: int, operands: tuple[Value, ...], attrs: Attrs, regions: tuple[Region, ...]
    ) -> Types:
        types = tuple(v.type for v in operands)
        try:
            return tuple(op.infer(types, attrs, regions) if regions else infer_types(op, types, attrs))
        except GspmdError as error:
            rule = f"{error.rule}: " if error.rule else ""
            self.scan.fail(f"{rule}{error.message}", start, error.fix)
        except _MISUSE as error:
            self.scan.fail(f"{op.name} cannot take {_show(types)} with these attributes: {error}", start)

    def result_types(self, inferred: Types, op: OpDef[Any], required: bool) -> Types:
        """The written result types; a sharding may be written where the type rule tells none or leaves it open.

        So it may at the border of per-device code, where an annotation stands only until values are laid out.
        """
        scan = self.scan
        if not required and not scan.peek(":"):
            return inferred
        scan.expect(":")
        scan.skip()
        at = scan.pos
        written = self.types() if scan.peek("(") else (read_type(scan, self.mesh),)
        told = inferred if op.crossings is None else tuple(t.bare for t in inferred)
        same = len(written) == len(told) and all(map(_may_be_written, written, told))
        if not same:
            scan.fail(f"{op.name} gives {_show(inferred)}, but the text says {_show(written)}", at)
        return written

    def location(self, start: int) -> Location:
        """The location that the comment at the end of the line states, or the text's own line."""
        comment = self.scan.comment()
        match = _LOCATION.fullmatch(comment) if comment else None
        if match is not None:
            file = match[1] if match[1] is not None else _unquoted(match[2])
            if file is not None:
                return Location(file, int(match[3]))
        self.last_line += self.scan.text.count("\n", self.last_pos, start)
        if start < self.last_pos:  # a node that holds regions comes after the nodes in them
            self.last_line = self.scan.line(start)
        self.last_pos = start
        return Location(self.scan.filename, self.last_line)


def _unquoted(text: str) -> str | None:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _may_be_written(written: TensorType, inferred: TensorType) -> bool:
    """Whether a text may give this type to a result: an annotation stands until propagation has heeded it."""
    if written == inferred:
        return True
    if (written.dtype, written.shape) != (inferred.dtype, inferred.shape):
        return False
    said, told = written.sharding, inferred.sharding
    if told is None:
        return True
    settled = told.settled()
    return said is not None and (said == settled or (told.is_open and said.refines(settled, written.shape)))


def _show(types: Types) -> str:
    return type_text(types[0]) if len(types) == 1 else f"({', '.join(map(type_text, types))})"
