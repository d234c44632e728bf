"""What a compiled program must not do: issue some kinds of collectives, send too much, need too much memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from gspmd.inspect.collectives import KINDS, CollectiveUse, wire_of
from gspmd.inspect.explain_collective import CollectiveExplanation
from gspmd.inspect.memory import MemoryUse
from gspmd.inspect.units import bytes_text, count_text, parse_bytes
from gspmd.ir.errors import LimitError, UsageError

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """Kinds of collectives that are forbidden, and the most bytes on the wire and in memory of a device, if limited."""

    forbid: tuple[str, ...] = ()
    max_wire_bytes: float | None = None
    max_memory: float | None = None

    def __bool__(self) -> bool:
        return self != Limits()

    def __or__(self, other: Limits) -> Limits:
        """All that either forbids; where both limit a quantity, `self` does."""
        return Limits(
            tuple(dict.fromkeys((*self.forbid, *other.forbid))),
            other.max_wire_bytes if self.max_wire_bytes is None else self.max_wire_bytes,
            other.max_memory if self.max_memory is None else self.max_memory,
        )


def limits_of(
    forbid: Sequence[str] | str = (), max_wire_bytes: float | str | None = None, max_memory: float | str | None = None
) -> Limits:
    """Read limits as users give them; raises UsageError for an unknown kind of collective and what is no size."""
    given = forbid.split(",") if isinstance(forbid, str) else forbid
    kinds = [kind.strip().replace("-", "_") for kind in given if kind.strip()]
    for kind in kinds:
        if kind not in KINDS:
            close = get_close_matches(kind, KINDS, 1)
            raise UsageError(
                f"there is no collective {kind!r}",
                fix=f"did you mean {close[0]}?" if close else f"it is one of {', '.join(KINDS)}",
            )
    sizes = [
        None if size is None else parse_bytes(size, what)
        for size, what in ((max_wire_bytes, "max_wire_bytes"), (max_memory, "max_memory"))
    ]
    # What a device sends is a part of something, and may be a fraction; what it holds is not.
    if sizes[1] is not None and not sizes[1].is_integer():
        raise UsageError(f"max_memory is a whole number of bytes, not {max_memory!r}", fix="write 4096, 64M or 1.5G")
    return Limits(tuple(dict.fromkeys(kinds)), sizes[0], sizes[1])


def check_limits(
    limits: Limits,
    uses: Sequence[CollectiveUse],
    memory: Callable[[], MemoryUse],
    explain: Callable[[int], CollectiveExplanation],
) -> None:
    """Raise one LimitError that tells all that a program does against its limits, and why."""
    said: list[str] = []
    forbidden = [i for i, use in enumerate(uses) if use.kind in limits.forbid]
    if forbidden:
        count = count_text(len(forbidden), "forbidden collective")
        said += [f"the program issues {count}:", *_listed(uses, forbidden, explain)]
    wire = wire_of(uses)
    if limits.max_wire_bytes is not None and wire > limits.max_wire_bytes:
        listed = _listed(uses, [i for i in range(len(uses)) if i not in forbidden], explain)
        most, end = bytes_text(limits.max_wire_bytes), ":" if listed else ""
        said += [f"a device puts {bytes_text(wire)} on the wire, {most} are allowed{end}", *listed]
    if limits.max_memory is not None and (use := memory()).peak > limits.max_memory:
        said.append(f"a device needs {bytes_text(use.peak)} of memory, {bytes_text(limits.max_memory)} are allowed:")
        said += [f"  {line}" for line in use.text().splitlines()]
    if said:
        raise LimitError("\n".join(said), fix="annotate values otherwise: explain_collective tells what would help")


def _listed(
    uses: Sequence[CollectiveUse], numbers: Sequence[int], explain: Callable[[int], CollectiveExplanation]
) -> list[str]:
    """Collectives with their causes, those that send most first; of many the first few."""
    ranked = sorted(numbers, key=lambda i: -uses[i].total_bytes)
    lines = [f"  {line}" for i in ranked[:_SHOWN] for line in explain(i).text().splitlines()]
    if len(ranked) > _SHOWN:
        more = wire_of([uses[i] for i in ranked[_SHOWN:]])
        lines.append(f"  ... and {len(ranked) - _SHOWN} more with {bytes_text(more)}")
    return lines
