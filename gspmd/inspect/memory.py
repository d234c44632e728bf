"""How much memory a device needs at most, where in the program, and for what.

Found by liveness over the last stage in its own order: arguments stay for the whole call unless they are donated,
constants always, every other value from the node that makes it to the last one that reads it. The workspace of a kernel
inside one op is not counted. What a device really holds is the same, or less where an op's result is only a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspmd.inspect.lines import line_of
from gspmd.inspect.liveness import life_of, literals
from gspmd.inspect.units import bytes_text, count_text
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Node, Program, Value
from gspmd.ir.printer import value_names

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Held:
    """One value that a device holds: its printed name at the last stage, its type there, the op and line it is from."""

    value: str
    type: str
    bytes: int
    op: str
    line: str

    def text(self) -> str:
        """`1.5 MiB  %h f32[256, 1024] of dot_general at mlp.py:12`."""
        at = f" at {self.line}" if self.line else ""
        return f"{bytes_text(self.bytes):>10}  %{self.value} {self.type}{f' of {self.op}' if self.op else ''}{at}"


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The peak of one device: bytes in all, of arguments that stay, of constants; the op and user's line; the values.

    `held` lists what is alive at the peak, the largest first.
    """

    peak: int
    arguments: int
    constants: int
    op: str
    line: str
    held: tuple[Held, ...]

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The peak, where it is, and the largest values alive there."""
        at = f" in {self.op}" if self.op else ""
        at += f" at {self.line}" if self.line else ""
        rest = self.peak - self.arguments - self.constants
        parts = [(self.arguments, "arguments"), (self.constants, "constants"), (rest, "made on the way")]
        lines = [
            f"peak memory a device: {bytes_text(self.peak)}{at}",
            f"  {', '.join(f'{bytes_text(n)} {what}' for n, what in parts if n) or 'nothing'}",
        ]
        lines += [f"  {held.text()}" for held in self.held[:_SHOWN]]
        more = self.held[_SHOWN:]
        if more:
            lines.append(f"  {bytes_text(sum(h.bytes for h in more)):>10}  in {count_text(len(more), 'more value')}")
        return "\n".join(lines)


def memory_of(program: Program, donated: Sequence[int] = ()) -> MemoryUse:
    """The peak memory of a device in one call of a program at a local stage; `donated` numbers inputs that may go.

    Raises UsageError for a program on whole tensors.
    """
    if not program.is_local:
        raise UsageError(f"memory is known of per-device programs, {program.name} is at stage {program.stage}")
    body = program.body
    freed = [body.params[i] for i in donated]
    kept = [v for i, v in enumerate(body.params) if i not in set(donated)]
    peak = life_of(body).peak(freed)
    fixed = list(dict.fromkeys(literals(body)))
    arguments, constants = (sum(v.type.nbytes for v in vs) for vs in (kept, fixed))
    names = value_names(program)
    makers = {v: n for n in body.walk() for v in n.results}
    values = [*peak.values, *((v, v.type.nbytes) for v in (*kept, *fixed))]
    values.sort(key=lambda item: -item[1])
    node = peak.node
    return MemoryUse(
        arguments + constants + peak.bytes,
        arguments,
        constants,
        "" if node is None else node.op.name,
        line_of(node),
        tuple(_held(v, n, names, makers.get(v)) for v, n in values if n),
    )


def _held(value: Value, size: int, names: dict[Value, str], maker: Node | None) -> Held:
    return Held(names[value], value.type.text(), size, "" if maker is None else maker.op.name, line_of(maker))
