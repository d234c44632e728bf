"""What the regressions share: a function through every stage, padding poisoned, text read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gspmd
from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import lockstep


def survives(function: Callable[..., Any], *shapes: tuple[int, ...]) -> gspmd.Compiled:
    """Compile for f32 arguments of these shapes; every stage must compute the same and print what reads back."""
    compiled = gspmd.compile(function, *(gspmd.TensorType("f32", shape) for shape in shapes))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = Executor(compiled.module.program).run_whole(arrays)
    for name, program in compiled.stages.programs.items():
        text = print_program(program)
        assert print_program(parse_program(text, OPS)) == text, name
        executor = Executor(program, lockstep(compiled.mesh))
        for actual, wanted in zip(executor.run_whole(arrays, fill=np.nan), expected, strict=True):
            outcome = compare(actual, wanted, terms=64)
            assert outcome, f"{name}: {outcome.message}"
    return compiled
