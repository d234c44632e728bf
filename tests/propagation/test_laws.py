"""Laws of propagation on random programs: order, idempotence, refinement, annotations, fit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gspmd.ir.axes import overlaps
from gspmd.ir.graph import Program, Value
from gspmd.ir.sharding import Sharding
from gspmd.propagation import propagate
from tests.propagation.toy import random_program, shuffled
from tests.propagation.values import all_values, with_annotations

SEEDS = range(80)


def by_original(program: Program) -> dict[Value, str]:
    """The sharding that each value of an annotated program gets."""
    result, _ = propagate(program)
    return {v: w.type.sharding.text() for v, w in zip(all_values(program.body), all_values(result.body), strict=True)}  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", SEEDS)
def test_result_does_not_depend_on_the_order_of_ops(seed: int) -> None:
    program = random_program(seed)
    expected = by_original(program)
    for other in range(3):
        assert by_original(shuffled(program, random.Random(other))) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_annotations_are_kept_and_only_refined_where_open(seed: int) -> None:
    program = random_program(seed)
    result, _ = propagate(program)
    for before, after in zip(all_values(program.body), all_values(result.body), strict=True):
        written, got = before.type.sharding, after.type.sharding
        assert got is not None and not got.is_open
        assert before.type.shape == after.type.shape and before.type.dtype == after.type.dtype
        if written is None:
            continue
        assert got.refines(replace(written, replicated=()), before.type.shape)
        assert not overlaps(got.used, written.replicated) and got.unreduced == written.unreduced
        for d, e in zip(written.dims, got.dims, strict=True):
            assert d.open or d.axes == e.axes


@pytest.mark.parametrize("seed", SEEDS)
def test_no_dimension_is_split_into_more_parts_than_it_has_elements(seed: int) -> None:
    program = random_program(seed)
    result, _ = propagate(program)
    for before, after in zip(all_values(program.body), all_values(result.body), strict=True):
        for d, n in zip(after.type.sharding.dims, after.type.shape, strict=True):  # type: ignore[union-attr]
            assert d.parts <= max(n, 1) or before.type.sharding is not None


@pytest.mark.parametrize("seed", SEEDS)
def test_propagating_the_result_again_changes_nothing(seed: int) -> None:
    """Even when all that was open before is left open again."""
    program = random_program(seed)
    result, _ = propagate(program)
    again: dict[Value, Sharding] = {}
    for before, after in zip(all_values(program.body), all_values(result.body), strict=True):
        written, got = before.type.sharding, after.type.sharding
        assert got is not None
        if written is None:
            again[before] = got.opened()
        else:
            dims = tuple(replace(e, open=d.open) for d, e in zip(written.dims, got.dims, strict=True))
            again[before] = replace(got.with_dims(dims), replicated=written.replicated)
    second = with_annotations(program, again.get)
    assert [v.type.sharding for v in all_values(propagate(second)[0].body)] == [
        v.type.sharding for v in all_values(result.body)
    ]


def test_random_programs_do_propagate_and_do_conflict() -> None:
    """The laws above are not vacuous."""
    split = values = lost = 0
    for seed in SEEDS:
        result, reasons = propagate(random_program(seed))
        values += len(all_values(result.body))
        split += sum(bool(v.type.sharding.used) for v in all_values(result.body))  # type: ignore[union-attr]
        lost += len(reasons.lost)
    assert split > values / 3
    assert lost >= 10
