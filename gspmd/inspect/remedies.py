"""What would have to be annotated for a collective to vanish: each suggestion is compiled, and told only if it works.

A collective is gone if the op that asked for it asks for one less of its kind over its axes, and if less of that kind
goes over the wire in the whole program: one that has only moved does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from gspmd.inspect.annotating import with_annotations
from gspmd.inspect.cause import Traced
from gspmd.inspect.collectives import CollectiveUse, by_kind, collective_nodes, collectives_of, wire_of
from gspmd.inspect.explain_collective import Remedy
from gspmd.inspect.memory import memory_of
from gspmd.inspect.provenance import Pass, earlier_values, marked, origin, origins, replayed
from gspmd.inspect.suggestions import suggestions
from gspmd.inspect.surroundings import Surroundings
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Program, Value
from gspmd.ir.printer import value_names
from gspmd.propagation.reasons import Reasons

Compile = Callable[[Program], Mapping[str, Program]]
_SECONDS = 20.0  # no further suggestion is tried after so long
_MOST = 16
_TOLD = 3


@dataclass(frozen=True, slots=True)
class Workshop:
    """A compiled program that is to be compiled again, otherwise annotated.

    `programs` are all its stages from `annotated` on; `compile` takes an annotated program through them; `complete`
    leads to `propagated` alone, and `donated` numbers the inputs that a call may use up.
    """

    programs: Mapping[str, Program]
    reasons: Reasons
    compile: Compile
    complete: Pass
    donated: Sequence[int] = ()

    def written(self) -> tuple[list[int | None], dict[Value, Value]]:
        """For each node of the propagated program that of the annotated one, and so for values."""
        annotated, propagated = self.programs["annotated"], self.programs["propagated"]
        count = sum(1 for _ in propagated.body.walk())
        numbers: list[int | None] = list(range(count))
        if count != sum(1 for _ in annotated.body.walk()):  # ops were taken apart
            numbers = origins(replayed(annotated, [self.complete]))
        return numbers, earlier_values(propagated, annotated, numbers)


def remedies(shop: Workshop, traced: Traced, number: int) -> tuple[Remedy, ...]:
    """The annotations, tried out, under which a collective is gone; those that leave the fewest bytes to send first.

    If none sends less in all, the one that sends least. No more are tried once that has taken twenty seconds.
    """
    cause, uses = traced.causes[number], collectives_of(shop.programs["optimized"])
    numbers, written = shop.written()
    asked = [None if c.number is None else numbers[c.number] for c in traced.causes]
    kind, key = uses[number].kind, _key(uses[number], asked[number])
    count, carried = Counter(map(_key, uses, asked))[key], by_kind(uses)[kind]
    before = wire_of(uses), memory_of(shop.programs["scheduled"], shop.donated).peak
    annotated = shop.programs["annotated"]
    names, source, around = value_names(annotated), marked(annotated), Surroundings.of(annotated)
    found: dict[tuple[float, int], Remedy] = {}
    start = perf_counter()
    for suggestion in suggestions(traced, cause, shop.reasons)[:_MOST]:
        if perf_counter() - start > _SECONDS:
            break
        wanted = {around.root(written[v]): s for v, s in suggestion.items() if v in written}
        try:
            after = shop.compile(with_annotations(source, wanted))
        except GspmdError:  # shardings that do not go together
            continue
        now = collectives_of(after["optimized"])
        marks = [origin(node) for node, _ in collective_nodes(after["optimized"])]
        if Counter(map(_key, now, marks))[key] >= count or by_kind(now).get(kind, 0.0) >= carried:
            continue
        costs = wire_of(now), memory_of(after["scheduled"], shop.donated).peak
        said = tuple((names[v], s.text()) for v, s in wanted.items())
        if costs not in found or len(said) < len(found[costs].annotations):
            places = tuple(map(around.place, wanted))
            found[costs] = Remedy(said, places, (before[0], costs[0]), (before[1], costs[1]))
    best = [costs for costs in sorted(found) if costs[0] < before[0]] or sorted(found)[:1]
    return tuple(found[costs] for costs in best[:_TOLD])


def _key(use: CollectiveUse, number: int | None) -> tuple[str, tuple[str, ...], int | None]:
    return use.kind, use.axes, number
