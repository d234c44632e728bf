"""Annotations put into a program that is written already, by the printed names of its values.

A value's annotation is the sharding in its type, of an input, and that of an annotating op which alone reads it. An
annotation that is there is replaced; elsewhere an annotating op is put behind the value, and all readers read from it.
Names of other values stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import cast

from gspmd.inspect.surroundings import Surroundings
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError, UsageError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import annotates, manual_axes
from gspmd.ir.printer import printed_name, value_names
from gspmd.ir.sharding import Sharding, parse_sharding
from gspmd.ops.annotate import SHARDING_CONSTRAINT

_KEY = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\")\]")


def find_value(names: Mapping[Value, str], name: str) -> Value:
    """The value with a printed name, with or without `%`, or with a path in Python's terms, `params['w'][0]`.

    Raises UsageError with close matches if there is none.
    """
    wanted = _bare(name)
    by_name = {n: v for v, n in names.items()}
    value = by_name.get(wanted) or by_name.get(printed_name(_KEY.sub(r".\1\2", wanted)))
    if value is None:
        ends = [n for n in by_name if n.endswith(f".{wanted}")]
        close = get_close_matches(wanted, by_name, n=3, cutoff=0.5) or ends[:3]
        meant = " or ".join(f"%{n}" for n in close)
        raise UsageError(
            f"the program has no value %{wanted}",
            fix=f"did you mean {meant}?" if close else "print the stage to see the names of its values",
        )
    return value


def _bare(name: str) -> str:
    return name.strip().removeprefix("%")


def read_sharding(given: Sharding | str, value: Value, name: str, mesh: Mesh) -> Sharding:
    """A sharding for a value, `[model, _]` in text; raises UsageError if it does not fit the mesh or the value."""
    if not isinstance(cast(object, given), (Sharding, str)):
        raise UsageError(
            f"%{name}: {given!r} is no sharding",
            fix="write it as text, [model, _] with an entry a dimension, or give a gspmd.Sharding",
        )
    try:
        sharding = parse_sharding(given, mesh) if isinstance(given, str) else given
        if sharding.mesh != mesh:
            raise UsageError(f"the sharding is on the mesh {sharding.mesh.text()}, the program on {mesh.text()}")
        sharding.local_shape(value.type.shape)
    except GspmdError as error:
        raise UsageError(f"%{name}: {error.message}", rule=error.rule, fix=error.fix) from None
    return sharding


def read_annotations(program: Program, mesh: Mesh, given: Mapping[str, Sharding | str]) -> dict[Value, Sharding]:
    """The values and shardings that a user means; raises UsageError for unknown or repeated values, unknown axes."""
    if not isinstance(cast(object, given), Mapping):
        raise UsageError(f"{given!r} annotates no values", fix='name values and shardings: {"w": "[model, _]"}')
    names, around = value_names(program), Surroundings.of(program)
    found: dict[Value, Sharding] = {}
    meant: dict[Value, str] = {}
    for name, sharding in given.items():
        value = find_value(names, name)
        first = meant.setdefault(around.root(value), name)
        if first != name:
            raise UsageError(f"two shardings are given for one value, as {first} and as {name}", fix="annotate it once")
        found[value] = read_sharding(sharding, value, names[value], mesh)
    return found


def contradicted(program: Program, wanted: Mapping[Value, Sharding]) -> tuple[Value, Sharding] | None:
    """The first of some values whose annotation in the program does not leave room for a sharding, with it."""
    around = Surroundings.of(program)
    for value, sharding in wanted.items():
        root = around.root(value)
        maker = around.makers.get(root)
        own = root in program.body.params or (maker is not None and annotates(maker))
        values = [*([root] if own else []), *(node.result for node in around.said_of(root))]
        for said in (v.type.sharding for v in values):
            if said is not None and not _admits(said, sharding, value.type.shape):
                return value, said
    return None


def _admits(said: Sharding, given: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether an annotation leaves room for a sharding: alike in its closed dimensions, further split in open ones."""
    closed = all(s.open or s.axes == g.axes for s, g in zip(said.dims, given.dims, strict=True))
    return closed and given.refines(said, shape)


def with_annotations(program: Program, wanted: Mapping[Value, Sharding]) -> Program:
    """The annotated program with some of its values annotated so, whatever was said of them before."""
    around = Surroundings.of(program)
    edit = _Edit(value_names(program))
    for value, sharding in wanted.items():
        root = around.root(value)
        said = around.said_of(root)
        maker = around.makers.get(root)
        if maker is not None and annotates(maker):
            said.append(maker)
        edit.nodes.update(dict.fromkeys(said, sharding))
        if root in program.body.params:
            edit.inputs[root] = sharding
        elif not said:
            edit.behind[root] = sharding
    return Program.of(program.name, edit.region(program.body, ()), program.mesh, program.stage)


@dataclass(frozen=True, slots=True)
class _Edit:
    """What changes: the types of inputs, the shardings that annotating nodes give, and new nodes behind values."""

    names: Mapping[Value, str]
    inputs: dict[Value, Sharding] = field(default_factory=dict[Value, Sharding])
    nodes: dict[Node, Sharding] = field(default_factory=dict[Node, Sharding])
    behind: dict[Value, Sharding] = field(default_factory=dict[Value, Sharding])

    def region(self, region: Region, manual: Axes) -> Region:
        """The region, per-device code over the manual axes, with what changes in it; itself if nothing does."""
        builder, now = Builder(), dict[Value, Value]()
        for value in region.params:
            given = self.inputs.get(value)
            new = value if given is None else now.setdefault(value, Value(value.type.with_sharding(given), value.name))
            builder.params.append(new)
        for value in region.params:
            self._put_behind(builder, now, value, None, manual)
        for node in region.nodes:
            operands = tuple([now.get(v, v) for v in node.operands])
            if (given := self.nodes.get(node)) is not None:
                name, given = node.result.name, replace(given, manual=manual)
                now[node.result] = SHARDING_CONSTRAINT(builder, *operands, sharding=given, loc=node.loc, name=name)
                continue
            own = (*manual, *manual_axes(node))
            regions = tuple([self.region(r, own) for r in node.regions])
            if operands != node.operands or regions != node.regions:
                node = Node(node.op, operands, node.results, node.attrs, regions, node.loc)
            builder.nodes.append(node)
            for value in node.results:
                self._put_behind(builder, now, value, node, manual)
        if not now and all(a is b for a, b in zip(builder.nodes, region.nodes, strict=True)):
            return region
        return builder.region([now.get(v, v) for v in region.results])

    def _put_behind(
        self, builder: Builder, now: dict[Value, Value], value: Value, node: Node | None, manual: Axes
    ) -> None:
        sharding = self.behind.get(value)
        if sharding is not None:
            loc, given = None if node is None else node.loc, replace(sharding, manual=manual)
            name = f"{self.names[value]}_annotated"
            now[value] = SHARDING_CONSTRAINT(builder, value, sharding=given, loc=loc, name=name)
