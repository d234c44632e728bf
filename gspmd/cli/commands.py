"""The commands that compile and tell: compile, opt, collectives, explain."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from gspmd.cli.files import check_writable, write_text
from gspmd.cli.sources import mesh_of
from gspmd.cli.terminal import progress
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.pipeline import run_stages, with_mesh
from gspmd.driver.sources import load
from gspmd.ir.printer import print_program


def _compiled(arguments: argparse.Namespace) -> Compiled:
    mesh = mesh_of(arguments)
    compiled = compile(load(arguments.file), mesh=mesh, progress=lambda stage: progress(f"compiled to {stage}"))
    progress("")
    return compiled


def compile_command(arguments: argparse.Namespace) -> int:
    """Write the last stage of a program, which `gspmd run` takes."""
    if arguments.output == "-":
        sys.stdout.write(print_program(_compiled(arguments).stages.last))
        return 0
    check_writable(arguments.output)
    write_text(arguments.output, print_program(_compiled(arguments).stages.last))
    return 0


def opt_command(arguments: argparse.Namespace) -> int:
    """Print a program at a stage."""
    mesh = mesh_of(arguments)
    program = with_mesh(load(arguments.file).program, mesh, None)
    sys.stdout.write(print_program(run_stages(program, arguments.until).last))
    return 0


def collectives_command(arguments: argparse.Namespace) -> int:
    """List the collectives of the optimized stage, with bytes on the wire per device."""
    uses = _compiled(arguments).collectives()
    if arguments.json:
        print(json.dumps([asdict(use) for use in uses], indent=1))
        return 0
    for use in uses:
        print(use)
    print(f"wire bytes per device: {sum(use.wire_bytes * use.count for use in uses):.0f}")
    return 0


def explain_command(arguments: argparse.Namespace) -> int:
    """Print where a value's sharding came from."""
    print(_compiled(arguments).explain(arguments.value).text())
    return 0
