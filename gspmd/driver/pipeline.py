"""The named stages, in order, each verified: from a program as the user wrote it to one that a device runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from time import perf_counter

from gspmd.driver.meshes import check_mesh
from gspmd.driver.steps import complete, passes
from gspmd.ir.collector import collector_paused
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import STAGES, Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.verify import verify
from gspmd.ops import OPS
from gspmd.propagation.reasons import Reasons


@dataclass(frozen=True, slots=True, repr=False)
class Stages:
    """A program at every stage up to the one asked for, why its values are sharded so, and the seconds each took."""

    programs: dict[str, Program]
    reasons: Reasons | None
    seconds: dict[str, float]

    def __repr__(self) -> str:
        return f"Stages({self.first.name}: {', '.join(self.programs)})"

    @property
    def first(self) -> Program:
        """The program as it was written, or loaded."""
        return next(iter(self.programs.values()))

    @property
    def last(self) -> Program:
        """The program at the latest stage."""
        return self.programs[next(reversed(self.programs))]


def run_stages(
    program: Program,
    until: str = STAGES[-1],
    *,
    verified: bool = True,
    progress: Callable[[str], None] | None = None,
    without: Collection[str] = (),
) -> Stages:
    """Take a program through the stages after its own, up to and including `until`, verifying each.

    `without` names optimisations to leave out. Raises UsageError for an unknown stage or one that lies before the
    program's own, and for an unknown optimisation.
    """
    if until not in STAGES:
        raise UsageError(f"there is no stage {until!r}", fix=f"use one of {', '.join(STAGES)}")
    if STAGES.index(until) < STAGES.index(program.stage):
        raise UsageError(f"the program is at stage {program.stage} already, which is after {until}")
    with collector_paused():
        return _run_stages(program, until, verified, progress, without)


def _run_stages(
    program: Program,
    until: str,
    verified: bool,
    progress: Callable[[str], None] | None,
    without: Collection[str],
) -> Stages:
    stages = Stages({program.stage: program}, None, {})
    _verify(stages, program, verified)
    wanted = STAGES[STAGES.index(program.stage) + 1 : STAGES.index(until) + 1]
    if "propagated" in wanted:
        start = perf_counter()
        program, reasons = complete(program)
        stages = replace(stages, reasons=reasons)
        _finish(stages, program, start, verified, progress)
    for stage, run in passes(without).items():
        if stage in wanted:
            start = perf_counter()
            program = run(program)
            _finish(stages, program, start, verified, progress)
    return stages


def _finish(
    stages: Stages, program: Program, start: float, verified: bool, progress: Callable[[str], None] | None
) -> None:
    stages.seconds[program.stage] = perf_counter() - start
    stages.programs[program.stage] = program
    _verify(stages, program, verified)
    if progress is not None:
        progress(program.stage)


def _verify(stages: Stages, program: Program, verified: bool) -> None:
    if verified:
        start = perf_counter()
        verify(program, OPS)
        stages.seconds["verify"] = stages.seconds.get("verify", 0.0) + perf_counter() - start


def with_mesh(program: Program, mesh: Mesh | None, devices: int | None) -> Program:
    """The program on the mesh that was asked for, if its annotations agree; on one device if nothing says otherwise.

    Axes of size 1 split nothing: of two meshes that differ in them only, that of the annotations is taken.

    Raises UsageError if mesh, number of devices and annotations contradict one another.
    """
    check_mesh(mesh)
    if mesh is not None and program.mesh is not None and not _alike(mesh, program.mesh):
        raise UsageError(
            f"the program is annotated for the mesh {program.mesh.text()}, but compile was given {mesh.text()}",
            fix="leave mesh= out, or annotate with that mesh",
        )
    found = program.mesh or mesh
    if found is None:
        found = Mesh({"devices": devices}) if devices is not None else Mesh({})
    if devices is not None and devices != found.size:
        raise UsageError(f"devices={devices}, but the mesh {found.text()} has {found.size}")
    return program if program.mesh == found else replace(program, mesh=found)


def _alike(one: Mesh, other: Mesh) -> bool:
    """Whether two meshes are the same but for axes of size 1."""
    return one.whole == other.whole and one.device_order == other.device_order
