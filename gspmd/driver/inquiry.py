"""What users ask of a compiled program: why, how much, and what if. The answers are those of `gspmd.inspect`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property, partial

from gspmd.driver.pipeline import Stages, run_stages
from gspmd.driver.steps import complete, passes
from gspmd.inspect.annotating import with_annotations
from gspmd.inspect.cause import Traced, trace_collectives
from gspmd.inspect.collectives import CollectiveUse, collectives_of
from gspmd.inspect.cost import Cost, MachineModel, cost_of
from gspmd.inspect.explain import Explanation
from gspmd.inspect.explain_collective import CollectiveExplanation, explain_collective, number_of
from gspmd.inspect.later import explain_anywhere
from gspmd.inspect.limits import Limits, check_limits
from gspmd.inspect.memory import MemoryUse, memory_of
from gspmd.inspect.remedies import Workshop, remedies
from gspmd.inspect.what_if import WhatIf, compare_programs, wanted_annotations
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program
from gspmd.ir.printer import value_names
from gspmd.ir.sharding import Sharding


class Inquiry:
    """Questions about one program at all its stages.

    `donated` numbers the inputs that a call may use up, `without` names the optimisations that were left out.
    """

    def __init__(self, stages: Stages, donated: tuple[int, ...], without: Collection[str]) -> None:
        self.stages = stages
        self.donated = donated
        self.without = without
        self._passes = passes(without)

    def program(self, stage: str) -> Program:
        """The program at a stage; raises UsageError if it was loaded at a later one, or not compiled so far."""
        programs = self.stages.programs
        if stage not in programs:
            raise UsageError(
                f"the program has no {stage} stage, only {', '.join(programs)}",
                fix="compile it from its source, and leave until= out",
            )
        return programs[stage]

    @cached_property
    def collectives(self) -> list[CollectiveUse]:
        """Those of the `optimized` stage; of the last, if the program was loaded there."""
        loaded = self.stages.first.is_local and "optimized" not in self.stages.programs
        return collectives_of(self.stages.last if loaded else self.program("optimized"))

    @cached_property
    def traced(self) -> Traced | None:
        """The collectives traced back to what asked for them."""
        return trace_collectives(self.stages.programs, self._passes)

    def explain(self, value: str, stage: str | None) -> Explanation:
        """Why a value is sharded as it is."""
        if self.stages.reasons is None:
            raise UsageError(
                f"the program was loaded at stage {self.stages.first.stage}: why it is sharded so is not known",
                fix="ask about the program that it was compiled from",
            )
        return explain_anywhere(self.stages.programs, self._passes, self.stages.reasons, value, stage)

    def explain_collective(self, which: int | str, search: bool) -> CollectiveExplanation:
        """Why a collective is there; with `search` what would make it vanish."""
        uses, traced, reasons = self.collectives, self.traced, self.stages.reasons
        number = number_of(uses, traced, which)
        found = explain_collective(uses, traced, reasons, number)
        programs = self.stages.programs
        if not search or traced is None or reasons is None or "scheduled" not in programs:
            return found
        shop = Workshop(programs, reasons, self._compile, lambda p: complete(p)[0], self.donated)
        return replace(found, remedies=remedies(shop, traced, number))

    def what_if(self, given: Mapping[str, Sharding | str]) -> WhatIf:
        """What changes if values are annotated otherwise."""
        program, mesh = self.program("annotated"), self.stages.last.mesh
        self.program("scheduled")
        assert mesh is not None
        wanted = wanted_annotations(program, mesh, given)
        names = value_names(program)
        after = self._compile(with_annotations(replace(program, mesh=mesh), wanted))
        said = {names[value]: sharding.text() for value, sharding in wanted.items()}
        return compare_programs(said, self.stages.programs, after, self.donated)

    def memory(self) -> MemoryUse:
        """The peak memory of a device."""
        return memory_of(self.program("scheduled"), self.donated)

    def cost(self, model: MachineModel | None) -> Cost:
        """What a call costs a device."""
        return cost_of(self.program("scheduled"), model)

    def check(self, limits: Limits) -> None:
        """Raise LimitError if the program breaks limits."""
        if limits:
            check_limits(limits, self.collectives, self.memory, partial(self.explain_collective, search=False))

    def _compile(self, program: Program) -> Mapping[str, Program]:
        """A program at all stages, made as this one was."""
        return run_stages(program, verified=False, without=self.without).programs
