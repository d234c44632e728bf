"""Collects the text of a StableHLO module: names of values, lines of ops, private functions, and what went wrong.

How an op is written is said by an emitter, one for each op, in tables by family (`export_ops` and its neighbours). An
emitter appends lines and gives every result of its node a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gspmd.interop.stablehlo_text import constant_text, type_text, types_text
from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError, UsageError
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.types import TensorType

Block = Region | Callable[[], None]
Emitter = Callable[["Writer", Node], None]
Described = Callable[[Sequence[Value]], Mapping[str, str]]
# Says an op in terms of others.
Expansion = Callable[[Builder, Sequence[Value], Any], Sequence[Value]]

_ODD = re.compile(r"[^\w.$-]+", re.ASCII)
_LOST = "%lost"  # stands for the results of ops that could not be written


class Writer:
    """The text of a module on its way out; `names` tells what each value is called.

    `mesh` is set where types are per device: then collectives can be written, and annotations say nothing.
    `result_attributes` tells what an op says of its results' shardings besides, if anything.
    """

    def __init__(
        self, emitters: Mapping[str, Emitter], mesh: Mesh | None = None, result_attributes: Described | None = None
    ) -> None:
        self.mesh = mesh
        self._result_attributes = result_attributes
        self.names: dict[Value, str] = {}
        self.problems: list[GspmdError] = []
        self.lines: list[str] = []
        self.indent = 0
        self._emitters = emitters
        self._count = 0
        self._channels = 0
        self._numbers: dict[str, int] = {}
        self._functions: dict[Hashable, str] = {}
        self._definitions: list[str] = []

    def text(self) -> str:
        """The lines so far."""
        return "".join([f"{line}\n" for line in self.lines])

    def definitions(self) -> str:
        """The private functions so far."""
        return "".join(self._definitions)

    # -- names and lines ------------------------------------------------------------------------------------------

    def fresh(self, *values: Value) -> str:
        """A new name for the results of one op, `%3` or `%3:2`."""
        name = f"%{self._count}"
        self._count += 1
        for i, value in enumerate(values):
            self.names[value] = name if len(values) == 1 else f"{name}#{i}"
        return name if len(values) <= 1 else f"{name}:{len(values)}"

    def channel(self) -> int:
        """A channel that no other collective of the module has."""
        self._channels += 1
        return self._channels

    def number_of(self, name: str) -> int:
        """A number that stands for a name, from 0."""
        return self._numbers.setdefault(name, len(self._numbers))

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " * self.indent + text)

    def alias(self, values: Iterable[Value], others: Iterable[Value]) -> None:
        """Let values be called as others are, whose value they have."""
        for value, other in zip(values, others, strict=True):
            self.names[value] = self.names[other]

    # -- ops ------------------------------------------------------------------------------------------------------

    def nodes(self, nodes: Iterable[Node]) -> None:
        """Append ops whose operands have names; what cannot be written is noted in `problems`."""
        for node in nodes:
            try:
                self._node(node)
            except GspmdError as error:
                self.problems.append(error.at(node.loc))
                self.names.update(dict.fromkeys(node.results, _LOST))

    def _node(self, node: Node) -> None:
        emitter = self._emitters.get(node.op.name)
        if emitter is not None:
            emitter(self, node)
        elif node.op.expand is not None:
            self.expand(node, node.op.expand)
        else:
            raise UsageError(f"{node.op.name} cannot be written as StableHLO", rule="export.C1")

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[Value],
        attributes: Mapping[str, str] | None = None,
        regions: Sequence[Block] = (),
    ) -> None:
        """Append one op in generic form; a region is one of ours, or writes itself."""
        given = ", ".join([self.names[v] for v in operands])
        target = f"{self.fresh(*results)} = " if results else ""
        held = dict(attributes or {})
        if self._result_attributes is not None and name.startswith("stablehlo."):
            held |= self._result_attributes(results)
        shown = ", ".join([k if v == "unit" else f"{k} = {v}" for k, v in held.items()])
        signature = f"{types_text(v.type for v in operands)} -> {types_text(v.type for v in results)}"
        head = f'{target}"{name}"({given})'
        tail = f"{f' {{{shown}}}' if shown else ''} : {signature}"
        if not regions:
            self.line(head + tail)
            return
        self.line(head + " ({")
        for i, region in enumerate(regions):
            if i:
                self.line("}, {")
            self.indent += 1
            self.block(region) if isinstance(region, Region) else region()
            self.indent -= 1
        self.line("})" + tail)

    def block(self, region: Region) -> None:
        """The block of a region that takes arguments."""
        self.arguments(region.params)
        self.nodes(region.nodes)
        self.returned(region.results)

    def arguments(self, values: Sequence[Value]) -> None:
        """The head of a block."""
        self.line(f"^bb0({', '.join([f'{self.fresh(v)}: {type_text(v.type)}' for v in values])}):")

    def returned(self, values: Sequence[Value]) -> None:
        """The end of a block."""
        self.op("stablehlo.return", values, ())

    def constant(self, array: Any) -> Value:
        """A constant that only this writer needs."""
        held = np.asarray(array)
        value = Value(TensorType(held.dtype, held.shape))
        self.op("stablehlo.constant", (), (value,), {"value": constant_text(held)})
        return value

    # -- other ways to write an op --------------------------------------------------------------------------------

    def expand(self, node: Node, expansion: Expansion) -> None:
        """Write what says the op in terms of others."""
        self.alias(node.results, self.expanded(node.operands, node.attrs, expansion, node))

    def expanded(
        self, operands: Sequence[Value], attrs: Attrs, expansion: Expansion, node: Node | None = None
    ) -> Sequence[Value]:
        """Write what an expansion makes of operands, and return its values."""
        builder = Builder(None if node is None else node.loc)
        made = expansion(builder, operands, attrs)
        self.nodes(builder.nodes)
        return made

    def function(self, key: Hashable, name: str, params: Sequence[Value], write: Callable[[], Sequence[Value]]) -> str:
        """The name of a private function, written the first time that its key is asked for.

        `write` appends its ops and returns its results.
        """
        if key in self._functions:
            return self._functions[key]
        taken, name = {"main", *self._functions.values()}, symbol(name)
        unique = next(n for n in (name, *(f"{name}_{i}" for i in range(len(taken)))) if n not in taken)
        self._functions[key] = unique
        outer = self.lines, self.indent
        self.lines, self.indent = [], 2
        try:
            arguments = ", ".join([f"{self.fresh(v)}: {type_text(v.type)}" for v in params])
            results = write()
            returned, types = self.return_text(results), types_text(v.type for v in results)
            head = f"  func.func private @{unique}({arguments}) -> {types} {{\n"
            self._definitions.append(f"{head}{self.text()}{returned}  }}\n")
        finally:
            self.lines, self.indent = outer
        return unique

    def return_text(self, results: Sequence[Value]) -> str:
        """The last line of a function."""
        if not results:
            return "    return\n"
        names, types = ", ".join([self.names[v] for v in results]), ", ".join([type_text(v.type) for v in results])
        return f"    return {names} : {types}\n"


def symbol(name: str) -> str:
    """A name as MLIR takes it after an @ without quotes."""
    word = _ODD.sub("_", name)
    return word if word[:1].isalpha() or word[:1] == "_" else f"_{word}"
