"""Explained collectives: each has a cause in the user's names, and what is said to make it vanish does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType
from gspmd.frontend.tree import flatten
from gspmd.inspect.annotating import find_value, read_sharding, with_annotations
from gspmd.inspect.check import compare_results
from gspmd.inspect.collectives import CollectiveUse, by_kind, collectives_of
from gspmd.inspect.reference import Reference
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program
from gspmd.ir.printer import value_names
from tests.inspect.programs import ALL, MESH, Function, arrays, compiled, gathered, manual, moved, summed

CASES = [(f, i) for f in ALL for i in range(len(compiled(f).collectives()))]


def reannotated(program: Program, annotations: tuple[tuple[str, str], ...]) -> Program:
    names = value_names(program)
    wanted = {find_value(names, n): read_sharding(s, find_value(names, n), n, MESH) for n, s in annotations}
    return with_annotations(program, wanted)


def alike(uses: list[CollectiveUse]) -> Counter[tuple[Any, ...]]:
    return Counter((use.kind, use.axes, use.line) for use in uses)


def test_the_programs_have_every_kind() -> None:
    kinds = {use.kind for f in ALL for use in compiled(f).collectives()}
    assert kinds >= {"all_gather", "all_reduce", "all_to_all", "collective_permute"}


@pytest.mark.parametrize(("function", "number"), CASES, ids=[f"{f.__name__}-{i}" for f, i in CASES])
def test_what_is_suggested_removes_the_collective(function: Function, number: int) -> None:
    c = compiled(function)
    found = c.explain_collective(number)
    use = c.collectives()[number]
    assert found.use == use and found.why and found.value in value_names(c.stage("propagated").program).values()
    assert use.line and use.line in found.asked
    assert found.remedies is not None
    before = collectives_of(c.stage("optimized").program)
    expected = Reference(lambda given: flatten(c.simulate(*given))[0], arrays())
    for remedy in found.remedies:
        module = gspmd.Module(reannotated(c.module.program, remedy.annotations), c.module.in_tree, c.module.out_tree)
        again = gspmd.compile(module, mesh=MESH)
        after = again.collectives()
        key = (use.kind, use.axes, use.line)
        assert alike(after)[key] < alike(before)[key]
        assert by_kind(after).get(use.kind, 0.0) < by_kind(before)[use.kind]
        assert remedy.wire_bytes == (sum(u.total_bytes for u in before), sum(u.total_bytes for u in after))
        assert remedy.peak_memory == (c.memory().peak, again.memory().peak)
        actual = again.simulate(*arrays())
        compare_results(flatten(actual)[0], expected, "the program annotated so", "the program as it was")


@pytest.mark.parametrize("function", [f for f in ALL if f is not manual], ids=lambda f: f.__name__)
def test_most_collectives_have_a_remedy(function: Function) -> None:
    c = compiled(function)
    cured = [bool(c.explain_collective(i).remedies) for i in range(len(c.collectives()))]
    assert any(cured)


def test_the_text() -> None:
    text = compiled(gathered).explain_collective(0).text()
    lines = text.splitlines()
    assert lines[0] == "#0 all_gather over data (2 devices): 1024 B a device"
    assert lines[1] == "  of %w: f32[16@data, 64@model] -> f32[16, 64@model]"
    assert lines[2].startswith("  needed by dot_general at tests/inspect/programs.py:") and lines[2].endswith(
        "makes %2"
    )
    assert lines[3] == "  because dim 0 of %w is split over data, but dim 1 of %x, which goes with it, is not split"
    assert lines[4].startswith(
        "  %w has data on dim 0 from the annotation [data, model] of %w at tests/inspect/programs"
    )
    assert lines[6] == "  it vanishes if"
    assert lines[7].startswith("    %w is annotated [_, model]: wire bytes 1024 B -> 0 B (-1024 B); peak memory ")


def test_sums_are_traced_to_the_split_dimensions() -> None:
    def long(x: Any, w: Any) -> Any:  # much to sum up, little to send
        return gnp.tanh((gspmd.shard(x, MESH, None, "model") @ gspmd.shard(w, MESH, "model", None)) * 2.0)

    c = gspmd.compile(long, TensorType("f32", (8, 4096)), TensorType("f32", (4096, 8)))
    found = c.explain_collective(0)
    assert found.asked.startswith("for the result of multiply at tests/inspect/test_explain_collective.py:")
    sentence = "each device has only its own part of the sum: dot_general combines along dim 1 of %x and dim 0 of %w"
    assert found.why == (f"{sentence}, split over model",)
    assert found.remedies and found.remedies[0].wire_bytes[1] == 0


def test_the_users_own_collective_is_told_as_such() -> None:
    c = compiled(manual)
    found = [c.explain_collective(i) for i in range(len(c.collectives()))]
    assert any("the user's own collective" in e.asked and e.remedies == () for e in found)


def test_annotations_that_clash_with_the_value_are_named() -> None:
    found = compiled(moved).explain_collective(0)
    assert "the annotation asks for [model, data], but the value comes as [data, model]" in found.why
    assert found.remedies and found.remedies[0].annotations[0][1] == "[data, model]"


def test_numbers_and_names() -> None:
    c = compiled(gathered)
    assert c.explain_collective("#0", search=False) == c.explain_collective(0, search=False)
    assert c.explain_collective("%w", search=False).number == 0
    assert c.explain_collective("w", search=False).remedies is None
    for wrong, message in ((7, "numbered from 0"), ("%x", "no collective moves"), ("nothing", "no collective moves")):
        with pytest.raises(UsageError, match=message):
            c.explain_collective(wrong)


def test_several_of_one_value_are_asked_for_by_number() -> None:
    c = compiled(moved)
    with pytest.raises(UsageError, match=r"\d collectives move %1: #0 collective_permute") as caught:
        c.explain_collective("%1")
    assert "by number" in caught.value.fix


def test_a_loaded_program_tells_what_it_knows(tmp_path: Path) -> None:
    source = compiled(summed)
    for stage, knows in (
        ("annotated", True),
        ("propagated", True),
        ("explicit", True),
        ("collectives", True),
        ("local", False),
        ("optimized", False),
        ("scheduled", False),
    ):
        path = tmp_path / f"{stage}.gspmd"
        path.write_text(source.stage(stage).text())
        c = gspmd.compile(gspmd.load(path))
        found = c.explain_collective(0)
        assert found.use.kind == source.collectives()[0].kind
        assert bool(found.why) == knows, stage
        assert (found.remedies is not None) == (stage == "annotated")
        assert "loaded per device" in found.text() or knows


def test_two_thousand_devices_cost_no_more() -> None:
    mesh = gspmd.Mesh({"x": 64, "y": 32})

    def layer(x: Any, w: Any) -> Any:
        return gnp.tanh(gspmd.shard(x, mesh, "x", "y") @ gspmd.shard(w, mesh, "y", "x"))

    c = gspmd.compile(layer, TensorType("f32", (4096, 2048)), TensorType("f32", (2048, 8192)), forbid="all_to_all")
    assert c.collectives()
    for i in range(len(c.collectives())):
        assert c.explain_collective(i).why
    assert c.memory().peak > 0 and c.cost().seconds > 0
    assert c.what_if({"w": "[_, y]"}).wire_bytes[0] == c.cost().wire_bytes
