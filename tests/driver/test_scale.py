"""What compiling costs does not depend on the number of devices, nor decisions on the number of layers."""

from __future__ import annotations

from functools import cache

import pytest

import gspmd
import gspmd.numpy
from benchmarks.transformer import Library, Sizes, arguments, training_step
from gspmd.driver.pipeline import Stages, run_stages
from gspmd.ir.graph import STAGES
from gspmd.ir.printer import print_program
from gspmd.partitioner.form import local_form
from gspmd.partitioner.planner import plan
from gspmd.partitioner.strategy import choices


@cache
def stages(layers: int, data: int, model: int) -> Stages:
    """A Transformer's training step at every stage."""
    mesh = gspmd.Mesh({"data": data, "model": model})
    library = Library(gspmd.numpy, lambda x, *entries: gspmd.shard(x, mesh, *entries), gspmd.value_and_grad)
    sizes = Sizes(layers=layers)
    given = arguments(sizes, lambda shape, dtype: gspmd.TensorType(dtype, shape))
    return run_stages(gspmd.trace(training_step(library, sizes), *given).program)


@pytest.mark.parametrize("stage", STAGES)
def test_65536_devices_take_the_program_of_8(stage: str) -> None:
    small, large = (stages(2, *mesh).programs[stage] for mesh in ((2, 4), (4096, 16)))
    assert [n.op.name for n in small.body.walk()] == [n.op.name for n in large.body.walk()]
    lengths = [len(print_program(p)) for p in (small, large)]
    assert 0.8 < lengths[1] / lengths[0] < 1.2


def test_layers_repeat() -> None:
    """No question about partitioning, resharding or local bodies is asked for another layer that was not for two."""
    stages(2, 4, 8)
    memos = (choices, plan, local_form)
    before = [m.cache_info().misses for m in memos]
    stages(4, 4, 8)
    assert [m.cache_info().misses for m in memos] == before
