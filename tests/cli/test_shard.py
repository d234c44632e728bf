"""`--shard`: an imported program without annotations is split as the command line says; mistakes are told once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import files, forked, gspmd

PLAIN = """\
module @m {
  func.func public @main(%arg0: tensor<8x6xf32>, %arg1: tensor<6x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
       : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
"""
SPLIT = ("--mesh", "d=2", "--shard", "%arg0=[_,d]", "--shard", "arg1=[d, _]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = files(tmp_path_factory.mktemp("shard"))
    (made / "plain.mlir").write_text(PLAIN)
    return made


def test_ranks_run_an_imported_program_whole_or_split(folder: Path) -> None:
    whole = gspmd(folder, "run", "plain.mlir", "--ranks", "2", "--random", "0", "--check")
    assert whole.code == 0 and whole.err.count("no value is split over [devices=2]") == 1, whole
    for options in (("--shard", "%arg0=[devices,_]"), SPLIT):
        split = gspmd(folder, "run", "plain.mlir", "--ranks", "2", "--random", "0", "--check", *options)
        assert split.code == 0 and split.err.startswith("check: compared 1 array with one device"), split
        assert split.out.splitlines()[0] == whole.out.splitlines()[0]


def test_every_command_takes_it(folder: Path) -> None:
    listed = forked(folder, "collectives", "plain.mlir", "--json", *SPLIT)
    assert [use["kind"] for use in json.loads(listed.out)] == ["all_reduce"], listed
    assert "all_reduce" in forked(folder, "cost", "plain.mlir", *SPLIT).out
    assert "%arg0 is annotated [_, d]" in forked(folder, "explain", "plain.mlir", "arg0", *SPLIT).out
    assert "all_reduce: 128 B -> " in forked(folder, "explain", "plain.mlir", "--what-if", "arg0=[d,_]", *SPLIT).out
    assert "no pass changes" in forked(folder, "bisect", "plain.mlir", *SPLIT).out
    assert "all_reduce" in forked(folder, "export", "plain.mlir", "-o", "-", *SPLIT).out
    assert forked(folder, "compile", "plain.mlir", "-o", "plain.gspmd", *SPLIT).code == 0
    assert forked(folder, "run", "plain.gspmd", "--random", "0").code == 0
    imported = forked(folder, "import", "plain.mlir", "-o", "-", *SPLIT)
    assert "%arg0: f32[8, 6@d], %arg1: f32[6@d, 4]" in imported.out, imported
    assert imported.out == forked(folder, "opt", "plain.mlir", "--until", "annotated", *SPLIT).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mesh", "d=2", "--shard", "x=[d,_]"), "the program has no value %x"),
        (("--mesh", "d=2", "--shard", "arg0=[e,_]"), "%arg0: the mesh [d=2] has no axis 'e'"),
        (("--mesh", "d=2", "--shard", "arg0"), "--shard arg0 annotates nothing"),
        ((*SPLIT, "--shard", "%arg0=[_,d]"), "--shard annotates %arg0 twice"),
        ((*SPLIT, "--shard", "arg0=[_,d]"), "two shardings are given for one value, as %arg0 and as arg0"),
        (("--shard", "arg0=[d,_]"), "no mesh whose axes they could name"),
    ],
)
def test_mistakes_are_one_message(folder: Path, options: tuple[str, ...], message: str) -> None:
    outcome = forked(folder, "run", "plain.mlir", "--random", "0", *options)
    assert outcome.code == 2 and outcome.err.startswith("gspmd: ") and message in outcome.err.splitlines()[0], outcome


def test_ranks_tell_a_mistake_once(folder: Path) -> None:
    outcome = gspmd(folder, "run", "plain.mlir", "--ranks", "2", "--random", "0", "--shard", "arg0=[d,_]")
    assert outcome.code == 2 and outcome.err.count("the mesh [devices=2] has no axis 'd'") == 1, outcome


def test_a_script_annotates_itself(folder: Path) -> None:
    outcome = forked(folder, "run", "train.py", "--shard", "x=[a]")
    assert outcome.code == 2 and "--shard goes with a program" in outcome.err, outcome
