"""The judge's own reading of XLA's texts, and the record of its answers."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from tests.xla.case import differences
from tests.xla.hlo import collectives, group_size, instruction_shardings, run_counts, shape_bytes, sliced_all_reduces
from tests.xla.judge_programs import CASES
from tests.xla.oracle import ask
from tests.xla.record import Record, lookup
from tests.xla.table import HIGHEST_RATIO, MOST_HIGHER, PAGE, line, row_of
from tests.xla.version import jaxlib_version

HANDFUL = 2
RECORD = Record()

MODULE = """HloModule m
%body (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %all-reduce.1 = f32[8]{0} all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%add
}
%unused (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  ROOT %all-reduce.2 = f32[8]{0} all-reduce(%q), replica_groups={}, to_apply=%add
}
ENTRY %main (a: f32[8]) -> f32[32] {
  %a = f32[8]{0} parameter(0), sharding={{replicated}, {devices=[2]<=[2]}}, metadata={op_name="x"}
  %while.1 = f32[8]{0} while(%a), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %reshape.1 = f32[2,4]{1,0} reshape(%while.1)
  ROOT %all-gather.1 = f32[32]{0} all-gather(%a), replica_groups=[1,4]<=[4], dimensions={0}
}
"""


def test_shape_bytes() -> None:
    assert shape_bytes("(f32[8,4]{1,0}, s32[], bf16[3])") == 128 + 4 + 6


@pytest.mark.parametrize(
    ("groups", "size"),
    [
        ("replica_groups={{0,1,2},{3,4,5}}", 3),
        ("replica_groups=[4,2]<=[8]", 2),
        ("replica_groups=mesh['a'=2,'b'=4] {'a','b'}", 8),
        ("replica_groups=mesh['a'=2,'b'=4] {'b':(1)2}", 2),
        ("replica_groups={}", 8),
        ("source_target_pairs={{0,1}}", 8),
    ],
)
def test_group_size(groups: str, size: int) -> None:
    assert group_size(f"x = f32[] all-reduce(y), {groups}, to_apply=add", 8) == size


def test_collectives_of_a_loop_count_as_often_as_it_runs() -> None:
    assert run_counts(MODULE)["body"] == 5
    found = {c.kind: (c.group, c.count, c.wire_bytes) for c in collectives(MODULE, 4, Counter())}
    assert found == {"all-reduce": (2, 5, 5 * 32.0), "all-gather": (4, 1, 3 * 32.0)}


def test_a_sliced_all_reduce_is_priced_as_a_reduce_scatter() -> None:
    text = MODULE.replace("all-gather(%a), replica", "dynamic-slice(%reshape.1), replica").replace(
        "while(%a), condition=%cond, body=%body", "all-reduce(%a), replica_groups={{0,1}}, to_apply=%add"
    )
    sliced = sliced_all_reduces(text, 4)
    assert sliced == {(32, 2): 1}
    (one,) = collectives(text, 4, sliced)
    assert (one.sliced, one.wire_bytes) == (1, 16.0)
    assert sliced == {(32, 2): 1}


def test_shardings_go_by_the_users_names() -> None:
    assert instruction_shardings(MODULE) == {"x": "{{replicated}, {devices=[2]<=[2]}}"}


def test_every_program_has_an_answer() -> None:
    programs = {path.name for path in (RECORD.folder / "programs").iterdir()}
    assert programs == {entry.program for entry in RECORD.entries()}
    for entry in RECORD.entries():
        assert lookup(RECORD.text(entry.program), entry.devices).error == "", entry.program


def test_a_program_that_was_never_asked_about_says_how_to_ask() -> None:
    with pytest.raises(KeyError, match=r"python -m tests\.xla\.record"):
        lookup("module {}", 2)


def test_answers_to_older_texts_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    record, (first, *_) = Record(tmp_path), RECORD.entries()
    path = tmp_path / "programs" / first.program
    path.write_text(RECORD.text(first.program))
    record.write([first])
    assert record.entries() == [first]
    path.write_text("changed")
    record.write([])
    assert record.entries() == []


def test_the_table_holds_what_it_promises() -> None:
    """Where shardings are fixed we send more than XLA in few programs, never much more, and less in all."""
    rows = [row_of(case) for case in CASES]
    fixed = [row for row in rows if not row.case.loose]
    assert len(fixed) >= 40
    assert sum(len(row.case.mesh.axes) == 2 for row in rows) >= 15
    assert sum(row.case.ragged for row in rows) >= 8
    higher = [row for row in fixed if row.higher]
    assert len(higher) <= MOST_HIGHER, [line(row) for row in higher]
    assert all(row.ratio <= HIGHEST_RATIO for row in higher), [line(row) for row in higher]
    assert sum(row.ours for row in fixed) < sum(row.theirs for row in fixed)


def test_xla_was_asked_about_the_programs_as_they_are() -> None:
    """The recorded texts have today's arguments and results, with today's shardings."""
    for case in CASES:
        recorded, today = (signature(text) for text in (RECORD.text(case.file), case.exported()))
        assert recorded == today, f"{case.name} has changed; python -m tests.xla.export {case.name} asks XLA again"


def test_the_page_shows_the_programs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [case.name for case in CASES if f"| {case.name} |" not in page]
    assert not missing, "python -m tests.xla.table writes the page"


@pytest.mark.parametrize("place", range(HANDFUL))
def test_values_are_xlas(place: int) -> None:
    """A few programs, others every day, run by both; `python -m tests.xla.table --values` runs all."""
    pytest.importorskip("jaxlib")
    case = CASES[(date.today().toordinal() * HANDFUL + place) % len(CASES)]
    assert differences(case) == []


def signature(text: str) -> str:
    """The line of a module that names arguments, results and their shardings."""
    return next(row for row in text.splitlines() if "func.func public @main" in row)


def todays_handful() -> list[tuple[str, int]]:
    """A few recorded questions, others every day."""
    asked = sorted({(e.program, e.devices) for e in RECORD.entries()})
    start = date.today().toordinal() * HANDFUL
    return [asked[(start + i) % len(asked)] for i in range(min(HANDFUL, len(asked)))]


def test_xla_still_says_what_is_recorded() -> None:
    for program, devices in todays_handful():
        text = RECORD.text(program)
        entry = RECORD.find(text, devices)
        if entry is None or entry.jaxlib != jaxlib_version():
            pytest.skip(f"the record has no answer of jaxlib {jaxlib_version() or '(none installed)'}")
        assert RECORD.ask(program, devices) == entry


def test_a_refused_program_is_an_error_in_the_answer() -> None:
    answer = ask("module { this is no program }", 2)
    assert answer.error
    assert answer.collectives == ()
