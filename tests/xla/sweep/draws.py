"""Cases by the thousand: hypothesis draws them, op by op and dtype by dtype."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.xla.sweep.cases import Case, Generator

# Cases that one example of hypothesis holds.
_CHUNK = 12


@st.composite
def _chunk(draw: Any, chosen: Sequence[tuple[Generator, str]]) -> list[Case]:
    return [generator.make(draw, dtype) for generator, dtype in chosen]


def draw_cases(generators: Sequence[Generator], rounds: int, number: int) -> Iterator[list[Case]]:
    """Batches of cases: of each op and dtype at least so many, of ops of more weight more; the same for each seed."""
    wanted = [(g, dtype) for g in generators for dtype in g.dtypes for _ in range(g.weight)]
    for start in range(0, len(wanted), _CHUNK):
        yield _examples(wanted[start : start + _CHUNK], rounds, number + start)


def _examples(chosen: Sequence[tuple[Generator, str]], rounds: int, number: int) -> list[Case]:
    """What hypothesis draws for some ops, each case once; its first example, the least of all, counts as well."""
    found: dict[tuple[Any, ...], Case] = {}

    @seed(number)
    @settings(
        max_examples=rounds + 1,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(_chunk(chosen))
    def collect(cases: list[Case]) -> None:
        for case in cases:
            found.setdefault((case.text, *(x.tobytes() for x in case.arrays)), case)

    collect()
    return list(found.values())


def rounds_for(generators: Sequence[Generator], count: int) -> int:
    """How many rounds make at least so many cases."""
    each = sum(g.weight * len(g.dtypes) for g in generators)
    return max(-(-count // each), 1)
