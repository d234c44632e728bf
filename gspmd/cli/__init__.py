"""The command line, `gspmd`: a module for each family of commands, loaded when one of them is called."""

from gspmd.cli.main import main

__all__ = ["main"]
