"""The `optimized` and `scheduled` stages: what the local program becomes before it runs."""

from __future__ import annotations

from dataclasses import replace

from gspmd.ir.graph import Program
from gspmd.optimizer.clean import clean
from gspmd.optimizer.expand import expand_fetches


def optimize(program: Program) -> Program:
    """Expand fetches, merge duplicates, drop dead nodes; local -> optimized."""
    return replace(clean(expand_fetches(clean(program))), stage="optimized")


def schedule(program: Program) -> Program:
    """Put the nodes into the order and groups in which the runtime runs them; optimized -> scheduled."""
    return replace(program, stage="scheduled")
