"""What changes if values are annotated otherwise: bytes on the wire, collectives, memory, shardings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gspmd.inspect.annotating import read_annotations
from gspmd.inspect.collectives import by_kind, collectives_of, wire_of
from gspmd.inspect.memory import memory_of
from gspmd.inspect.units import change_text
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program, Value
from gspmd.ir.mesh import Mesh
from gspmd.ir.printer import value_names
from gspmd.ir.sharding import Sharding

Programs = Mapping[str, Program]
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Changed:
    """A value whose sharding changes; `bytes` are those of the whole value."""

    value: str
    before: str
    after: str
    bytes: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Before and after; `shardings` lists all values that change, the largest first."""

    annotations: tuple[tuple[str, str], ...]
    wire_bytes: tuple[float, float]
    kinds: Mapping[str, tuple[float, float]]
    collectives: tuple[int, int]
    peak_memory: tuple[int, int]
    shardings: tuple[Changed, ...]

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """What changes, as lines of text."""
        before, after = self.collectives
        lines = [
            f"if {' and '.join(f'%{name} is annotated {sharding}' for name, sharding in self.annotations)}",
            f"  wire bytes a device: {change_text(*self.wire_bytes)}",
            *(f"    {kind}: {change_text(*both)}" for kind, both in self.kinds.items()),
            f"  collectives: {before} -> {after}" if before != after else f"  collectives: {after}, as before",
            f"  peak memory a device: {change_text(*self.peak_memory)}",
        ]
        if not self.shardings:
            return "\n".join([*lines, "  no sharding changes"])
        lines.append(f"  {len(self.shardings)} shardings change:")
        lines += [f"    %{c.value}: {c.before} -> {c.after}" for c in self.shardings[:_SHOWN]]
        if len(self.shardings) > _SHOWN:
            lines.append(f"    ... and {len(self.shardings) - _SHOWN} smaller ones")
        return "\n".join(lines)


def wanted_annotations(program: Program, mesh: Mesh, given: Mapping[str, Sharding | str]) -> dict[Value, Sharding]:
    """The values and shardings that a user means; raises UsageError for unknown values and axes, and for no value."""
    if not given:
        raise UsageError("what if what?", fix='name values and shardings: {"w": "[model, _]"}')
    return read_annotations(program, mesh, given)


def compare_programs(
    annotations: Mapping[str, str], before: Programs, after: Programs, donated: tuple[int, ...]
) -> WhatIf:
    """What changes between two compiled programs, each at all stages, of which one is annotated otherwise."""
    uses = [collectives_of(programs["optimized"]) for programs in (before, after)]
    kinds = [by_kind(u) for u in uses]
    peaks = [memory_of(programs["scheduled"], donated).peak for programs in (before, after)]
    return WhatIf(
        tuple(annotations.items()),
        (wire_of(uses[0]), wire_of(uses[1])),
        {kind: (kinds[0].get(kind, 0.0), kinds[1].get(kind, 0.0)) for kind in sorted({*kinds[0], *kinds[1]})},
        (len(uses[0]), len(uses[1])),
        (peaks[0], peaks[1]),
        tuple(changed_shardings(before["propagated"], after["propagated"])),
    )


def changed_shardings(before: Program, after: Program) -> list[Changed]:
    """The values of two propagated programs, by name, whose shardings differ; the largest first."""
    others = {name: value for value, name in value_names(after).items()}
    found: list[Changed] = []
    for value, name in value_names(before).items():
        other = others.get(name)
        if other is not None and other.type.placed != value.type.placed and other.type.shape == value.type.shape:
            shape = value.type.shape
            texts = value.type.placed.text(shape), other.type.placed.text(shape)
            found.append(Changed(name, *texts, value.type.nbytes))
    return sorted(found, key=lambda changed: -changed.bytes)
