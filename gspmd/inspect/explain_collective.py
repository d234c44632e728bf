"""Why a collective is there, what it costs, and what would make it vanish.

The answer is a value that prints::

#1 all_reduce over model (4 devices): 24.0 KiB a device, 3 times = 72.0 KiB, 75% of all
  of %21: f32[64@data, 128]~add(model) -> f32[64@data, 128]
  for the result of dot_general at mlp.py:9
  because each device has only its own part of the sum: dot_general combines along dim 1 of %20 and ...
  it vanishes if
    %v is annotated [_, _]: wire bytes 96.0 KiB -> 24.0 KiB (-72.0 KiB); peak memory ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gspmd.inspect.cause import Cause, Traced
from gspmd.inspect.collectives import CollectiveUse, wire_of
from gspmd.inspect.lines import at_line
from gspmd.inspect.surroundings import Surroundings
from gspmd.inspect.units import bytes_text, change_text
from gspmd.inspect.why import why
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program, Value
from gspmd.ir.printer import value_names
from gspmd.propagation.reasons import Reasons


@dataclass(frozen=True, slots=True)
class Remedy:
    """Annotations under which a collective is gone, tried by compiling, and what changes: before and after.

    `annotations` are printed names and shardings, as `what_if` takes them, `places` says what each value is.
    """

    annotations: tuple[tuple[str, str], ...]
    places: tuple[str, ...]
    wire_bytes: tuple[float, float]
    peak_memory: tuple[int, int]

    def text(self) -> str:
        """`%v is annotated [_, _]: wire bytes ... ; peak memory ...`."""
        values = zip(self.annotations, self.places, strict=True)
        said = " and ".join(f"%{name}{f' ({at})' if at else ''} is annotated {s}" for (name, s), at in values)
        return f"{said}: wire bytes {change_text(*self.wire_bytes)}; peak memory {change_text(*self.peak_memory)}"


@dataclass(frozen=True, slots=True)
class CollectiveExplanation:
    """Why a collective is there.

    `value` is the printed name (of the propagated stage) of what is moved; `asked` the role, op and line of what asked
    for it; `shardings` the types before and after; `why` and `origins` sentences. `remedies` is None if none were
    looked for.
    """

    number: int
    use: CollectiveUse
    share: float
    value: str
    asked: str
    shardings: tuple[str, ...]
    why: tuple[str, ...]
    origins: tuple[str, ...]
    remedies: tuple[Remedy, ...] | None = None

    def __str__(self) -> str:
        return self.text()

    def head(self) -> str:
        """What it is and what it costs, in a line."""
        use = self.use
        times = f", {use.count} times = {bytes_text(use.total_bytes)}" if use.count != 1 else ""
        share = f", {self.share:.0%} of all" if self.share < 1 else ""
        over = "+".join(use.axes)
        size = f"{bytes_text(use.wire_bytes)} a device"
        return f"#{self.number} {use.kind} over {over} ({use.group_size} devices): {size}{times}{share}"

    def text(self) -> str:
        """The explanation as lines of text."""
        lines = [self.head()]
        if self.value:
            lines.append(f"  of %{self.value}: {' -> '.join(self.shardings)}")
        lines.append(f"  {self.asked}")
        lines += [f"  {'because' if i == 0 else 'and'} {sentence}" for i, sentence in enumerate(self.why)]
        lines += [f"  {sentence}" for sentence in self.origins]
        if self.remedies:
            lines += ["  it vanishes if", *(f"    {remedy.text()}" for remedy in self.remedies)]
        elif self.remedies is not None:
            lines.append("  no annotation that was tried makes it vanish")
        return "\n".join(lines)


def explain_collective(
    uses: Sequence[CollectiveUse], traced: Traced | None, reasons: Reasons | None, number: int
) -> CollectiveExplanation:
    """Explain a collective by its number in `collectives_of`; `traced` and `reasons` are what is known of its cause."""
    use = uses[number]
    share = use.total_bytes / (wire_of(uses) or 1.0)
    if traced is None:
        at = f" at {use.line}" if use.line else ""
        asked = f"for %{use.value}{at}: the program was loaded per device, why it is there is not known"
        return CollectiveExplanation(number, use, share, "", asked, (), (), ())
    cause = traced.causes[number]
    names = value_names(traced.base)
    others = value_names(traced.explicit)

    def name(value: Value) -> str:
        now = traced.now.get(value)
        return f"%{names[now]}" if now in names else f"%{others[value]}"

    shardings = tuple(cause.value.type.with_sharding(s).text() for s in (cause.source, cause.target) if s is not None)
    origins = () if reasons is None else tuple(_origins(cause, reasons, traced.base, names))
    sentences = tuple(why(cause, name))
    return CollectiveExplanation(
        number, use, share, names.get(cause.value, use.value), _asked(cause, name), shardings, sentences, origins
    )


def number_of(uses: Sequence[CollectiveUse], traced: Traced | None, which: int | str) -> int:
    """The number of a collective, given so or by the name of the value that it moves; UsageError if that is unclear."""
    text = str(which).strip().removeprefix("#")
    if not text.startswith("%") and text.isdigit():
        if int(text) < len(uses):
            return int(text)
        has = f"the program has {len(uses)}, numbered from 0" if uses else "the program has none"
        raise UsageError(f"there is no collective #{text}: {has}")
    wanted = text.removeprefix("%")
    found = [i for i, use in enumerate(uses) if use.value == wanted]
    if traced is not None:
        names = value_names(traced.base)
        moved = [i for i, cause in enumerate(traced.causes) if names.get(cause.value) == wanted]
        found = moved or found
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"no collective moves a value %{wanted}", fix="`gspmd collectives` lists them by number")
    listed = ", ".join(f"#{i} {uses[i].kind}" for i in found)
    raise UsageError(f"{len(found)} collectives move %{wanted}: {listed}", fix="ask by number")


def _asked(cause: Cause, name: Callable[[Value], str]) -> str:
    node = cause.node
    line = "" if node is None else at_line(node.loc)
    op = cause.explicit.op.name if node is None else node.op.name
    makes = f", which makes {name(cause.explicit.results[0])}" if cause.explicit.results else ""
    told = {
        "operand": f"needed by {op}{line}{makes}",
        "result": f"for the result of {op}{line}",
        "annotation": f"asked for by the annotation{line}",
        "handed": f"asked for by {op}{line}, whose region hands it on" if node else "handed out by the program",
        "inside": f"within {op}{line}{makes}",
        "manual": f"the user's own collective{line}",
    }
    return told[cause.role]


def _origins(cause: Cause, reasons: Reasons, base: Program, names: dict[Value, str]) -> list[str]:
    """Where the sharding of the value that is moved came from, a line for each piece."""
    found: list[str] = []
    if cause.value not in names or cause.role == "manual":
        return found
    sharding, around = reasons.sharding(cause.value), Surroundings.of(base)
    for dim in range(sharding.rank):
        for chain in reasons.chains(cause.value, dim):
            annotation = reasons.annotation(chain.annotated)
            said = "" if annotation is None else f" {annotation.text()}"
            line = at_line(around.loc(chain.annotated))
            axes, end = sharding.axes_text((chain.axis,)), names[chain.annotated]
            away = f", {len(chain.events)} ops away" if len(chain.events) > 1 else ""
            found.append(
                f"%{names[cause.value]} has {axes} on dim {dim} from the annotation{said} of %{end}{line}{away}"
            )
    return found
