"""The command that turns our programs into those of other compilers: export."""

from __future__ import annotations

import argparse

from gspmd.cli.files import write_text
from gspmd.cli.sources import stages_of
from gspmd.interop.export_stablehlo import export_stablehlo


def export_command(arguments: argparse.Namespace) -> int:
    """Write a program at a stage as StableHLO text."""
    write_text(arguments.output, lambda: export_stablehlo(stages_of(arguments).last))
    return 0
