"""What stands around a value in a program: who makes and reads it, what it is annotated, what holds it, its group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gspmd.inspect.lines import at_line
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.location import Location
from gspmd.ir.opdef import annotates, node_rule


@dataclass(frozen=True, slots=True)
class Surroundings:
    """For each value the node that makes it and those that read it, and for each node and parameter its holder.

    `kept` are the values that regions hand out.
    """

    makers: dict[Value, Node]
    readers: dict[Value, list[Node]]
    holders: dict[Value, Node]
    above: dict[Node, Node]
    kept: set[Value]

    @staticmethod
    def of(program: Program) -> Surroundings:
        """Those of all values of a program."""
        found = Surroundings({}, {}, {}, {}, set())
        found._add(program.body, None)
        return found

    def _add(self, region: Region, holder: Node | None) -> None:
        if holder is not None:
            self.holders.update(dict.fromkeys(region.params, holder))
        self.kept.update(region.results)
        for node in region.nodes:
            if holder is not None:
                self.above[node] = holder
            self.makers.update(dict.fromkeys(node.results, node))
            for value in dict.fromkeys(node.operands):
                self.readers.setdefault(value, []).append(node)
            for inner in node.regions:
                self._add(inner, node)

    def alone(self, value: Value) -> Node | None:
        """The annotation that alone reads a value."""
        found = self.readers.get(value, [])
        return found[0] if len(found) == 1 and value not in self.kept and annotates(found[0]) else None

    def root(self, value: Value) -> Value:
        """What a value is, without the annotations that alone stand between."""
        while (maker := self.makers.get(value)) and annotates(maker) and self.alone(maker.operands[0]) is maker:
            (value,) = maker.operands
        return value

    def said_of(self, value: Value) -> list[Node]:
        """The annotations of a value that alone read it, one after another."""
        found: list[Node] = []
        while (reader := self.alone(value)) is not None:
            found.append(reader)
            value = reader.result
        return found

    def loc(self, value: Value) -> Location | None:
        """The user's line of a value: of an input its annotation's, of a region's parameter the loop's or branch's."""
        node = self.makers.get(value) or self.holders.get(value)
        if node is None:
            node = next((n for n in self.readers.get(value, ()) if annotates(n)), None)
        return None if node is None else node.loc

    def place(self, value: Value) -> str:
        """`dot_general at mlp.py:12`; for a region's parameter the node that holds it; empty for an input."""
        maker, holder = self.makers.get(value), self.holders.get(value)
        node = maker or holder
        if node is None:
            return ""
        what = "the annotation" if annotates(node) else node.op.name if maker is not None else f"in {node.op.name}"
        return f"{what}{at_line(node.loc)}"

    def near(self, value: Value) -> list[Node]:
        """The nodes that make or read a value."""
        maker = self.makers.get(value)
        return [*([] if maker is None else [maker]), *self.readers.get(value, [])]

    def manual(self, value: Value) -> Node | None:
        """The innermost node whose per-device code a value is in."""
        maker = self.makers.get(value)
        node = self.holders.get(value) if maker is None else self.above.get(maker)
        while node is not None and node.op.manual is None:
            node = self.above.get(node)
        return node

    def group(self, value: Value) -> Iterator[tuple[Node, list[Value], bool]]:
        """The groups that a value is in: the node that says so, the other members, whether they are exactly alike."""
        for node in self.near(value):
            if node.op.group is None or value not in node.results:
                continue
            key = node.op.group(node.attrs)
            nodes = dict.fromkeys(self.makers.values())
            others = [n for n in nodes if n.op.group is not None and n is not node and n.op.group(n.attrs) == key]
            yield node, [v for n in others for v in n.results], key[1]

    def barriers(self, value: Value) -> Iterator[tuple[Node, Value, str]]:
        """The nodes through which shardings do not come to a value, the value beyond, and how they do pass there."""
        for node in self.near(value):
            rule = node_rule(node)
            if rule is None or not rule.silent:
                continue
            barred = "forward" if value in node.results else "backward"
            if barred in rule.silent:
                other = node.operands if value in node.results else node.results
                passes = "backward only" if barred == "forward" else "forward only"
                allowed = "in no direction" if len(rule.silent) > 1 else passes
                yield from ((node, v, allowed) for v in other if v.type.shape == value.type.shape)
