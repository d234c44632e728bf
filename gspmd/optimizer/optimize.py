"""The passes over per-device programs: `optimize` (local to optimized) and `schedule` (optimized to scheduled)."""

from __future__ import annotations

from dataclasses import replace

from gspmd.ir.graph import Program
from gspmd.optimizer.clean import clean
from gspmd.optimizer.expand import expand
from gspmd.optimizer.rings import join_rings
from gspmd.optimizer.schedule import LEAST_WORK, scheduled_region


def optimize(program: Program) -> Program:
    """Fetches expanded, duplicates merged, dead nodes removed, shifts joined to rings."""
    cleaned = clean(expand(program))
    joined = join_rings(cleaned)
    return replace(cleaned if joined is cleaned else clean(joined), stage="optimized")


def schedule(program: Program, least_work: int = LEAST_WORK) -> Program:
    """Element-wise nodes in groups, each a kernel, in an order that frees values early.

    Groups that handle fewer than `least_work` elements in all their nodes are left as they are.
    """
    return replace(program, body=scheduled_region(program.body, least_work), stage="scheduled")
