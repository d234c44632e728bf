"""`gspmd info`: what this machine offers, found without loading the compiler."""

from __future__ import annotations

import argparse

from gspmd.runtime.environment import describe


def info_command(arguments: argparse.Namespace) -> int:
    """Print what this machine offers."""
    facts = describe()
    width = max(map(len, facts))
    for label, text in facts.items():
        print(f"{label:{width}}  {text}")
    return 0
