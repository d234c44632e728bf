"""Strides along a split dimension: what lies between the elements that are read is not sent."""

from __future__ import annotations

import numpy as np
import pytest

import gspmd
from gspmd.driver.pipeline import run_stages
from gspmd.ops.fetch_plan import Reading
from gspmd.partitioner.halo import strideless
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import lockstep


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize(("size", "step"), [(24, 2), (24, -2), (36, 3), (36, -3), (47, 4), (61, -2), (48, 5)])
@pytest.mark.parametrize(("start", "stop"), [(0, None), (7, 23), (5, -1)])
def test_values(parts: int, size: int, step: int, start: int, stop: int | None) -> None:
    mesh = gspmd.Mesh({"x": parts})

    def program(a: gspmd.Tracer) -> gspmd.Tracer:
        return gspmd.shard(a[start:stop][::step], mesh, "x", None)

    x = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
    sharding = gspmd.Sharding.replicate(mesh, 2)
    module = gspmd.trace(lambda a: program(gspmd.shard(a, mesh, "x", None)), gspmd.TensorType("f32", x.shape, sharding))
    (got,) = Executor(run_stages(module.program).last, lockstep(mesh)).run_whole([x], np.nan)
    assert np.array_equal(got, x[start:stop][::step])


@pytest.mark.parametrize(("mul", "chunk", "add"), [(2, 12, 7), (-2, 12, 45), (3, 12, -5), (-4, 8, 31)])
def test_a_reading_without_strides_reads_the_same(mul: int, chunk: int, add: int) -> None:
    axes = (gspmd.Mesh({"x": 4}).axis("x"),)
    r = Reading(size=4 * chunk - 3, axes=axes, chunk=chunk, to_size=6, to_axes=axes, to_chunk=2, mul=mul, add=add)
    first, s = strideless(r)
    assert abs(s.mul) == 1
    assert s.chunk * abs(mul) == r.chunk
    before, after = ([x.mul * o + x.add for o in range(r.to_size)] for x in (r, s))
    assert before == [abs(mul) * q + first for q in after]
    assert [0 <= p < r.size for p in before] == [0 <= q < s.size for q in after]
