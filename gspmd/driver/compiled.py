"""`compile` and what it returns: a program at every stage, ready to be called, looked into and checked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gspmd.array import Array
from gspmd.driver.functions import configuration, declared_types
from gspmd.driver.inquiry import Inquiry
from gspmd.driver.module import Module, trace
from gspmd.driver.pipeline import Stages, run_stages, with_mesh
from gspmd.driver.reshard import shards_of
from gspmd.driver.shardings import with_shardings
from gspmd.driver.steps import bisect_steps
from gspmd.driver.watch import CallChecker
from gspmd.inspect.bisect import Culprit
from gspmd.inspect.check import CheckReport, check_stages
from gspmd.inspect.collectives import CollectiveUse
from gspmd.inspect.cost import Cost, MachineModel
from gspmd.inspect.explain import Explanation
from gspmd.inspect.explain_collective import CollectiveExplanation
from gspmd.inspect.limits import Limits, limits_of
from gspmd.inspect.memory import MemoryUse
from gspmd.inspect.what_if import WhatIf
from gspmd.ir.errors import ExecutionError, UsageError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.printer import print_program, value_names
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.runtime.environment import world
from gspmd.runtime.executor import Executor, detached
from gspmd.runtime.transport import Channel
from gspmd.runtime.world import channel_for, executor_for, lockstep

_LOCATION = re.compile(r"  // .*$", re.MULTILINE)


class Compiled:
    """A compiled program. Call it: alone it runs all devices in lockstep, in an MPI job of as many ranks on the ranks.

    Arguments and results nest as the function's own; leaves are NumPy arrays (the same on every rank), Python numbers
    or `gspmd.Array`. Results are `gspmd.Array` and go into the next call as they are, or are resharded if that call
    holds its argument otherwise. NumPy data that is 64 bits wide may stand for 32 bits unless `enable_x64` is on.
    """

    def __init__(
        self,
        module: Module,
        stages: Stages,
        donate: Sequence[int] | None = None,
        without: Collection[str] = (),
    ) -> None:
        self.module = module
        self.without = frozenset(without)
        self.stages = stages
        self._donated = module.leaves_of(module.donate if donate is None else donate)
        self._inquiry = Inquiry(stages, self._donated, self.without)
        self._executors: dict[Channel, Executor] = {}
        self._checker = CallChecker.from_environment(module)
        if world().size == self.mesh.size > 1:
            self._same_everywhere()

    def __repr__(self) -> str:
        return f"Compiled({self.module.program.name} on {self.mesh.text()})"

    @property
    def mesh(self) -> Mesh:
        """The mesh that the program runs on."""
        mesh = self.stages.last.mesh
        assert mesh is not None
        return mesh

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """The global input types with the shardings under which arguments are held."""
        return self.stages.last.inputs

    @property
    def argument_types(self) -> tuple[Any, ...]:
        """The input types, nested as the arguments of a call: what `from_callback` and `from_shards` make them with."""
        return self.module.nest(list(self.input_types))

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The global output types with their shardings."""
        return self.stages.last.outputs

    def __call__(self, *arguments: Any) -> Any:
        """Run on the devices of the mesh; raises ExecutionError in a job of another number of ranks."""
        checked = None if self._checker is None else self._checker.before_call(arguments)
        results = self._run(arguments, channel_for(self.mesh))
        if self._checker is not None and checked is not None:
            self._checker.after_call(checked, results)
        return results

    def simulate(self, *arguments: Any) -> Any:
        """Run all devices in lockstep in this process; returns whole NumPy arrays."""
        return self.module.unflatten(self._executor(lockstep(self.mesh)).run_whole(self.module.whole(arguments)))

    def stage(self, name: str) -> Module:
        """The program at a stage, which prints and runs; raises UsageError for a stage that is not there."""
        program = self.stages.programs.get(name)
        if program is None:
            raise UsageError(f"there is no stage {name!r}", fix=f"use one of {', '.join(self.stages.programs)}")
        return Module(program, self.module.in_tree, self.module.out_tree)

    def shardings(self) -> dict[str, Sharding]:
        """The sharding of every value of the `propagated` stage, by its printed name."""
        names = value_names(self._inquiry.program("propagated"))
        return {name: value.type.sharding for value, name in names.items() if value.type.sharding is not None}

    def collectives(self) -> list[CollectiveUse]:
        """Every collective of the `optimized` stage (of the last, if it was loaded compiled), with bytes and count."""
        return list(self._inquiry.collectives)

    def explain(self, value: str, stage: str | None = None) -> Explanation:
        """Why a value is sharded as it is: the annotation, the path of ops, what else was wanted.

        The name is that of the `propagated` stage, or of a later one, which `stage` may tell.
        """
        return self._inquiry.explain(value, stage)

    def explain_collective(self, which: int | str, search: bool = True) -> CollectiveExplanation:
        """Why a collective is there, what it costs, and annotations under which it is gone, each tried by compiling.

        `which` is its number in `collectives()`, or the name of the value that it moves. `search=False` tries nothing.
        """
        return self._inquiry.explain_collective(which, search)

    def what_if(self, annotations: Mapping[str, Sharding | str]) -> WhatIf:
        """What changes if values are annotated otherwise, as in `{"w": "[model, _]"}`: bytes, memory, shardings.

        The names are those of the `annotated` stage; a value's own annotation is replaced.
        """
        return self._inquiry.what_if(annotations)

    def memory(self) -> MemoryUse:
        """The most memory that a device needs in one call, where in the program, and for what."""
        return self._inquiry.memory()

    def cost(self, machine: MachineModel | None = None) -> Cost:
        """What one call costs a device: bytes on the wire, operations, bytes through memory, and a rough time."""
        return self._inquiry.cost(machine)

    def check_limits(self, limits: Limits) -> None:
        """Raise LimitError, which tells all offending collectives and why they are there, unless limits hold."""
        self._inquiry.check(limits)

    def check(self, *arguments: Any) -> CheckReport:
        """Run every stage on the arguments and compare with the first; raises ExecutionError where they differ."""
        arrays = self.module.whole(arguments)
        executors = {name: executor_for(p) for name, p in self.stages.programs.items()}
        return check_stages(executors, arrays)

    def bisect(self, *arguments: Any) -> Culprit | None:
        """The first pass, and the first op, after which the arguments give other results; None if none does."""
        return bisect_steps(self.stages.first, self.module.whole(arguments), self.without)

    def _executor(self, channel: Channel) -> Executor:
        found = self._executors.get(channel)
        if found is None:
            found = self._executors[channel] = Executor(self.stages.last, channel)
        return found

    def _run(self, arguments: tuple[Any, ...], channel: Channel) -> Any:
        if not self.stages.last.is_local:
            raise UsageError(
                f"the program is compiled up to stage {self.stages.last.stage}, which devices cannot run",
                fix="leave until= out, or call simulate, which runs it on one device",
            )
        held = self.module.accept(arguments)
        borrowed = [x for x in held if not isinstance(x, Array)]
        shards = [shards_of(x, t, channel) for x, t in zip(held, self.input_types, strict=True)]
        for i in self._donated:
            x = held[i]
            if isinstance(x, Array):
                x.donate()
        del held
        results = self._executor(channel).run_shards(shards)
        flat = iter(detached([x for xs in results for x in xs], borrowed))
        count = len(channel.indices)
        arrays = [Array(t, [next(flat) for _ in range(count)], channel) for t in self.output_types]
        return self.module.unflatten(arrays)

    def _same_everywhere(self) -> None:
        """All ranks must have compiled one program: compared by a hash of all but source lines, one message if not."""
        text = _LOCATION.sub("", print_program(self.stages.last))
        try:
            channel_for(self.mesh).same(hashlib.sha256(text.encode()).digest(), f"program {self.module.program.name}")
        except ExecutionError as error:
            raise error.at(user_location()) from None


