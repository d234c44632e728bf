"""The way in for programs of other front ends: StableHLO (with CHLO and Shardy) as MLIR text or bytecode."""

from __future__ import annotations

from contextlib import suppress

from gspmd.interop.import_carried import restore_annotations
from gspmd.interop.import_mlir import Source, read_module, with_known_shapes
from gspmd.interop.import_program import Importer
from gspmd.ir.collector import collector_paused
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh


def import_stablehlo(
    source: str | bytes | bytearray | memoryview, *, mesh: Mesh | None = None, file: str = "", function: str = ""
) -> Program:
    """The program (stage annotated) of a StableHLO module: its text, its bytecode, or a portable artifact.

    `mesh` gives axes to XLA's sharding strings, which name none; `function` chooses among several functions; `file` is
    for messages. Raises ParseError, with MLIR's message and line, for what is no module, and UsageError for what a
    program cannot say (dynamic shapes, quantized types, per-device code, ...), all of it at once.
    """
    with collector_paused():
        return _import_module(read_module(source, file), mesh, function)


def _import_module(source: Source, mesh: Mesh | None, function: str) -> Program:
    """The program of a parsed module, as it is written or, if that lacks shapes, with those that follow."""
    restore_annotations(source)
    importer = Importer(source, mesh)
    try:
        return importer.program(function)
    except UsageError as error:
        known = with_known_shapes(source) if importer.lacks_shapes(function) else None
        if known is None:
            raise
        with suppress(UsageError):  # the first error tells more: it has the ops as they were written
            return Importer(known, mesh).program(function)
        raise error
