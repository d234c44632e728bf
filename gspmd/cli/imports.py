"""The command that turns programs of other front ends into ours: import."""

from __future__ import annotations

import argparse
from pathlib import Path

from gspmd.cli.files import write_text
from gspmd.cli.sources import mesh_of, program_of
from gspmd.driver.imports import load_mlir
from gspmd.driver.sources import read_bytes
from gspmd.ir.printer import print_program


def import_command(arguments: argparse.Namespace) -> int:
    """Write the program of a StableHLO file as `.gspmd` text, at stage annotated."""
    write_text(arguments.output, lambda: _imported(arguments))
    return 0


def _imported(arguments: argparse.Namespace) -> str:
    mesh_of(arguments)  # the import reads it from the environment
    module = load_mlir(arguments.file, read_bytes(Path(arguments.file)), arguments.function)
    return print_program(program_of(arguments, module)) if arguments.shard else module.text()
