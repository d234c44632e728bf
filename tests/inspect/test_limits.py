"""Limits: one error that lists all that breaks them, with bytes, value, line and cause."""

from __future__ import annotations

from typing import Any

import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.inspect.collectives import KINDS
from gspmd.inspect.limits import Limits, limits_of
from gspmd.ir.errors import ExecutionError, LimitError, UsageError
from tests.inspect.programs import ALL, MESH, TYPES, Function, arrays, compiled, gathered, summed


def compile(function: Function, **limits: Any) -> gspmd.Compiled:
    return gspmd.compile(function, *TYPES, mesh=MESH, **limits)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_exactly_the_forbidden_kinds_are_told(function: Function) -> None:
    kinds = {use.kind for use in compiled(function).collectives()}
    compile(function, forbid=[kind for kind in KINDS if kind not in kinds])
    for kind in kinds:
        uses = [(i, use) for i, use in enumerate(compiled(function).collectives()) if use.kind == kind]
        with pytest.raises(LimitError) as caught:
            compile(function, forbid=[kind])
        message = str(caught.value)
        assert f"{len(uses)} forbidden collective" in message
        for i, use in uses[:8]:
            assert f"#{i} {kind} over " in message and use.line in message


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_bytes_at_the_limit_are_allowed_and_one_less_is_not(function: Function) -> None:
    wire, memory = compiled(function).cost().wire_bytes, compiled(function).memory().peak
    compile(function, max_wire_bytes=wire, max_memory=memory)
    with pytest.raises(LimitError, match="on the wire"):
        compile(function, max_wire_bytes=wire - 1)
    with pytest.raises(LimitError, match=r"of memory[\s\S]*peak memory a device"):
        compile(function, max_memory=memory - 1)


def test_one_error_tells_all_of_it() -> None:
    with pytest.raises(LimitError) as caught:
        compile(gathered, forbid="all-gather", max_wire_bytes="0.5K", max_memory="1K")
    message = str(caught.value)
    assert "the program issues 1 forbidden collective:\n  #0 all_gather over data" in message
    assert "because dim 0 of %w is split over data, but dim 1 of %x, which goes with it, is not split" in message
    assert "a device puts 1024 B on the wire, 512 B are allowed\n" in message
    assert "of memory, 1024 B are allowed:" in message
    assert message.count("#0 all_gather") == 1 and "vanishes" not in message
    assert isinstance(caught.value, ExecutionError)


def test_jitted_functions_keep_their_limits() -> None:
    strict = gspmd.jit(mesh=MESH, forbid=["all_reduce"])(summed)
    for run in (lambda: strict(*arrays()), lambda: gspmd.compile(strict, *TYPES), lambda: strict.compiled_for(*TYPES)):
        with pytest.raises(LimitError, match="forbidden"):
            run()
    with pytest.raises(LimitError, match="forbidden"):
        gspmd.jit(strict)(*arrays())
    fine = gspmd.jit(mesh=MESH, forbid=["all_to_all"], max_wire_bytes="1G", max_memory="1G")(summed)
    assert fine(*arrays()).shape == (32, 16)


def test_limits_add_up() -> None:
    a, b = limits_of(["all_gather"], 5), limits_of("all_reduce, all-gather", 7, "1K")
    assert a | b == Limits(("all_gather", "all_reduce"), 5, 1024)
    assert not Limits() and not limits_of() and a and limits_of(max_memory=0)


def test_mistakes_are_named() -> None:
    with pytest.raises(UsageError, match=r"no collective 'all_gatherr'[\s\S]*did you mean all_gather"):
        compile(gathered, forbid=["all_gatherr"])
    with pytest.raises(UsageError, match=r"no collective 'tanh'[\s\S]*one of all_gather, "):
        gspmd.jit(forbid="tanh")
    for fraction in (1.5, "1.5", "0.3K"):
        with pytest.raises(UsageError, match="max_memory is a whole number of bytes, not"):
            compile(gathered, max_memory=fraction)
    with pytest.raises(UsageError, match="max_memory is a number of bytes, not 'much'"):
        compile(gathered, max_memory="much")
    with pytest.raises(UsageError, match="until="):
        compile(gathered, until="explicit", forbid=["all_gather"])


def test_a_program_without_collectives_breaks_no_limit() -> None:
    c = gspmd.compile(gnp.tanh, TYPES[0], forbid=KINDS, max_wire_bytes=0, max_memory=2 * TYPES[0].nbytes)
    assert not c.collectives()
