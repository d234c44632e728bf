"""The command that turns our programs into those of other compilers: export."""

from __future__ import annotations

import argparse

from gspmd.cli.files import write_text
from gspmd.cli.sources import mesh_of
from gspmd.driver.pipeline import run_stages, with_mesh
from gspmd.driver.sources import load
from gspmd.interop.export_stablehlo import export_stablehlo


def export_command(arguments: argparse.Namespace) -> int:
    """Write a program at a stage as StableHLO text."""
    write_text(arguments.output, lambda: _exported(arguments))
    return 0


def _exported(arguments: argparse.Namespace) -> str:
    mesh = mesh_of(arguments)
    program = with_mesh(load(arguments.file).program, mesh, None)
    return export_stablehlo(run_stages(program, arguments.until).last)
