"""What FILE, --mesh and the options of compilation on the command line stand for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gspmd.cli.terminal import progress
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.meshes import MESH_VARIABLE, parse_mesh_option
from gspmd.driver.module import Module
from gspmd.driver.pipeline import Stages, run_stages, with_mesh
from gspmd.driver.shardings import with_shardings
from gspmd.driver.sources import load, read_bytes, split_function
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import STAGES, Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array
from gspmd.runtime.environment import world

LIMITS = ("forbid", "max_wire_bytes", "max_memory")


def mesh_of(arguments: argparse.Namespace) -> Mesh | None:
    """The mesh of the command line, if any; `gspmd.default_mesh` in the user's file gives it too."""
    if arguments.mesh is None:
        return None
    mesh = parse_mesh_option(arguments.mesh)
    os.environ[MESH_VARIABLE] = arguments.mesh
    return mesh


def module_of(arguments: argparse.Namespace, inputs: Mapping[str, Array] | None = None) -> Module:
    """The program that FILE stands for, its types by the inputs if it declares none; it sees the mesh of --mesh."""
    mesh_of(arguments)
    return load(arguments.file, inputs)


def stages_of(arguments: argparse.Namespace) -> Stages:
    """The program that FILE stands for, on the mesh of --mesh, at the stages up to --until."""
    program = program_of(arguments, module_of(arguments))
    return run_stages(program, arguments.until, without=without_in(arguments))


def program_of(arguments: argparse.Namespace, module: Module) -> Program:
    """The program on the mesh of --mesh, annotated as --shard says."""
    return with_shardings(with_mesh(module.program, mesh_of(arguments), None), shardings_in(arguments))


def shardings_in(arguments: argparse.Namespace) -> dict[str, str]:
    """The shardings of --shard by the names of values."""
    return annotations_of("--shard", arguments.shard or [])


def annotations_of(option: str, given: Sequence[str]) -> dict[str, str]:
    """What a repeated option annotates, each as `%w=[model,_]`; raises UsageError for anything else."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, sharding = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"{option} {text} annotates nothing", fix=f"write {option} '%w=[model,_]'")
        if name in found:
            raise UsageError(f"{option} annotates {name} twice", fix="annotate it once")
        found[name] = sharding.strip()
    return found


def compiled_of(arguments: argparse.Namespace, module: Module) -> Compiled:
    """The program compiled as the command line says, as far as the command has such options; progress is shown."""
    limits: dict[str, Any] = {name: given for name in LIMITS if (given := getattr(arguments, name, None)) is not None}
    return compile(
        module,
        mesh=mesh_of(arguments),
        devices=_devices(arguments, module),
        shardings=shardings_in(arguments),
        progress=lambda stage: progress(f"compiled to {stage}"),
        without=without_in(arguments),
        **limits,
    )


def _devices(arguments: argparse.Namespace, module: Module) -> int | None:
    """A device for each rank of this job, for a program that nothing gives a mesh; None leaves it to the program."""
    ranks, program = world().size, module.program
    meshed = arguments.mesh is not None or program.mesh is not None or program.stage != STAGES[0]
    return None if meshed or ranks == 1 else ranks


def is_script(file: str) -> bool:
    """Whether FILE is a Python script rather than a program or a function."""
    return file.endswith(".py")


def check_readable(file: str) -> None:
    """Raise UsageError if FILE cannot be read."""
    read_bytes(Path(split_function(file)[0]))


def without_in(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The optimisations that --without leaves out; none where the command has no such option."""
    given: str | None = getattr(arguments, "without", None)
    return tuple(name.strip() for name in (given or "").split(",") if name.strip())
