"""`gspmd run`: starts the ranks, and in each rank (or alone) runs a program or a script."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gspmd.cli.commands import mesh_of
from gspmd.cli.files import match_inputs, random_inputs, read_arrays, write_arrays
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.meshes import MESH_VARIABLE, parse_mesh_option
from gspmd.driver.module import Module
from gspmd.driver.sources import load, load_function, read_bytes
from gspmd.driver.watch import CHECK_VARIABLE, require_checked
from gspmd.frontend.tree import flatten
from gspmd.inspect.check import compare_results
from gspmd.ir.errors import UsageError
from gspmd.ir.opdef import Array
from gspmd.runtime.environment import world
from gspmd.runtime.launch import launch


def run_command(arguments: argparse.Namespace) -> int:
    """Run a script or a program; with --ranks in an MPI job that this starts."""
    _settle(arguments)
    if arguments.ranks is not None and not world().under_launcher:
        return _start_ranks(arguments)
    if arguments.ranks is not None and arguments.ranks != world().size:
        raise UsageError(f"--ranks {arguments.ranks} in a job of {world().size} ranks", fix="leave --ranks out")
    return _run_script(arguments) if _is_script(arguments.file) else _run_program(arguments)


def _settle(arguments: argparse.Namespace) -> None:
    """Check what can be checked before any rank starts."""
    file = str(arguments.file)
    read_bytes(Path(file.partition(".py:")[0] + ".py" if ".py:" in file else file))
    mesh = mesh_of(arguments)
    if mesh is not None and arguments.ranks is not None and mesh.size != arguments.ranks:
        raise UsageError(f"--mesh {arguments.mesh} has {mesh.size} devices, but --ranks is {arguments.ranks}")
    if arguments.inputs is not None and arguments.random is not None:
        raise UsageError("--inputs and --random exclude each other")


def _is_script(file: str) -> bool:
    return file.endswith(".py")


def _start_ranks(arguments: argparse.Namespace) -> int:
    """Start the ranks; each of them reads the same command line and finds itself in a job."""
    progress(f"starting {arguments.ranks} ranks")
    command = ["-m", "gspmd.cli", "run", arguments.file]
    for name in ("mesh", "inputs", "random", "outputs"):
        value = getattr(arguments, name)
        if value is not None:
            command += [f"--{name}", str(value)]
    command += ["--check"] if arguments.check else []
    own = ["--", *arguments.script_arguments] if arguments.script_arguments else []
    return launch([*command, *own], arguments.ranks)


def _run_script(arguments: argparse.Namespace) -> int:
    """Run a Python script as `python train.py` would, set up for this job."""
    if arguments.mesh is not None:
        parse_mesh_option(arguments.mesh)
        os.environ[MESH_VARIABLE] = arguments.mesh
    if arguments.check:
        os.environ[CHECK_VARIABLE] = "1"
    sys.argv = [arguments.file, *arguments.script_arguments]
    sys.path.insert(0, str(Path(arguments.file).resolve().parent))
    runpy.run_path(arguments.file, run_name="__main__")
    if arguments.check:
        require_checked()
    return 0


def _run_program(arguments: argparse.Namespace) -> int:
    given = None if arguments.inputs is None else read_arrays(arguments.inputs)
    file, _, function = arguments.file.partition(".py:")
    module = load_function(file + ".py", function, given) if function else load(arguments.file)
    compiled = compile(module, mesh=mesh_of(arguments), progress=lambda stage: progress(f"compiled to {stage}"))
    arrays = _arrays(arguments, module, given)
    progress("running")
    nested = tuple(arrays) if module.in_tree is None else module.in_tree.unflatten(arrays)
    results = [np.asarray(x) for x in flatten(compiled(*nested))[0]]
    progress("")
    if arguments.check:
        _check(compiled, module, nested, results)
    names = output_names(module)
    if world().rank == 0:
        if arguments.outputs is not None:
            write_arrays(arguments.outputs, names, results)
        else:
            _show(names, results)
    return 0


def _arrays(arguments: argparse.Namespace, module: Module, given: dict[str, Array] | None) -> list[Array]:
    names = [v.name for v in module.program.body.params]
    if given is not None:
        return match_inputs(given, names, module.input_types, arguments.inputs)
    if arguments.random is not None or not names:
        return random_inputs(module.input_types, arguments.random or 0)
    raise UsageError(f"the program takes {len(names)} arrays", fix="give --inputs IN.npz or --random SEED")


def _check(compiled: Compiled, module: Module, nested: tuple[Any, ...], results: list[Array]) -> None:
    """Compare with one device, on rank 0's own and every other rank's account."""
    source = Module(compiled.stages.programs[module.program.stage], module.in_tree, module.out_tree)
    expected = [np.asarray(x) for x in flatten(source.run(*nested))[0]]
    tally = compare_results(results, expected, "the program")
    if world().rank == 0:
        print(f"check: {tally.text()}", file=sys.stderr)


def output_names(module: Module) -> list[str]:
    """A name for each result: its path in the function's nesting, or out, or out0, out1, ..."""
    count = len(module.output_types)
    paths = module.out_tree.paths("out") if module.out_tree is not None else []
    if len(paths) == count and len(set(paths)) == count:
        return paths
    return ["out"] if count == 1 else [f"out{i}" for i in range(count)]


def _show(names: list[str], results: list[Array]) -> None:
    for name, array in zip(names, results, strict=True):
        print(f"{name}: {array.dtype}{list(array.shape)}")
        print(np.array2string(array, threshold=20, edgeitems=3))


def progress(text: str) -> None:
    """Show on a terminal what goes on; an empty text clears the line."""
    if world().rank == 0 and sys.stderr.isatty():
        print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
