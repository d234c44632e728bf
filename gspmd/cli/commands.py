"""The commands that compile and tell: compile, opt, collectives, explain, info."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from gspmd.cli.files import write_text
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.meshes import parse_mesh_option
from gspmd.driver.pipeline import run_stages, with_mesh
from gspmd.driver.sources import load
from gspmd.ir.mesh import Mesh
from gspmd.ir.printer import print_program
from gspmd.runtime.environment import describe


def mesh_of(arguments: argparse.Namespace) -> Mesh | None:
    """The mesh of the command line, if any."""
    return None if arguments.mesh is None else parse_mesh_option(arguments.mesh)


def _compiled(arguments: argparse.Namespace) -> Compiled:
    return compile(load(arguments.file), mesh=mesh_of(arguments))


def compile_command(arguments: argparse.Namespace) -> int:
    """Write the last stage of a program, which `gspmd run` takes."""
    write_text(arguments.output, print_program(_compiled(arguments).stages.last))
    return 0


def opt_command(arguments: argparse.Namespace) -> int:
    """Print a program at a stage."""
    program = with_mesh(load(arguments.file).program, mesh_of(arguments), None)
    print(print_program(run_stages(program, arguments.until).last), end="")
    return 0


def collectives_command(arguments: argparse.Namespace) -> int:
    """List the collectives of the optimized stage, with bytes on the wire per device."""
    uses = _compiled(arguments).collectives()
    if arguments.json:
        print(json.dumps([asdict(use) for use in uses], indent=1))
        return 0
    for use in uses:
        times = f" x{use.count}" if use.count != 1 else ""
        print(f"{use.kind:20} over {'+'.join(use.axes):16} {use.wire_bytes:14.0f} B{times}  %{use.value}  {use.line}")
    print(f"wire bytes per device: {sum(use.wire_bytes * use.count for use in uses):.0f}")
    return 0


def explain_command(arguments: argparse.Namespace) -> int:
    """Print where a value's sharding came from."""
    print(_compiled(arguments).explain(arguments.value).text())
    return 0


def info_command(arguments: argparse.Namespace) -> int:
    """Print what this machine offers."""
    facts = describe()
    width = max(map(len, facts))
    for label, text in facts.items():
        print(f"{label:{width}}  {text}")
    return 0
