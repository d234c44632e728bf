"""What FILE, --mesh and the options of compilation on the command line stand for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gspmd.cli.terminal import progress
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.meshes import MESH_VARIABLE, parse_mesh_option
from gspmd.driver.module import Module
from gspmd.driver.pipeline import Stages, run_stages, with_mesh
from gspmd.driver.sources import load, read_bytes, split_function
from gspmd.ir.mesh import Mesh
from gspmd.ir.opdef import Array

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
    program = with_mesh(module_of(arguments).program, mesh_of(arguments), None)
    return run_stages(program, arguments.until, without=without_in(arguments))


def compiled_of(arguments: argparse.Namespace, module: Module) -> Compiled:
    """The program compiled as the command line says, as far as the command has such options; progress is shown."""
    limits: dict[str, Any] = {name: given for name in LIMITS if (given := getattr(arguments, name, None)) is not None}
    return compile(
        module,
        mesh=mesh_of(arguments),
        progress=lambda stage: progress(f"compiled to {stage}"),
        without=without_in(arguments),
        **limits,
    )


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
