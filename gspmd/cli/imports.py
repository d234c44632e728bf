"""The command that turns programs of other front ends into ours: import."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gspmd.cli.files import check_writable, write_text
from gspmd.cli.sources import mesh_of
from gspmd.driver.imports import load_mlir
from gspmd.driver.sources import read_bytes


def import_command(arguments: argparse.Namespace) -> int:
    """Write the program of a StableHLO file as `.gspmd` text, at stage annotated."""
    mesh_of(arguments)
    text = load_mlir(arguments.file, read_bytes(Path(arguments.file)), arguments.function).text()
    if arguments.output == "-":
        sys.stdout.write(text)
        return 0
    check_writable(arguments.output)
    write_text(arguments.output, text)
    return 0
