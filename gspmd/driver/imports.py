"""Programs of other front ends as modules: StableHLO texts and files, functions written in JAX."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gspmd.driver.meshes import MESH_VARIABLE, parse_mesh_option
from gspmd.driver.module import Module
from gspmd.frontend.tree import TreeDef, flatten
from gspmd.interop.import_jax import import_jax
from gspmd.interop.import_stablehlo import import_stablehlo
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Region
from gspmd.ir.mesh import Mesh
from gspmd.ir.verify import verify
from gspmd.ops import OPS

# How files of MLIR are named: text, bytecode, portable artifacts.
MLIR_SUFFIXES = (".mlir", ".mlirbc", ".mlir.bc", ".stablehlo")


def from_stablehlo(source: str | bytes, *, mesh: Mesh | None = None, file: str = "", function: str = "") -> Module:
    """A module from StableHLO: MLIR text, MLIR bytecode or a portable artifact.

    Annotations are read from `mhlo.sharding` strings, `@Sharding` calls and Shardy's attributes. `mesh` names the axes
    of XLA's strings, which have no names; `function` chooses among several functions; `file` is for messages. Raises
    ParseError for what is no MLIR, UsageError for everything in it that a program here cannot say, all at once.
    """
    program = import_stablehlo(source, mesh=mesh, file=file, function=function)
    verify(program, OPS)
    return Module(program)


def is_mlir(path: str) -> bool:
    """Whether a file is named as MLIR files are."""
    return path.endswith(MLIR_SUFFIXES)


def load_mlir(path: str, data: bytes, function: str = "") -> Module:
    """The module of an MLIR file's contents, on the mesh of the command line (GSPMD_MESH) if there is one."""
    given = os.environ.get(MESH_VARIABLE, "")
    mesh = parse_mesh_option(given) if given else None
    return from_stablehlo(data, mesh=mesh, file=path, function=function)


def from_jax(function: Callable[..., Any], *arguments: Any, **fixed: Any) -> Module:
    """A module from a JAX function and its arguments (arrays or `jax.ShapeDtypeStruct`s), with JAX's dtypes.

    The module takes and returns the function's own nesting; keyword arguments are fixed. Shardings of arguments, of
    jitted functions and of `with_sharding_constraint` become annotations. Raises UsageError for what cannot be
    imported and for arguments nested in containers that are unknown here.
    """
    found = import_jax(function, *arguments, **fixed)
    program = found.program
    inputs, in_tree = _order(found.arguments, len(program.inputs), "an argument")
    outputs, out_tree = _order(found.results, len(program.outputs), "a result")
    body = program.body
    region = Region(tuple(body.params[i] for i in inputs), body.nodes, tuple(body.results[i] for i in outputs))
    program = replace(
        program,
        body=region,
        inputs=tuple(program.inputs[i] for i in inputs),
        outputs=tuple(program.outputs[i] for i in outputs),
    )
    verify(program, OPS)
    return Module(program, in_tree, out_tree)


def _order(nested: Any, count: int, what: str) -> tuple[Sequence[int], TreeDef]:
    """The numbers in a nesting in our order, and the nesting; raises UsageError for containers that are unknown."""
    leaves, tree = flatten(nested)
    if any(type(x) is not int for x in leaves) or sorted(leaves) != list(range(count)):
        odd = next((type(x).__name__ for x in leaves if type(x) is not int), "a container of JAX's own")
        raise UsageError(
            f"{what} nests in {odd}, which is not known here",
            fix="use tuples, lists, dicts, named tuples or dataclasses of arrays",
        )
    return leaves, tree
