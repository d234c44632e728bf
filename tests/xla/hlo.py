"""Read XLA's HLO text: shapes, replica groups, trip counts, shardings, and the collectives with their bytes.

Only as much of the syntax is understood as the judge needs. Bytes on the wire are per device, under the ring model,
with group size g:

    all-gather      (g-1)/g * output bytes        reduce-scatter  (g-1)/g * input bytes
    all-reduce    2*(g-1)/g * operand bytes       all-to-all      (g-1)/g * operand bytes
    collective-permute        operand bytes of a device that sends
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

BYTES = {
    **dict.fromkeys(("pred", "s2", "u2", "s4", "u4", "s8", "u8"), 1),
    **dict.fromkeys(("s16", "u16", "f16", "bf16"), 2),
    **dict.fromkeys(("s32", "u32", "f32"), 4),
    **dict.fromkeys(("s64", "u64", "f64", "c64"), 8),
    "c128": 16,
}
COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "reduce-scatter",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "ragged-all-to-all",
    }
)
# What may stand between an all-reduce and the slice of its result.
FORMATTING = frozenset({"reshape", "transpose", "bitcast", "copy", "convert"})

COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
INSTRUCTION = re.compile(r"\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z\-]+)\((.*?)\)")
TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
CALLEE = re.compile(r"(?:body|condition|to_apply|calls)=%?([\w.\-]+)")
CALLEES = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a module: the computation it stands in, its parts, and the line itself."""

    computation: str
    name: str
    shape: str
    kind: str
    arguments: str
    line: str


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective of a partitioned module, with its per-device bytes.

    members: the arrays that it combines. sliced: how many of them are all-reduced only to be sliced, and therefore
    priced as reduce-scatters. count: how often it runs. wire_bytes: of all its runs together.
    """

    kind: str
    members: int
    sliced: int
    group: int
    operand_bytes: int
    output_bytes: int
    count: int
    wire_bytes: float


def shape_bytes(text: str) -> int:
    """Bytes of every array in an HLO shape such as `(f32[8,4]{1,0}, s32[])`."""
    arrays = re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", text)
    return sum(BYTES.get(dtype, 0) * math.prod(int(d) for d in dims.split(",") if d) for dtype, dims in arrays)


def group_size(line: str, devices: int) -> int:
    """Devices in each group of a collective, in any of the forms that XLA prints."""
    if m := re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", line):
        sizes = dict(re.findall(r"'([^']+)'=(\d+)", m.group(1)))
        axes = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", m.group(2))
        return math.prod(int(part or sizes[axis]) for axis, part in axes)
    if m := re.search(r"replica_groups=\[(\d+),(\d+)\]", line):
        return int(m.group(2))
    if m := re.search(r"replica_groups=\{\{([\d,]*)\}", line):
        return len(m.group(1).split(","))
    if "replica_groups={}" in line or "source_target_pairs" in line or "replica_groups" not in line:
        return devices
    raise ValueError(f"unknown form of replica groups: {line.strip()[:200]}")


def instructions(hlo: str) -> Iterator[Instruction]:
    """The instructions of a module, in the order of its text."""
    computation = ""
    for line in hlo.splitlines():
        if m := COMPUTATION.match(line):
            computation = m.group(2)
        elif m := INSTRUCTION.match(line):
            yield Instruction(computation, m.group(1), m.group(2), m.group(3), m.group(4), line)


def run_counts(hlo: str) -> Counter[str]:
    """How often each computation of a module runs; a loop whose length XLA does not know counts once."""
    entry, calls = _calls(hlo)
    counts: Counter[str] = Counter()

    def visit(name: str, times: int) -> None:
        counts[name] += times
        for callee, trips in calls.get(name, ()):
            visit(callee, times * trips)

    visit(entry, 1)
    return counts


def sliced_all_reduces(hlo: str, devices: int) -> Counter[tuple[int, int]]:
    """(operand bytes, group) of each all-reduce whose one use, through formatting, is a dynamic-slice."""
    lines = {i.name: i for i in instructions(hlo)}
    users: dict[str, list[str]] = {}
    for i in lines.values():
        for operand in re.findall(r"%([\w.\-]+)", i.arguments):
            users.setdefault(operand, []).append(i.name)
    found: Counter[tuple[int, int]] = Counter()
    for i in lines.values():
        if i.kind == "all-reduce" and _ends_in_slice(i.name, lines, users):
            found[shape_bytes(i.shape), group_size(i.line, devices)] += 1
    return found


def collectives(hlo: str, devices: int, sliced: Counter[tuple[int, int]]) -> list[Collective]:
    """The collectives of a partitioned module that ever run, with their bytes.

    `sliced` counts the all-reduces, by (operand bytes, group), that pipelines for other devices than CPUs make
    reduce-scatters; in fairness to XLA that many members are priced so.
    """
    left, counts = sliced.copy(), run_counts(hlo)
    shapes: dict[tuple[str, str], str] = {}
    found: list[Collective] = []
    for i in instructions(hlo):
        shapes[i.computation, i.name] = i.shape
        if i.kind.removesuffix("-start") in COLLECTIVES and counts[i.computation]:
            names = re.findall(r"%?([\w.\-]+)", i.arguments)
            members = [shape_bytes(shapes.get((i.computation, name), "")) for name in names]
            found.append(_priced(i, members, group_size(i.line, devices), counts[i.computation], left))
    return found


def instruction_shardings(hlo: str) -> dict[str, str]:
    """The sharding of each instruction that has one, by the user's name for it where there is one."""
    found: dict[str, str] = {}
    for line in hlo.splitlines():
        m, at = re.match(r"\s*(?:ROOT )?%([\w.\-]+) = ", line), line.find("sharding={")
        if m and at >= 0:
            name = re.search(r'op_name="([^"]*)"', line)
            found[name.group(1) if name else m.group(1)] = _braced(line, at + len("sharding="))
    return found


