"""`gspmd run`: starts the ranks, and in each rank (or alone) runs a program or a script."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path
from typing import cast

import numpy as np

from gspmd.cli.files import check_writable, write_arrays
from gspmd.cli.inputs import check_inputs, module_and_arrays
from gspmd.cli.sources import LIMITS, check_readable, compiled_of, is_script, mesh_of
from gspmd.cli.terminal import notice, progress
from gspmd.driver.compiled import Compiled
from gspmd.driver.module import Module
from gspmd.driver.watch import CHECK_VARIABLE, require_checked
from gspmd.frontend.tree import flatten
from gspmd.inspect.check import compare_results
from gspmd.inspect.reference import Reference
from gspmd.ir.errors import UsageError
from gspmd.ir.opdef import Array
from gspmd.runtime.environment import world
from gspmd.runtime.launch import launch

# The options of programs, which a script does not have: it says itself what it runs on, and how it compiles.
_PROGRAM = ("shard", "inputs", "random", "outputs", "without", *LIMITS)


def run_command(arguments: argparse.Namespace) -> int:
    """Run a script or a program; with --ranks in an MPI job that this starts."""
    _settle(arguments)
    if arguments.ranks is not None and not world().under_launcher:
        return _start_ranks(arguments)
    if arguments.ranks is not None and arguments.ranks != world().size:
        raise UsageError(f"--ranks {arguments.ranks} in a job of {world().size} ranks", fix="leave --ranks out")
    return _run_script(arguments) if is_script(arguments.file) else _run_program(arguments)


def _settle(arguments: argparse.Namespace) -> None:
    """Check what can be checked before any rank starts."""
    check_readable(arguments.file)
    if arguments.ranks is not None and arguments.ranks < 1:
        raise UsageError(f"a job has at least one rank, not {arguments.ranks}")
    check_inputs(arguments)
    mesh = mesh_of(arguments)
    if mesh is not None and arguments.ranks is not None and mesh.size != arguments.ranks:
        raise UsageError(f"--mesh {arguments.mesh} has {mesh.size} devices, but --ranks is {arguments.ranks}")
    if is_script(arguments.file):
        for name in _PROGRAM:
            if getattr(arguments, name) is not None:
                raise UsageError(
                    f"{_option(name)} goes with a program, {arguments.file} is a script",
                    fix=f"name a function, {arguments.file}:function; what follows -- is the script's own",
                )
    if arguments.outputs is not None and world().rank == 0:
        check_writable(arguments.outputs)


def _start_ranks(arguments: argparse.Namespace) -> int:
    """Start the ranks; each of them reads the same command line and finds itself in a job."""
    command = ["-m", "gspmd.cli", "run", arguments.file]
    for name in ("mesh", *_PROGRAM):
        value = getattr(arguments, name)
        several: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
        for given in (x for x in several if x is not None):
            command += [_option(name), str(given)]
    command += ["--check"] if arguments.check else []
    own = ["--", *arguments.script_arguments] if arguments.script_arguments else []
    return launch([*command, *own], arguments.ranks)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _run_script(arguments: argparse.Namespace) -> int:
    """Run a Python script as `python train.py` would, set up for this job."""
    if arguments.check:
        os.environ[CHECK_VARIABLE] = "1"
    sys.argv = [arguments.file, *arguments.script_arguments]
    sys.path.insert(0, str(Path(arguments.file).resolve().parent))
    runpy.run_path(arguments.file, run_name="__main__")
    if arguments.check:
        require_checked()
    return 0


def _run_program(arguments: argparse.Namespace) -> int:
    module, arrays = module_and_arrays(arguments, arguments.random)
    compiled = compiled_of(arguments, module)
    _check_ranks(compiled)
    _tell_if_whole(compiled)
    progress("running")
    results = [np.asarray(x) for x in flatten(compiled(*module.nest(arrays)))[0]]
    progress("")
    if arguments.check:
        _check(module, arrays, results)
    if world().rank == 0:
        names = _output_names(module)
        if arguments.outputs is not None:
            write_arrays(arguments.outputs, names, results)
        else:
            _show(names, results)
    return 0


def _check_ranks(compiled: Compiled) -> None:
    ranks, mesh = world().size, compiled.mesh
    if ranks not in (1, mesh.size):
        raise UsageError(
            f"the program is compiled for the {mesh.size} devices of {mesh.text()}, but this job has {ranks} ranks",
            fix=f"start {mesh.size} ranks, or give a mesh of {ranks} devices with --mesh",
        )


def _tell_if_whole(compiled: Compiled) -> None:
    """Tell that several devices all do the whole work: nothing else would show that annotations are missing."""
    if compiled.mesh.size == 1 or "propagated" not in compiled.stages.programs or world().rank != 0:
        return
    if not compiled.collectives() and all(s.is_replicated for s in compiled.shardings().values()):
        notice(
            f"no value is split over {compiled.mesh.text()}: every device computes the whole, for want of annotations "
            "(gspmd.shard, or --shard '%value=[axis,_]')"
        )


def _check(module: Module, arrays: list[Array], results: list[Array]) -> None:
    """Compare with one device; a program that was compiled before is compared with the simulator, by other ranks."""
    against = "the simulator" if module.program.is_local else "one device"
    if module.program.is_local and world().size == 1:
        raise UsageError(
            f"--check finds nothing to compare with: {module.program.name} is at stage {module.program.stage} already",
            fix="check the program that it was compiled from, or run it on ranks",
        )
    tally = compare_results(results, Reference(module.run_flat, arrays), "the program", against)
    if world().rank == 0:
        notice(f"check: {tally.text(against)}")


def _output_names(module: Module) -> list[str]:
    """A name for each result: its path in the function's nesting, or out, or out0, out1, ..."""
    count = len(module.output_types)
    paths = module.out_tree.paths("out") if module.out_tree is not None else []
    if len(paths) == count and len(set(paths)) == count:
        return paths
    return ["out"] if count == 1 else [f"out{i}" for i in range(count)]


def _show(names: list[str], results: list[Array]) -> None:
    for name, array in zip(names, results, strict=True):
        print(f"{name}: {array.dtype}{list(array.shape)}\n{np.array2string(array, threshold=20, edgeitems=3)}")
