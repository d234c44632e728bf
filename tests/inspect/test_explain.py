"""Explanations of values beyond the chain: groups, barriers, rounds, per-device code, names of later stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gspmd
from gspmd import TensorType
from gspmd.ir.errors import UsageError
from gspmd.ir.printer import value_names
from tests.inspect.programs import ALL, MESH, Function, compiled, gathered, looped, manual, summed

SQUARE = TensorType("f32", (16, 16))


def compile(function: Any, *types: TensorType) -> gspmd.Compiled:
    return gspmd.compile(function, *(types or (SQUARE, SQUARE)), mesh=MESH)


def made_by(c: gspmd.Compiled, op: str) -> str:
    program = c.stage("propagated").program
    return next(value_names(program)[n.results[0]] for n in program.body.walk() if n.op.name == op)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_every_value_of_every_stage_is_explained(function: Function) -> None:
    c = compiled(function)
    for name in value_names(c.stage("propagated").program).values():
        assert c.explain(name).text().startswith(f"%{name}: ")
    for stage in ("explicit", "collectives", "local", "optimized", "scheduled"):
        for name in list(value_names(c.stage(stage).program).values())[:12]:
            try:
                told = c.explain(name, stage)
            except UsageError as error:  # what the compiler added for itself
                assert "stands for no value" in error.message
                continue
            assert told.notes[-1].startswith(f"%{name} of stage {stage} is ")


def test_inputs_tell_the_line_of_their_annotation() -> None:
    (line,) = [t for t in compiled(gathered).explain("w").text().splitlines() if "annotated [data, model] at" in t][:1]
    assert "tests/inspect/programs.py:" in line


def test_values_in_a_loop_tell_its_line_and_the_way_in() -> None:
    c = compiled(looped)
    body = next(n for n in c.stage("propagated").program.body.walk() if n.regions).regions[1]
    name = value_names(c.stage("propagated").program)[body.params[-1]]
    text = c.explain(name).text()
    assert "programs.py:" in text.splitlines()[0] and " while at " in text


def test_groups_tell_their_members() -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = gspmd.shard_as(gspmd.shard(x, MESH, "data", None), y)
        return a + 1.0, b * 2.0

    def g(x: Any, y: Any) -> Any:
        a, b = gspmd.shard_like(gspmd.shard(x, MESH, "data", None), y)
        return a + 1.0, b * 2.0

    for function, words in ((f, "it has the sharding of %"), (g, "it is told how others are sharded: %")):
        c = compile(function)
        assert any(words in note for note in c.explain(made_by(c, "sharding_group")).notes)
        assert "sharding_group at " in c.explain("y").text()


def test_barriers_tell_what_they_keep_out() -> None:
    for allowed, told in (("none", "in no direction"), ("forward", "forward only"), ("backward", "backward only")):

        def f(x: Any, y: Any, allowed: Any = allowed) -> Any:
            return gspmd.propagation_barrier(gspmd.shard(x, MESH, "data", None) * 1.0, allowed) @ gspmd.shard(
                y, MESH, None, "model"
            )

        c = compile(f)
        after = c.explain(made_by(c, "propagation_barrier"))
        barred = [loss for loss in after.losses if loss.why == f"shardings pass it {told}"]
        assert bool(barred) == (allowed != "forward"), allowed
        if barred:
            assert barred[0].axes == "data" and "propagation_barrier at " in after.text()


def test_a_barrier_is_named_only_where_it_bars() -> None:
    for allowed, bars in (("forward", True), ("backward", False)):

        def f(x: Any, y: Any, allowed: Any = allowed) -> Any:
            x = gspmd.propagation_barrier(gspmd.shard(x, MESH, "data", None), allowed)
            return x @ gspmd.shard(y, MESH, "model", None)

        c = compile(f)
        assert c.shardings()[made_by(c, "propagation_barrier")].dims[1].axes  # which the annotation before it refuses
        losses = c.explain(made_by(c, "sharding_constraint")).losses
        assert [loss.why for loss in losses if "pass it" in loss.why] == ["shardings pass it forward only"] * bars


def test_rounds_tell_who_was_first() -> None:
    def f(x: Any, y: Any) -> Any:
        x, y = gspmd.shard(x, MESH, "data?#1", "?#1"), gspmd.shard(y, MESH, "model?", "?")
        return x + y

    c = compile(f)
    text = c.explain(made_by(c, "add")).text()
    assert "dim 0: model" in text
    assert "this one's annotation counts in round 0, that one's in round 1" in text
    assert (
        "is annotated [data?#1, _?#1]" in c.explain("x").text() and "which counts in round 1" in c.explain("x").text()
    )


def test_what_lost_is_all_there_and_printed_short() -> None:
    def f(x: Any, w: Any) -> Any:
        x, w = gspmd.shard(x, MESH, "data", None), gspmd.shard(w, MESH, "model", None)
        return [x @ (w * float(i)) + w for i in range(20)]

    c = compile(f)
    told = c.explain(made_by(c, "sharding_constraint"))
    assert len(told.losses) >= 20 and f"    ... and {len(told.losses) - 12} more" in told.text()


def test_closed_dimensions_and_per_device_code_are_told() -> None:
    assert "dim 1: kept whole by the annotation, which closes it" in compiled(summed).explain("x").text()
    c = compiled(manual)
    assert "along data+model each device has its own" in c.explain(made_by(c, "all_reduce")).text()


def test_names_of_later_stages() -> None:
    c = compiled(summed)
    program = c.stage("optimized").program
    name, op = next((value_names(program)[n.results[0]], n.op.name) for n in program.body.walk() if n.op.traffic)
    told = c.explain(name, "optimized")
    assert told.notes[-1] == f"%{name} of stage optimized is what {op} makes for %{told.name}"
    with pytest.raises(UsageError, match="no stage 'late'"):
        c.explain("x", "late")
    with pytest.raises(UsageError, match="no value %nothing"):
        c.explain("nothing")


def test_names_that_only_a_later_stage_has_are_found(tmp_path: Path) -> None:
    path = tmp_path / "f.gspmd"
    path.write_text(
        "mesh @mesh = [data=2, model=2]\n"
        "func @f(%x: f32[8@data, 16], %w: f32[16@data, 4]) -> (f32[8, 4]) stage=annotated {\n"
        "  %y = dot_general(%x, %w) lhs_contract=[1] rhs_contract=[0] : f32[8, 4]\n  return %y\n}\n"
    )
    c = gspmd.compile(gspmd.load(path))
    assert c.explain("%w_1").notes == (
        "dim 1: kept whole by the annotation, which closes it",
        "%w_1 of stage explicit is what reshard makes for %w",
    )