def _calls(hlo: str) -> tuple[str, dict[str, list[tuple[str, int]]]]:
    """The entry computation, and what each computation calls, how often."""
    calls: dict[str, list[tuple[str, int]]] = {}
    entry = current = ""
    for line in hlo.splitlines():
        if m := COMPUTATION.match(line):
            current = m.group(2)
            entry = current if m.group(1) else entry
            calls[current] = []
        elif current:
            trips = int(m.group(1)) if (m := TRIP_COUNT.search(line)) else 1
            calls[current] += [(name, trips) for name in CALLEE.findall(line)]
            for group in CALLEES.findall(line):
                calls[current] += [(name.strip().lstrip("%"), 1) for name in group.split(",")]
    return entry, calls


def _ends_in_slice(name: str, lines: dict[str, Instruction], users: dict[str, list[str]]) -> bool:
    while len(users.get(name, ())) == 1:
        (name,) = users[name]
        if lines[name].kind not in FORMATTING:
            return lines[name].kind == "dynamic-slice"
    return False


def _priced(i: Instruction, members: list[int], g: int, count: int, sliced: Counter[tuple[int, int]]) -> Collective:
    kind = i.kind.removesuffix("-start")
    wire, halved = 0.0, 0
    for size in members:
        cost = _wire_bytes(kind, size, g)
        if kind == "all-reduce" and sliced[size, g]:
            sliced[size, g] -= 1
            cost, halved = cost / 2, halved + 1
        wire += cost
    return Collective(kind, len(members), halved, g, sum(members), shape_bytes(i.shape), count, wire * count)


def _wire_bytes(kind: str, operand: int, g: int) -> float:
    if kind == "all-gather":
        return (g - 1) * operand
    if kind == "all-reduce":
        return 2 * (g - 1) / g * operand
    if kind in ("reduce-scatter", "all-to-all"):
        return (g - 1) / g * operand
    return operand


def _braced(text: str, start: int) -> str:
    """The text from an opening brace to the one that closes it."""
    depth = 0
    for end in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[start : end + 1]
    return text[start:]
