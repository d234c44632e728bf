"""`gspmd bisect`: which pass, and which op, first gives other numbers."""

from __future__ import annotations

import argparse

from gspmd.cli.inputs import check_inputs, module_and_arrays
from gspmd.cli.sources import program_of, without_in
from gspmd.driver.steps import bisect_steps, check_optional


def bisect_command(arguments: argparse.Namespace) -> int:
    """Print the first pass that is wrong; 1 if there is one, 0 if not."""
    check_inputs(arguments)
    without = check_optional(without_in(arguments))
    module, arrays = module_and_arrays(arguments, arguments.random or 0)
    culprit = bisect_steps(program_of(arguments, module), arrays, without)
    print("no pass changes what the program computes" if culprit is None else culprit.text())
    return 0 if culprit is None else 1
