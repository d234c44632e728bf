"""Local stages as StableHLO: XLA runs one device's program on each partition, and gets what one device gets."""

from __future__ import annotations

import re

import pytest

import gspmd
from gspmd.driver.pipeline import run_stages
from gspmd.interop.export_stablehlo import export_stablehlo
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import LOCAL_STAGES
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from tests.interop.partitioned import Question, ask
from tests.interop.partitioned_programs import HANDFUL, PROGRAMS, SHUFFLED, X2, question, sharded
from tests.ops.cases import parse
from tests.ops.inputs import example_inputs

CASES = {c.name: c for c in PROGRAMS}


def local_text(line: str, type_: str = "f32[4, 6]") -> str:
    """The text of one op on f32[4, 6] on the shuffled mesh, whose devices are [[2, 0], [3, 1]]."""
    source = f"""
        mesh @mesh = [x=2, y=2] devices=[2,0,3,1]
        func @f(%a: f32[4, 6]) -> ({type_}) stage=local global (f32[4, 6]@_) -> ({type_}@_) {{
          %0 = {line}
          return %0
        }}"""
    return export_stablehlo(parse_program(source, OPS))


def test_xla_runs_a_handful_of_each_stage() -> None:
    questions = [question(CASES[name], stage) for name in HANDFUL for stage in ("local", "optimized")]
    questions += [question(CASES[name], "scheduled") for name in ("mlp_gradient", "laplacian")]
    # Windows with holes, and reductions of bits among devices, which XLA has not.
    for example in (
        "select_and_scatter(f64[11], f64[5]) window={size=[2] stride=[3] window_dilation=[2] low=[3] high=[1]}",
        "reduce(u16[6, 4]) dims=[0, 1] monoid=xor",
        "reduce(i32[6, 5]) dims=[0] monoid=or",
    ):
        program = parse(example)
        asked = sharded(program, X2, lambda d, rank: "x" if d == 0 else "")
        questions.append(Question(example, asked, tuple(example_inputs(program))))
    wrong = [f"{q.name}: {message}" for q, message in ask(questions) if message]
    assert wrong == []


def test_groups_list_physical_devices_major_to_minor() -> None:
    text = local_text("all_gather(%a) dim=0 axes=[x, y] : f32[16, 6]", "f32[16, 6]")
    assert "replica_groups = dense<[[2, 0, 3, 1]]> : tensor<1x4xi64>" in text
    text = local_text("all_gather(%a) dim=0 axes=[y, x] : f32[16, 6]", "f32[16, 6]")
    assert "replica_groups = dense<[[2, 3, 0, 1]]>" in text
    text = local_text("all_reduce(%a) axes=[x] monoid=max : f32[4, 6]")
    assert "replica_groups = dense<[[2, 3], [0, 1]]>" in text and '"stablehlo.maximum"' in text
    text = local_text("reduce_scatter(%a) dim=1 axes=[y] monoid=add : f32[4, 3]", "f32[4, 3]")
    assert "replica_groups = dense<[[2, 0], [3, 1]]>" in text and "scatter_dimension = 1" in text
    text = local_text("all_to_all(%a) from_dim=1 to_dim=0 axes=[x] : f32[2, 12]", "f32[2, 12]")
    assert "split_dimension = 0" in text and "concat_dimension = 1" in text and "split_count = 2" in text
    text = local_text("collective_permute(%a) source=[x, y] target=[y, x] : f32[4, 6]")
    assert "source_target_pairs = dense<[[2, 2], [3, 0], [0, 3], [1, 1]]>" in text


def test_the_text_says_that_it_is_partitioned_and_how() -> None:
    local = run_stages(CASES["reshard_gathered"].module().program, "local").last
    text = export_stablehlo(local)
    assert "mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32" in text
    assert 'gspmd.mesh = "[x=2, y=2] devices=[2,0,3,1]"' in text
    assert 'tensor<4x2xf32> {mhlo.frontend_attributes = {gspmd.type = "f32[8@x, 4@y]"}' in text
    assert text.count('mhlo.sharding = "{manual}"') >= 2
    channels = re.findall(r"handle = (\d+)", text)
    assert channels and len(channels) == len(set(channels))


def test_one_device_needs_no_partitioner() -> None:
    text = gspmd.compile(lambda x: x * 2.0, gspmd.TensorType("f32", (3,))).stage("local").to_stablehlo()
    assert "{manual}" not in text and "num_partitions = 1" in text


@pytest.mark.parametrize("stage", ["explicit", "collectives"])
def test_stages_between_are_refused(stage: str) -> None:
    compiled = gspmd.compile(CASES["dot_rows"].module())
    with pytest.raises(UsageError, match="from stage local on"):
        compiled.stage(stage).to_stablehlo()


def test_every_local_stage_of_every_program_can_be_written() -> None:
    for case in PROGRAMS:
        stages = run_stages(case.module().program).programs
        for name in LOCAL_STAGES:
            assert f'gspmd.stage = "{name}"' in export_stablehlo(stages[name])


assert SHUFFLED.device_order == (2, 0, 3, 1)
