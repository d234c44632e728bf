"""The way in for programs of other front ends: StableHLO (with CHLO and Shardy) as MLIR text or bytecode."""

from __future__ import annotations

from gspmd.interop.import_mlir import read_module
from gspmd.interop.import_program import import_module
from gspmd.ir.collector import collector_paused
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh


def import_stablehlo(source: str | bytes, *, mesh: Mesh | None = None, file: str = "", function: str = "") -> Program:
    """The program (stage annotated) of a StableHLO module: its text, its bytecode, or a portable artifact.

    `mesh` gives axes to XLA's sharding strings, which name none; `function` chooses among several functions; `file` is
    for messages. Raises ParseError, with MLIR's message and line, for what is no module, and UsageError for what a
    program cannot say (dynamic shapes, quantized types, per-device code, ...), all of it at once.
    """
    with collector_paused():
        return import_module(read_module(source, file), mesh, function)
