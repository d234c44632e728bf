"""The graph walker: memory is freed at the last use, errors tell the user's line, values keep their rank."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.ir.errors import ExecutionError
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.runtime.transport import LockstepTransport
from gspmd.runtime.walker import Walker

MEGA = 1 << 18  # elements of a MiB of f32


def peak(program: Program, count: int, consume: bool) -> float:
    """The most memory that a run held beside what it began with, in MiB."""
    arrays = [[np.zeros(MEGA, np.float32)] for _ in range(count)]
    walker = Walker(LockstepTransport(Mesh({})))
    walker.run(program.body, list(arrays))
    tracemalloc.start()
    try:
        arrays = [[np.zeros(MEGA, np.float32)] for _ in range(count)]
        walker.run(program.body, arrays, consume=consume)
        return tracemalloc.get_traced_memory()[1] / (1 << 20) - count
    finally:
        tracemalloc.stop()


def test_values_are_freed_at_their_last_use() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20):
            x = x * x
        return x

    program = gspmd.trace(chain, gspmd.TensorType("f32", (MEGA,))).program
    assert 1.9 < peak(program, 1, consume=False) < 2.1
    assert 0.9 < peak(program, 1, consume=True) < 1.1


def test_values_that_nobody_reads_are_freed_at_once() -> None:
    def wasteful(x: Any) -> Any:
        for _ in range(20):
            _ = x + x
        return x

    program = gspmd.trace(wasteful, gspmd.TensorType("f32", (MEGA,))).program
    assert peak(program, 1, consume=False) < 3.1


def test_arguments_are_left_alone_unless_consumed() -> None:
    program = gspmd.trace(lambda x: x + 1.0, gspmd.TensorType("f32", (3,))).program
    walker = Walker(LockstepTransport(Mesh({})))
    arguments = [[np.zeros(3, np.float32)]]
    walker.run(program.body, arguments)
    assert len(arguments) == 1
    walker.run(program.body, arguments, consume=True)
    assert not arguments


def test_a_kernel_that_fails_is_told_with_its_line() -> None:
    program = gspmd.trace(lambda x, y: x + y, *[gspmd.TensorType("f32", (3,))] * 2).program
    walker = Walker(LockstepTransport(Mesh({})))
    with pytest.raises(ExecutionError, match=r"add failed: [\s\S]*at .*test_walker.py:\d+"):
        walker.run(program.body, [[np.zeros(3, np.float32)], [np.zeros(4, np.float32)]])


def test_scalars_stay_arrays() -> None:
    def f(x: Any) -> Any:
        return gnp.sum(x), gnp.sum(x) * 2.0, gnp.argmax(x), x[1]

    program = gspmd.trace(f, gspmd.TensorType("f32", (3,))).program
    results = Walker(LockstepTransport(Mesh({}))).run(program.body, [[np.arange(3, dtype=np.float32)]])
    assert all(type(shards[0]) is np.ndarray and shards[0].shape == () for shards in results)
