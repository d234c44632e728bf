"""`gspmd bisect`: which pass, and which op, first gives other numbers."""

from __future__ import annotations

import argparse

from gspmd.cli.files import match_inputs, random_inputs, read_arrays
from gspmd.cli.sources import mesh_of, without_in
from gspmd.driver.pipeline import with_mesh
from gspmd.driver.sources import load
from gspmd.driver.steps import bisect_steps, check_optional
from gspmd.ir.errors import UsageError


def bisect_command(arguments: argparse.Namespace) -> int:
    """Print the first pass that is wrong; 1 if there is one, 0 if not."""
    if arguments.inputs is not None and arguments.random is not None:
        raise UsageError("--inputs and --random exclude each other")
    if arguments.random is not None and arguments.random < 0:
        raise UsageError(f"--random takes a seed of 0 or more, not {arguments.random}")
    without = check_optional(without_in(arguments))
    path: str | None = arguments.inputs
    given = None if path is None else read_arrays(path)
    module = load(arguments.file, given)
    if given is None or path is None:
        arrays = random_inputs(module.input_types, arguments.random or 0)
    else:
        names = [v.name for v in module.program.body.params]
        arrays = match_inputs(given, names, module.input_types, path)
    culprit = bisect_steps(with_mesh(module.program, mesh_of(arguments), None), arrays, without)
    print("no pass changes what the program computes" if culprit is None else culprit.text())
    return 0 if culprit is None else 1
