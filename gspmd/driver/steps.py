"""The passes one by one, under their names, and which of them may be left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from gspmd.inspect.bisect import Culprit, Step, bisect
from gspmd.inspect.provenance import Pass
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import STAGES, Program
from gspmd.ir.opdef import Array
from gspmd.optimizer import optimize as optimizer
from gspmd.partitioner.collectives import lower_reshards
from gspmd.partitioner.explicit import make_explicit
from gspmd.partitioner.localize import localize
from gspmd.propagation.apart import take_apart
from gspmd.propagation.propagate import propagate
from gspmd.propagation.reasons import Reasons

# The optimisations: without any of them a program computes the same, more slowly.
OPTIONAL = ("compose", *optimizer.OPTIONAL, "fuse")


def check_optional(without: Collection[str]) -> frozenset[str]:
    """The names of passes to leave out; raises UsageError for one that there is not, or that is needed."""
    odd = sorted(set(without) - set(OPTIONAL))
    if odd:
        raise UsageError(f"there is no pass {odd[0]!r} to leave out", fix=f"use some of {', '.join(OPTIONAL)}")
    return frozenset(without)


def passes(without: Collection[str] = ()) -> Mapping[str, Pass]:
    """What leads to each stage after `propagated`, in order, some optimisations left out."""
    left_out = check_optional(without)
    return MappingProxyType(
        {
            "explicit": partial(make_explicit, compose=False) if "compose" in left_out else make_explicit,
            "collectives": lower_reshards,
            "local": localize,
            "optimized": partial(optimizer.optimize, without=left_out),
            "scheduled": partial(optimizer.schedule, without=left_out),
        }
    )


def complete(program: Program) -> tuple[Program, Reasons]:
    """What leads to `propagated`: the ops taken apart, then every value given a sharding, with the reasons."""
    return propagate(take_apart(program))


def steps(without: Collection[str] = ()) -> tuple[Step, ...]:
    """Every pass by itself, those within a stage too."""
    return tuple(_steps(passes(without), frozenset(without)))


def _steps(whole: Mapping[str, Pass], without: Collection[str]) -> Iterator[Step]:
    yield Step("propagated", "apart", take_apart)
    yield Step("propagated", "propagate", lambda program: propagate(program)[0])
    yield Step("explicit", "partition", whole["explicit"])
    yield Step("collectives", "plan", whole["collectives"])
    yield Step("local", "localize", whole["local"])
    for name, run in optimizer.PASSES:
        if name not in without:
            yield Step("optimized", name, partial(_optimized, run))
    yield Step("scheduled", "fuse", whole["scheduled"])


def _optimized(run: Pass, program: Program) -> Program:
    return replace(run(program), stage="optimized")


def bisect_steps(program: Program, arrays: Sequence[Array], without: Collection[str] = ()) -> Culprit | None:
    """The first pass after a program's own stage that changes what it computes for the arguments; None if none does."""
    begun = STAGES.index(program.stage)
    ahead = [s for s in steps(without) if STAGES.index(s.stage) > begun]
    return bisect(program, ahead, arrays)
