"""The command line: `gspmd run`, `compile`, `opt`, `collectives`, `explain`, `info`."""

from gspmd.cli.main import main

__all__ = ["main"]
