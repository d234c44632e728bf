"""Bad input: one clear message that names the place, the right exit code, no traceback, no half-written file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gspmd.cli.failure import failure
from gspmd.runtime.environment import find_mpiexec
from tests.cli.command import Outcome, call, files, forked, gspmd, line_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = files(tmp_path_factory.mktemp("bad"))
    (made / "broken.gspmd").write_text("func @f(%x: f32[4]) -> (f32[4]) stage=annotated {\n  return %y\n}\n")
    (made / "illegal.gspmd").write_text(
        "func @f(%x: f32[4], %y: f32[5]) -> (f32[4]) stage=annotated {\n  %0 = add(%x, %y) : f32[4]\n  return %0\n}\n"
    )
    (made / "noise.gspmd").write_bytes(np.random.default_rng(0).bytes(500))
    (made / "syntax.py").write_text("def f(:\n")
    (made / "good.bin").write_bytes(b"")
    x, w = np.zeros((7, 8), np.float32), np.zeros((8, 4), np.float32)
    np.savez(made / "ok.npz", x=x, w=w)
    np.savez(made / "names.npz", x=x, v=w)
    np.savez(made / "few.npz", x=x)
    np.savez(made / "shape.npz", x=x[:6], w=w)
    np.savez(made / "dtype.npz", x=x.astype(np.int32), w=w)
    np.savez(made / "pickle.npz", x=np.array([{}], object), w=w)
    np.save(made / "single.npy", x)
    whole = (made / "ok.npz").read_bytes()
    (made / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (made / "damaged.npz").write_bytes(whole[:60] + bytes(40) + whole[100:])
    return made


def one_message(outcome: Outcome, code: int, *patterns: str, out: str = "") -> None:
    assert outcome.code == code, outcome
    assert "Traceback" not in outcome.err and outcome.out == out, outcome
    assert len(re.findall(r"^(rank \d+ of \d+: )?gspmd: ", outcome.err, re.MULTILINE)) == 1, outcome.err
    for pattern in patterns:
        assert re.search(pattern, outcome.err), (pattern, outcome.err)


USER = [
    ("unknown_axis", 'mesh, "rows"', r"no axis 'rows'"),
    ("axis_twice", '"data", "data"', "can use an axis once"),
    ("wrong_rank", 'shard(x, mesh, "data")', "1 entries for a value of 2 dimensions"),
    ("mismatch", "return x @ y", r"size 8 .* size 6"),
    ("wrong_dtype", "return x & 1", "f32|float"),
]


@pytest.mark.parametrize(("name", "text", "message"), USER, ids=[case[0] for case in USER])
def test_mistakes_in_a_program_are_told_at_their_line(folder: Path, name: str, text: str, message: str) -> None:
    outcome = forked(folder, "run", f"model.py:{name}", "--random", "1")
    one_message(outcome, 2, message, rf"\n  at model\.py:{line_of(text)}\n")


RUN = ("run", "model.py:good")
INPUT = [
    (("run", "broken.gspmd"), r"broken\.gspmd:2:10.*%y"),
    (("run", "illegal.gspmd"), r"illegal\.gspmd:2.*"),
    (("run", "noise.gspmd"), r"noise\.gspmd.*not UTF-8"),
    (("opt", "syntax.py:f"), r"syntax\.py:1: SyntaxError"),
    (("run", "none.gspmd"), "cannot read none.gspmd: No such file"),
    (("run", "none.py", "--ranks", "2"), "cannot read none.py: No such file"),
    (("run", "."), "cannot read .: Is a directory"),
    (("compile", "model.py", "-o", "x"), "cannot tell what model.py holds"),
    (("run", "good.bin"), "cannot tell what good.bin holds"),
    (("explain", "model.py:good"), "takes one of VALUE, --collective N and --what-if"),
    (("explain", "model.py:good", "%x", "--collective", "0"), "takes one of VALUE"),
    (("explain", "model.py:good", "--collective", "0", "--stage", "local"), "--stage goes with VALUE"),
    (("explain", "model.py:good", "--collective", "3"), "no collective #3: the program has none"),
    (("explain", "model.py:good", "--what-if", "w"), r"annotates nothing[\s\S]*'%w=\[model,_\]'"),
    (("explain", "model.py:good", "--what-if", "%w=[rows,_]"), "%w: .*no axis 'rows'"),
    (("explain", "model.py:good", "%x", "--stage", "nowhere"), "no stage 'nowhere'"),
    (("collectives", "model.py:good", "--forbid", "gathers"), r"no collective 'gathers'"),
    (("cost", "model.py:good", "--max-memory", "much"), "max_memory is a number of bytes, not 'much'"),
    (("run", "train.py", "--forbid", "all_gather"), "--forbid goes with a program"),
    (("run", "train.py", "--without", "merge"), "--without goes with a program"),
    (("run", "model.py:nice", "--random", "1"), r"no function 'nice'"),
    (("run", "model.py:untyped", "--random", "1"), r"types .* untyped are not known[\s\S]*gspmd\.program"),
    (RUN, "takes 2 arrays[\\s\\S]*--inputs"),
    ((*RUN, "--random", "x"), "invalid int value"),
    ((*RUN, "--random", "-1"), "--random takes a seed of 0 or more, not -1"),
    ((*RUN, "--random", "1", "--inputs", "ok.npz"), "exclude each other"),
    ((*RUN, "--random", "1", "--outputs", "no/out.npz"), "cannot write no/out.npz"),
    ((*RUN, "--random", "1", "--outputs", "."), "cannot write .: Is a directory"),
    (("compile", "model.py:good", "-o", "no/out"), "cannot write no/out"),
    ((*RUN, "--random", "1", "--ranks", "0"), "at least one rank, not 0"),
    ((*RUN, "--random", "1", "--ranks", "-2"), "at least one rank, not -2"),
    ((*RUN, "--random", "1", "--mesh", "data"), "'data' is no mesh"),
    ((*RUN, "--random", "1", "--mesh", "data=2,data=2"), "data"),
    ((*RUN, "--random", "1", "--mesh", "data=4"), r"annotated for the mesh \[data=2\].*\[data=4\]"),
    ((*RUN, "--random", "1", "--mesh", "data=4", "--ranks", "2"), "4 devices, but --ranks is 2"),
    ((*RUN, "--inputs", "none.npz"), "cannot read none.npz: No such file"),
    ((*RUN, "--inputs", "model.py"), "model.py is no .npz file"),
    ((*RUN, "--inputs", "single.npy"), "single.npy is no .npz file"),
    ((*RUN, "--inputs", "cut.npz"), "cut.npz is no .npz file of arrays, or not a whole one"),
    ((*RUN, "--inputs", "damaged.npz"), "damaged.npz is no .npz file"),
    ((*RUN, "--inputs", "pickle.npz"), "pickle.npz is no .npz file"),
    ((*RUN, "--inputs", "names.npz"), "holds x, v, but the program takes x, w"),
    ((*RUN, "--inputs", "few.npz"), "holds 1 arrays, but the program takes 2"),
    ((*RUN, "--inputs", "shape.npz"), r"shape.npz: argument 0 \(%x\) must be f32\[7, 8\]: got f32\[6, 8\]"),
    ((*RUN, "--inputs", "dtype.npz"), r"dtype.npz: argument 0 \(%x\) must be f32\[7, 8\]: got i32"),
    (("run", "train.py", "--random", "1"), "train.py is a script"),
    (
        ("run", "train.py", "--mesh", "batch=2"),
        r"batch=2 has none of .* uses: a\n  at train.py:9\n  fix: .* a=2",
    ),
    (("explain", "model.py:good", "%foo"), "no value %foo"),
    (("opt", "model.py:good", "--until", "later"), "no stage 'later'"),
    (("collectives", "model.py:good", "--fast"), "unrecognized arguments: --fast"),
    (("fly",), "invalid choice: 'fly'"),
]


@pytest.mark.parametrize(("arguments", "message"), INPUT, ids=[" ".join(case[0]) for case in INPUT])
def test_bad_input_is_told_in_one_message(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    one_message(forked(folder, *arguments), 2, message)


def test_what_a_users_function_raises_is_told_at_its_line(folder: Path) -> None:
    outcome = forked(folder, "run", "model.py:raises", "--random", "1")
    one_message(outcome, 1, "KeyError: 'weight'", rf"at model\.py:{line_of('weight')}")


def test_lines_without_a_file_are_not_the_users() -> None:
    code = compile("def f(x):\n    raise ValueError('boom')\n", "kernels/generated.pyx", "exec")
    names: dict[str, Any] = {}
    exec(code, names)  # a compiled module names its source, which is not here
    try:
        names["f"](1)
    except ValueError as error:
        text, exit_code = failure(error)
    assert exit_code == 1 and re.fullmatch(r"gspmd: ValueError: boom\n  at .*test_bad_input.py:\d+", text)


def test_a_failed_run_leaves_the_output_as_it_was(folder: Path) -> None:
    for arguments in (("run", "model.py:good", "--inputs", "cut.npz", "--outputs"), ("compile", "broken.gspmd", "-o")):
        target = folder / "kept"
        target.write_text("before")
        assert forked(folder, *arguments, "kept").code == 2
        assert target.read_text() == "before"
    assert not [p.name for p in folder.iterdir() if p.name.startswith(".kept")]


@pytest.mark.mpi
def test_a_wrong_number_of_ranks_is_told_once(folder: Path) -> None:
    outcome = gspmd(folder, "run", "model.py:good", "--random", "1", "--ranks", "3")
    one_message(outcome, 2, r"2 devices of \[data=2\], but this job has 3 ranks")


SCRIPTS = {
    "late": r"rank 1 of 2: gspmd: ValueError: boom\n  at train.py:\d+\n  at train.py:\d+\n",
    "different": r"every rank must have the same program \w+: rank 1 differs from rank 0\n  at train.py:\d+\n",
    "fixed": r"\[b=3\] has 3 devices, but this job has 2 ranks\n  at train.py:\d+\n",
}


@pytest.mark.mpi
@pytest.mark.parametrize("mode", SCRIPTS)
def test_a_script_that_fails_takes_the_job_down(folder: Path, mode: str) -> None:
    outcome = gspmd(folder, "run", "train.py", "--ranks", "2", mode)
    one_message(outcome, 1, SCRIPTS[mode], out=outcome.out)


def test_a_script_that_fails_alone_is_told_with_its_lines(folder: Path) -> None:
    for mode, code, message in (
        ("late", 1, "ValueError: boom"),
        ("shape", 1, r"must be f32\[4\]: got f32\[3\]"),
        ("argument", 2, "str 'five' is no argument of a traced function"),
    ):
        outcome = forked(folder, "run", "train.py", mode)
        one_message(outcome, code, message + r"\n  at train.py:\d+\n", out=outcome.out)


@pytest.mark.mpi
def test_a_plain_mpiexec_is_taken_down_too(folder: Path) -> None:
    mpiexec = find_mpiexec()
    assert mpiexec is not None
    for mode, message in (("early", "ValueError: boom"), ("different", "rank 1 differs from rank 0")):
        outcome = call([mpiexec, "-n", "2", sys.executable, "train.py", mode], folder)
        assert outcome.code == 1 and outcome.err.count(message) == 1 and outcome.seconds < 30, outcome


def test_nothing_compared_is_a_failure(folder: Path) -> None:
    one_message(forked(folder, "run", "train.py", "--check", "nothing"), 1, "--check compared no arrays")
