"""Programs as text; `gspmd.ir.parser` reads it back. docs/ir.md describes the format.

Every value has one name in the whole program: its hint, or a number if it has none; a hint that is taken already gets
a suffix, `x_1`. Printing depends on nothing but the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gspmd.ir.attr_text import attrs_text
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.mesh import Mesh
from gspmd.ir.type_text import type_text
from gspmd.ir.types import TensorType

Names = dict[Value, str]

# The file name of locations within a text that came from nowhere; the printer leaves them out.
NO_FILE = "<text>"
_ODD = re.compile(r"[^\w.$-]", re.ASCII)
_PLAIN_FILE = re.compile(r'[^\s"]+')


def print_program(program: Program) -> str:
    """The whole program as text, ending in a newline."""
    names = value_names(program)
    mesh = program.mesh
    lines: list[str] = []
    if mesh is not None:
        lines.append(f"mesh @{printed_name(mesh.name) or 'mesh'} = {mesh.text()}")
    params = ", ".join(_param(v, names) for v in program.body.params)
    results = _types(tuple(v.type for v in program.body.results))
    head = f"func @{printed_name(program.name) or 'main'}({params}) -> {results} stage={program.stage}"
    given = tuple(v.type for v in program.body.params), tuple(v.type for v in program.body.results)
    if given != (program.inputs, program.outputs):
        head += f" global {_types(program.inputs)} -> {_types(program.outputs)}"
    lines.append(head + " {")
    _body(program.body, names, mesh, "  ", lines)
    lines.append("}\n")
    return "\n".join(lines)


def print_node(node: Node, names: Names | None = None, mesh: Mesh | None = None) -> str:
    """One node, with its regions, over one line or several; without names, its values are numbered from 0."""
    lines: list[str] = []
    _node(node, _name((*node.operands, *node.results, *_inside(node))) if names is None else names, mesh, "", lines)
    return "\n".join(lines)


def value_names(program: Program) -> dict[Value, str]:
    """The printed name, without `%`, of every value of a program, each different."""
    return region_names(program.body)


def region_names(region: Region) -> dict[Value, str]:
    """The printed name, without `%`, of every value in a region and the regions within, each different."""
    return _name(_values(region))


def _values(region: Region) -> Iterator[Value]:
    """Every value, in the order of the text; operands that nothing defines come where they are used."""
    yield from region.params
    for node in region.nodes:
        yield from node.results
        yield from node.operands
        yield from _inside(node)
    yield from region.results


def _inside(node: Node) -> Iterator[Value]:
    for region in node.regions:
        yield from _values(region)


def _name(values: Iterator[Value] | tuple[Value, ...]) -> Names:
    ordered = list(dict.fromkeys(values))
    hints = [printed_name(v.name) for v in ordered]
    hinted = set(hints)  # a number or a suffixed name must not take a name that another value hints at
    taken: set[str] = set()
    counts: dict[str, int] = {}
    names: Names = {}
    number = 0
    for value, hint in zip(ordered, hints, strict=True):
        name = hint
        if not hint:
            while (name := str(number)) in hinted:
                number += 1
            number += 1
        elif hint in taken:
            count = counts.get(hint, 0) + 1
            while (name := f"{hint}_{count}") in taken or name in hinted:
                count += 1
            counts[hint] = count
        taken.add(name)
        names[value] = name
    return names


def printed_name(text: str) -> str:
    """A name's characters that may stand in the text, the others replaced."""
    return text if not text or (text.isascii() and text.isalnum()) else _ODD.sub("_", text)


def _param(value: Value, names: Names) -> str:
    return f"%{names[value]}: {type_text(value.type)}"


def _types(types: tuple[TensorType, ...]) -> str:
    return f"({', '.join([type_text(t) for t in types])})"


def _body(region: Region, names: Names, mesh: Mesh | None, indent: str, lines: list[str]) -> None:
    for node in region.nodes:
        _node(node, names, mesh, indent, lines)
    lines.append(f"{indent}return {', '.join(['%' + names[v] for v in region.results])}".rstrip())


def _node(node: Node, names: Names, mesh: Mesh | None, indent: str, lines: list[str]) -> None:
    """Append the lines of one node; the first carries on into the first region's `{`."""
    operands = ", ".join(["%" + names[v] for v in node.operands])
    line = f"{indent}{node.op.name}({operands})"
    if node.results:
        line = f"{indent}{', '.join(['%' + names[v] for v in node.results])} = {node.op.name}({operands})"
    attrs = attrs_text(node.attrs, mesh)
    if attrs:
        line = f"{line} {attrs}"
    for region in node.regions:
        lines.append(f"{line} ({', '.join([_param(v, names) for v in region.params])}) {{")
        _body(region, names, mesh, indent + "  ", lines)
        line = indent + "}"
    types = [type_text(v.type) for v in node.results]
    shown = types[0] if len(types) == 1 else f"({', '.join(types)})"
    lines.append(f"{line} : {shown}{_location(node.loc)}")


def _location(loc: Location | None) -> str:
    if loc is None or loc.file == NO_FILE:
        return ""
    return f"  // {loc.file if _PLAIN_FILE.fullmatch(loc.file) else json.dumps(loc.file)}:{loc.line}"
