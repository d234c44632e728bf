"""The mesh that a program should use where it runs: what the command line says, else what the program asks for."""

from __future__ import annotations

import os
from math import prod

from gspmd.ir.errors import UsageError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh
from gspmd.runtime.environment import world

MESH_VARIABLE = "GSPMD_MESH"


def check_mesh(mesh: object) -> None:
    """Raise UsageError, at the user's line, for a mesh that is none; None is no mesh at all."""
    if mesh is not None and not isinstance(mesh, Mesh):
        raise UsageError(
            f"a mesh is a gspmd.Mesh, not {type(mesh).__name__} {mesh!r}",
            loc=user_location(),
            fix='make one: gspmd.Mesh({"data": 2, "model": 4})',
        )


def parse_mesh_option(text: str) -> Mesh:
    """Read `data=2,model=4`; raises UsageError otherwise."""
    pairs: list[tuple[str, int]] = []
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or not size.strip().isdigit() or int(size) < 1:
            raise UsageError(f"{text!r} is no mesh", fix="write it as data=2,model=4")
        pairs.append((name.strip(), int(size)))
    return Mesh(pairs)


def default_mesh(**axes: int) -> Mesh:
    """The mesh to run on: `--mesh` or GSPMD_MESH wins; else the given sizes, -1 taking what is left of the ranks.

    `gspmd.default_mesh(data=-1, model=1)`. A process on its own is one rank, and simulates a mesh that has no -1.
    Raises UsageError if the sizes do not fit the number of ranks, or the mesh given names none of the program's axes.
    """
    ranks = world().size
    given = os.environ.get(MESH_VARIABLE, "")
    if given:
        mesh = parse_mesh_option(given)
        if mesh.size != ranks > 1:
            raise UsageError(
                f"{MESH_VARIABLE}={given} has {mesh.size} devices, but this job has {ranks} ranks",
                fix=f"start {mesh.size} ranks, or give a mesh of {ranks} devices",
            )
        if mesh.size > 1 and axes and not set(mesh.axis_names) & set(axes):
            raise UsageError(
                f"the mesh {given} has none of the axes that the program uses: {', '.join(axes)}",
                loc=user_location(),
                fix=f"name them, as in {next(iter(axes))}={mesh.size}",
            )
        return Mesh([*mesh.axes, *((name, 1) for name in axes if name not in mesh.axis_names)])
    text = ", ".join(f"{name}={n}" for name, n in axes.items())
    open_axes = [name for name, n in axes.items() if n == -1]
    if len(open_axes) > 1 or any(n < 1 and n != -1 for n in axes.values()):
        raise UsageError(f"a mesh of {text}: sizes are positive, and at most one is -1", fix="as in data=-1, model=2")
    fixed = prod(n for n in axes.values() if n != -1)
    if ranks % fixed if open_axes else fixed != ranks > 1:
        raise UsageError(f"a mesh of {text} does not fit {ranks} ranks", fix="leave one axis at -1, or give --mesh")
    return Mesh([(name, ranks // fixed if n == -1 else n) for name, n in axes.items()])
