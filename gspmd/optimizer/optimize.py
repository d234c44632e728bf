"""The passes over per-device programs: `optimize` (local to optimized) and `schedule` (optimized to scheduled)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from gspmd.ir.graph import Program
from gspmd.optimizer.clean import clean
from gspmd.optimizer.expand import expand
from gspmd.optimizer.mirrors import join_mirrors
from gspmd.optimizer.rings import join_rings
from gspmd.optimizer.schedule import LEAST_WORK, scheduled_region

# The passes of `optimize`, in order: fetches become exchanges, duplicates are merged, shifts joined to rings and
# mirrorings to one, and what nobody reads any more goes.
PASSES: tuple[tuple[str, Callable[[Program], Program]], ...] = (
    ("expand", expand),
    ("merge", clean),
    ("rings", join_rings),
    ("mirrors", join_mirrors),
    ("clean", clean),
)
# The passes that may be left out. `expand` may not: until then a program says only what devices are to exchange.
OPTIONAL = ("merge", "rings", "mirrors", "clean")


def optimize(program: Program, without: Collection[str] = ()) -> Program:
    """All of `PASSES` but those left out."""
    cleaned = None  # what the last cleaning gave
    for name, run in PASSES:
        if name in without or (run is clean and program is cleaned):
            continue
        program = run(program)
        cleaned = program if run is clean else cleaned
    return replace(program, stage="optimized")


def schedule(program: Program, least_work: int = LEAST_WORK, without: Collection[str] = ()) -> Program:
    """Element-wise nodes in groups, each a kernel, in an order that frees values early.

    Groups that handle fewer than `least_work` elements in all their nodes are left as they are; without the pass
    `fuse` all are.
    """
    body = program.body if "fuse" in without else scheduled_region(program.body, least_work)
    return replace(program, body=body, stage="scheduled")
