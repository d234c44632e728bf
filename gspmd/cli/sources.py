"""What FILE and --mesh on the command line stand for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from gspmd.driver.meshes import MESH_VARIABLE, parse_mesh_option
from gspmd.driver.sources import read_bytes, split_function
from gspmd.ir.mesh import Mesh


def mesh_of(arguments: argparse.Namespace) -> Mesh | None:
    """The mesh of the command line, if any; `gspmd.default_mesh` in the user's file gives it too."""
    if arguments.mesh is None:
        return None
    mesh = parse_mesh_option(arguments.mesh)
    os.environ[MESH_VARIABLE] = arguments.mesh
    return mesh


LIMITS = ("forbid", "max_wire_bytes", "max_memory")


def limits_in(arguments: argparse.Namespace) -> dict[str, Any]:
    """The limits of the command line, as `gspmd.compile` takes them; none where the command has no such options."""
    given = {name: getattr(arguments, name, None) for name in LIMITS}
    return {name: value for name, value in given.items() if value is not None}


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