def compile(
    program: Module | Callable[..., Any],
    *types: Any,
    mesh: Mesh | None = None,
    devices: int | None = None,
    donate: Sequence[int] | None = None,
    until: str = "scheduled",
    verify: bool = True,
    progress: Callable[[str], None] | None = None,
    without: Collection[str] = (),
    shardings: Mapping[str, Sharding | str] | None = None,
    forbid: Sequence[str] | str = (),
    max_wire_bytes: float | str | None = None,
    max_memory: float | str | None = None,
) -> Compiled:
    """Compile a module, or a function with the types of its arguments, for a mesh.

    `mesh` and `devices` are read off the annotations when left out. `donate` gives the positions of arguments that a
    call may use up: a `gspmd.Array` in them is empty after the call, and its memory is freed at its last use. A jitted
    function has its own mesh and donated arguments. `until` stops at an earlier stage; `verify=False` leaves out the
    checks after each stage. `without` names optimisations to leave out (compose, merge, rings, mirrors, clean, fuse):
    the program computes the same without them. `shardings` annotate values by their names in `module.text()`, as
    `{"w": "[model, _]"}`, as if the program did.

    `forbid` lists kinds of collectives that the program must not issue, `max_wire_bytes` and `max_memory` are what a
    device may send in one call and hold at once, as 4096 or "64M" (powers of 1024). Raises one LimitError that tells
    all that breaks them, and UsageError for arguments that it cannot take.
    """
    limits = limits_of(forbid, max_wire_bytes, max_memory)
    own = configuration(program)
    module = _module_of(program, types)
    annotated = with_shardings(with_mesh(module.program, mesh, devices), shardings)
    stages = run_stages(annotated, until, verified=verify, progress=progress, without=without)
    compiled = Compiled(module, stages, donate, without)
    compiled.check_limits(limits if own is None else limits | own.limits)
    return compiled


def _module_of(program: Module | Callable[..., Any], types: Sequence[Any]) -> Module:
    """A module as it is, a function traced; raises UsageError for anything else."""
    if isinstance(program, Module):
        if types:
            raise UsageError(f"a module has its types already, {len(types)} more are given", fix="leave them out")
        return program
    if not callable(program):
        raise UsageError(
            f"compile takes a module or a function, not {type(program).__name__}",
            loc=user_location(),
            fix="read a file with gspmd.load, text with gspmd.from_stablehlo",
        )
    return trace(program, *_types_of(program, types))


def _types_of(function: Callable[..., Any], types: Sequence[Any]) -> Sequence[Any]:
    declared = types or declared_types(function)
    if declared is None:
        raise UsageError(
            f"the types of the arguments of {getattr(function, '__name__', 'the function')} are not known",
            fix="pass them after the function, or decorate it with @gspmd.program(TensorType(...), ...)",
        )
    return declared
