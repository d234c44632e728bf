"""Real programs from JAX, each laid out in several ways: JAX's own values, under a cap on what a device sends."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import pytest

import gspmd
from gspmd.kernels.closeness import compare
from tests.interop.programs import CASES, PROGRAMS
from tests.interop.programs.case import Layout, Program, gathered_bytes, wire_bytes
from tests.interop.programs.xla import recorded

# Bytes that are no difference: a scalar more or less.
SLACK = 64.0


@lru_cache(maxsize=1)  # the tests of a case follow one another
def compiled(name: str) -> gspmd.Compiled:
    program, layout = CASES[name]
    return gspmd.compile(program.module(layout))


def check(results: Any, program: Program) -> None:
    """Results are JAX's."""
    assert jax.tree.structure(results) == jax.tree.structure(program.expected)
    found = jax.tree_util.tree_leaves_with_path(results)
    for (path, mine), theirs in zip(found, jax.tree.leaves(program.expected), strict=True):
        outcome = compare(np.asarray(mine), np.asarray(theirs), terms=program.terms)
        assert outcome.ok, f"{program.name}{jax.tree_util.keystr(path)}: {outcome.message}"


@pytest.mark.parametrize("name", CASES)
class TestCase:
    def test_it_computes_what_jax_computes(self, name: str) -> None:
        program, layout = CASES[name]
        c = compiled(name)
        assert c.mesh.size == layout.devices
        check(c.simulate(*program.arguments), program)

    def test_it_sends_little(self, name: str) -> None:
        """No more than its cap, which gathering what is split would break, and no more than XLA."""
        _, layout = CASES[name]
        c = compiled(name)
        sent = wire_bytes(c)
        uses = "\n".join(map(str, c.collectives()))
        assert sent <= layout.cap, f"{sent:,.0f} B of {layout.cap:,.0f} B\n{uses}"
        assert layout.cap <= gathered_bytes(c.stages.programs["propagated"]) / 4
        assert sent <= recorded()[name] + SLACK, f"{sent:,.0f} B, XLA {recorded()[name]:,.0f} B\n{uses}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_all_stages_agree(program: Program) -> None:
    name = f"{program.name}/{program.layouts[-1].name}"
    compiled(name).check(*program.arguments)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_nothing_needs_to_divide(program: Program) -> None:
    """Three devices along the first axis, where most dimensions are ragged; JAX takes no such arguments as they are."""
    layout = program.layouts[-1]
    first, *rest = layout.mesh
    ragged = replace(layout, mesh={first: 3, **dict.fromkeys(rest, 2)})
    check(gspmd.compile(unannotated(program, ragged)).simulate(*program.arguments), program)


def unannotated(program: Program, layout: Layout) -> gspmd.Module:
    """The program with constraints on its arguments in place of their shardings."""
    inner = program.function(layout)

    def constrained(*arguments: Any) -> Any:
        return inner(*layout.everywhere(layout.constrain, arguments))

    return gspmd.from_jax(constrained, *program.arguments)
