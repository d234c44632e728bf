"""Whole programs: MPI equals the simulator in every bit, and every stage of a program gives the same numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gspmd
from gspmd.driver.module import Module
from gspmd.frontend.tree import flatten
from gspmd.inspect.check import compare_results
from gspmd.inspect.reference import Reference
from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.ir.verify import verify
from gspmd.ops import OPS
from gspmd.runtime.launch import launch_command, rank_environment
from tests.runtime.mesh_programs import MESHES, PROGRAMS, arguments
from tests.runtime.ranks import ROOT

COLLECTIVES = {"all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter"}


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_mpi_gives_the_bits_of_the_simulator(ranks: int) -> None:
    command = [*launch_command(ranks), sys.executable, "-m", "tests.runtime.programs_on_ranks"]
    done = subprocess.run(
        command, env=rank_environment(ranks), cwd=ROOT, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    head, _, kinds = done.stdout.strip().partition("; ")
    assert head.endswith(f"{len(PROGRAMS)} programs") and int(head.split()[0]) >= 3 * len(PROGRAMS)
    assert ranks < 4 or set(kinds.split()) >= COLLECTIVES


MESHES_TO_STAGE = [MESHES[3][0], MESHES[4][1]]


@pytest.mark.parametrize("axes", MESHES_TO_STAGE, ids=["3", "2x2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_gives_the_same_numbers(name: str, axes: dict[str, int]) -> None:
    function, types = PROGRAMS[name](gspmd.Mesh(axes))
    compiled, arrays = gspmd.compile(function, *types), arguments(types)
    expected = Reference(lambda moved: leaves(compiled.module.run(*moved)), arrays)
    for stage, program in compiled.stages.programs.items():
        text = print_program(program)
        read = parse_program(text, OPS)
        verify(read, OPS)
        assert print_program(read) == text, f"{stage} changes when it is read back"
        found = leaves(compiled.stage(stage).run(*arrays))
        compare_results(found, expected, f"{name} at {stage}")
        again = leaves(Module(read).run(*arrays))
        assert [x.tobytes() for x in again] == [x.tobytes() for x in found], f"{stage}, read back, runs otherwise"


def leaves(results: object) -> list[np.ndarray]:
    return [np.asarray(x) for x in flatten(results)[0]]
