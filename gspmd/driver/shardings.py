"""Shardings that are given beside a program, by the names of its values, as if they were annotations in it.

They are for programs that cannot be annotated where they are written, such as imported ones. An annotation that is in
the program holds: what is given beside it may say more where it leaves a dimension open, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from gspmd.inspect.annotating import contradicted, read_annotations, with_annotations
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import STAGES, Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.printer import value_names
from gspmd.ir.sharding import Sharding


def with_shardings(program: Program, given: Mapping[str, Sharding | str] | None) -> Program:
    """The program on its mesh with values annotated so; without a mesh of its own it is on that of the shardings.

    Raises UsageError for a program that is past its annotated stage or on a single device, for unknown and repeated
    values, for shardings that do not fit the mesh or the value, and for those that contradict an annotation.
    """
    if given is None or given == {}:
        return program
    if program.stage != STAGES[0]:
        raise UsageError(
            f"the program is at stage {program.stage}: how its values are split is settled",
            fix="give shardings to the program that it was compiled from",
        )
    mesh = _mesh_of(program, given)
    wanted = read_annotations(program, mesh, given)
    if (clash := contradicted(program, wanted)) is not None:
        value, said = clash
        name, given_text = value_names(program)[value], wanted[value].text()
        raise UsageError(
            f"%{name} is annotated {said.text()} in the program, which {given_text} contradicts",
            fix="change the annotation there; what that would change, what_if (explain --what-if) tells",
        )
    return with_annotations(replace(program, mesh=mesh), wanted)


def _mesh_of(program: Program, given: object) -> Mesh:
    """The mesh that shardings are on; raises UsageError if it has no axes."""
    mesh = program.mesh
    if mesh is None or not mesh.axes:
        shardings = cast("Mapping[object, object]", given).values() if isinstance(given, Mapping) else ()
        mesh = next((s.mesh for s in shardings if isinstance(s, Sharding)), mesh)
    if mesh is None or not mesh.axes:
        raise UsageError(
            "shardings are given, but no mesh whose axes they could name",
            fix='give one: mesh=gspmd.Mesh({"data": 2, "model": 4}), on the command line --mesh data=2,model=4',
        )
    return mesh
