"""What the command line does when all is well: results, checks, compiled files, what it tells about a program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gspmd as library
from gspmd.kernels.closeness import compare
from tests.cli.command import files, forked, gspmd

SHIFTED = """\
import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType


@gspmd.program(TensorType("f32", (32, 16)))
def f(x):
    x = gspmd.shard(x, gspmd.Mesh({"data": 2}), "data", None)
    return gnp.roll(x, 1, axis=0) + gnp.roll(gnp.roll(x, 1, axis=0), 1, axis=0)
"""

RESIDUAL = """\
import numpy as np

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType


@gspmd.program(TensorType("f32", (6, 6)), TensorType("f32", (6,)))
def f(a, b):
    a = gspmd.shard(a, gspmd.Mesh({"data": 3}), "data", None)
    return gnp.linalg.norm(b - a @ gnp.linalg.solve(a.T @ a, a.T @ b))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    gspmd.jit(f)(rng.standard_normal((6, 6)), rng.standard_normal(6))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = files(tmp_path_factory.mktemp("run"))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((7, 8)).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)
    np.savez(made / "named.npz", w=w, x=x)
    np.savez(made / "ordered.npz", x, w)
    np.savez(made / "wide.npz", x=x.astype(np.float64), w=w.astype(np.float64))
    np.savez(made / "half.npz", x=x[:6].astype(ml_dtypes.bfloat16), w=w.astype(ml_dtypes.bfloat16))
    return made


def result(folder: Path, *arguments: str) -> np.ndarray:
    outcome = forked(folder, *arguments, "--outputs", "out.npz")
    assert (outcome.code, outcome.err, outcome.out) == (0, "", ""), outcome
    with np.load(folder / "out.npz") as file:
        return file["out"]


def test_inputs_go_by_name_or_in_order(folder: Path) -> None:
    named = result(folder, "run", "model.py:good", "--inputs", "named.npz")
    with np.load(folder / "named.npz") as file:
        assert compare(named, np.tanh(file["x"] @ file["w"]), terms=8)
    for other in ("ordered.npz", "wide.npz"):
        assert compare(result(folder, "run", "model.py:good", "--inputs", other), named, exact=True)
    typed = result(folder, "run", "model.py:untyped", "--inputs", "named.npz")
    assert typed.shape == (7, 4)


@pytest.mark.parametrize("file", ["residual.py:f", "residual.py"])
def test_a_residual_passes_with_an_allowance_that_is_told(folder: Path, file: str) -> None:
    (folder / "residual.py").write_text(RESIDUAL)
    if ":" in file:
        outcome = forked(folder, "run", file, "--check", "--random", "0")
    else:
        outcome = gspmd(folder, "run", file, "--check")  # a script is told when its process ends
    assert outcome.code == 0, outcome
    assert re.match(r"check: compared 1 array .*; 1 array allowed 8 times what moving the inputs", outcome.err), outcome


def test_bf16_goes_in_and_out(folder: Path) -> None:
    assert forked(folder, "run", "model.py:half", "--inputs", "half.npz", "--outputs", "h.npz", "--check").code == 0
    with np.load(folder / "h.npz") as file, np.load(folder / "half.npz") as given:
        assert sorted(file.files) == ["out.rows[0]", "out.rows[1]", "out.y"]
        assert file["out.rows[1]"].tobytes() == given["x"].tobytes()
        y = file["out.y"].view(ml_dtypes.bfloat16)
        x, w = (given[name].view(ml_dtypes.bfloat16).astype(np.float32) for name in "xw")
        assert compare(y, (x @ w).astype(ml_dtypes.bfloat16), terms=8)


def test_random_inputs_are_the_same_for_the_same_seed(folder: Path) -> None:
    one, other = (result(folder, "run", "model.py:good", "--random", seed) for seed in "12")
    assert compare(result(folder, "run", "model.py:good", "--random", "1"), one, exact=True)
    assert not compare(one, other)


def test_results_are_shown_without_an_output_file(folder: Path) -> None:
    outcome = forked(folder, "run", "model.py:good", "--random", "1", "--check")
    assert outcome.code == 0 and outcome.out.startswith("out: float32[7, 4]\n[[")
    assert re.fullmatch(r"check: compared 1 array with one device, largest error \S+ \(allowed \S+\)\n", outcome.err)


def test_a_compiled_file_runs_and_is_honest_about_checks(folder: Path) -> None:
    assert forked(folder, "compile", "model.py:good", "-o", "good.gspmd").code == 0
    assert "stage=scheduled" in (folder / "good.gspmd").read_text()
    shown = forked(folder, "compile", "model.py:good", "-o", "-")
    assert shown.out == (folder / "good.gspmd").read_text()
    again = result(folder, "run", "good.gspmd", "--inputs", "named.npz")
    assert compare(again, result(folder, "run", "model.py:good", "--inputs", "named.npz"), exact=True)
    vacuous = forked(folder, "run", "good.gspmd", "--random", "1", "--check")
    assert vacuous.code == 2 and "nothing to compare with" in vacuous.err


@pytest.mark.mpi
def test_ranks_run_a_compiled_file(folder: Path) -> None:
    forked(folder, "compile", "model.py:half", "-o", "half.gspmd")
    arguments = ("run", "half.gspmd", "--inputs", "half.npz", "--outputs")
    outcome = gspmd(folder, *arguments, "ranks.npz", "--ranks", "2", "--check")
    assert outcome.code == 0 and "check: compared 3 arrays with the simulator, largest error 0 " in outcome.err
    assert forked(folder, *arguments, "alone.npz").code == 0
    assert (folder / "ranks.npz").read_bytes() == (folder / "alone.npz").read_bytes()


@pytest.mark.mpi
def test_ranks_run_a_script_with_its_own_options(folder: Path) -> None:
    outcome = gspmd(folder, "run", "train.py", "--ranks", "2", "--check", "--steps", "5", "--", "--mesh", "3")
    assert outcome.code == 0 and outcome.out.count("total 10.0\n") == 2, outcome
    assert "options --steps 5 --mesh 3\n" in outcome.out
    assert "check: compared 2 arrays with one device" in outcome.err


def test_a_function_without_arguments_needs_nothing(folder: Path) -> None:
    assert forked(folder, "run", "model.py:alone").out == "out: int32[6]\n[ 0  2  4  6  8 10]\n"


def test_the_mesh_option_reaches_the_users_file(folder: Path) -> None:
    for mesh, parts in (("data=3", 3), ("data=2,rest=2", 2)):
        outcome = forked(folder, "opt", "model.py:anywhere", "--mesh", mesh, "--until", "local")
        assert f"%x: f32[{12 // parts}]" in outcome.out, outcome
        for command in (("run", "--random", "1"), ("bisect",), ("cost",), ("export", "-o", "-")):
            outcome = forked(folder, command[0], "model.py:anywhere", *command[1:], "--mesh", mesh)
            assert outcome.code == 0 and outcome.err == "", outcome


def test_a_program_without_annotations_is_told_that_it_gains_nothing(folder: Path) -> None:
    whole = "func @f(%x: f32[8]) -> (f32[8]) { %y = sine(%x) : f32[8] return %y }"
    (folder / "whole.gspmd").write_text(whole)
    (folder / "split.gspmd").write_text("mesh @m = [d=2]\n" + whole.replace("%x: f32[8]", "%x: f32[8@d]"))
    for file, mesh, told in (("whole", "d=2", True), ("whole", "d=1", False), ("split", "d=2", False)):
        outcome = forked(folder, "run", f"{file}.gspmd", "--random", "0", "--mesh", mesh)
        assert outcome.code == 0 and ("every device computes the whole" in outcome.err) == told, outcome


def test_collectives_explain_and_opt_tell_about_a_program(folder: Path) -> None:
    uses = json.loads(forked(folder, "collectives", "model.py:half", "--json").out)
    assert {use["kind"] for use in uses} == {"all_reduce"}
    assert uses[0]["axes"] == ["data"] and uses[0]["wire_bytes"] == 2 * 0.5 * uses[0]["operand_bytes"]
    assert uses[0]["line"].startswith("model.py:")
    assert "wire bytes per device: " in forked(folder, "collectives", "model.py:half").out
    for name in ("x", "%x"):
        assert "%x is annotated [data, _]" in forked(folder, "explain", "model.py:half", name).out
    text = forked(folder, "opt", "model.py:good", "--until", "propagated").out
    (folder / "propagated.gspmd").write_text(text)
    again = forked(folder, "opt", "propagated.gspmd", "--until", "explicit")
    assert again.code == 0 and "stage=explicit" in again.out
    assert library.load(folder / "propagated.gspmd").program.stage == "propagated"


def test_explain_and_cost_tell_why_and_how_much(folder: Path) -> None:
    listed = forked(folder, "collectives", "model.py:half").out
    assert listed.startswith("#0 all_reduce")
    told = forked(folder, "explain", "model.py:half", "--collective", "0").out
    assert told.startswith("#0 all_reduce over data (2 devices): ") and "each device has only its own part" in told
    changed = forked(folder, "explain", "model.py:half", "--what-if", "%x=[_, _]").out
    assert changed.startswith("if %x is annotated [_, _]\n  wire bytes a device: ") and "(-" in changed
    cost = forked(folder, "cost", "model.py:half").out
    assert "wire bytes a device: " in cost and "peak memory a device: " in cost
    numbers = json.loads(forked(folder, "cost", "model.py:half", "--json").out)
    assert numbers["wire_bytes"] == sum(numbers["kinds"].values()) > 0 < numbers["memory"]["peak"]
    assert "is annotated [data, _]" in forked(folder, "explain", "model.py:half", "%x", "--stage", "optimized").out


def test_what_is_told_goes_by_the_optimisations_left_out(folder: Path) -> None:
    (folder / "shifted.py").write_text(SHIFTED)
    counts: list[int] = []
    for without in ((), ("--without", "merge"), ("--without", "compose,merge")):
        listed = forked(folder, "collectives", "shifted.py:f", *without).out.splitlines()[:-1]
        for i, line in enumerate(listed):
            told = forked(folder, "explain", "shifted.py:f", "--collective", str(i), *without)
            assert told.out.split(" over ")[0] == f"#{i} {line.split()[1]}", (told, line)
        cost = json.loads(forked(folder, "cost", "shifted.py:f", "--json", *without).out)
        assert cost["collectives"] == len(listed)
        exported = forked(folder, "export", "shifted.py:f", "-o", "-", *without).out
        assert exported.count('"stablehlo.collective_') + exported.count('"stablehlo.all_gather') == len(listed)
        counts.append(len(listed))
    assert len(set(counts)) > 1


def test_limits_fail_with_the_cause(folder: Path) -> None:
    for command in (("collectives",), ("cost",), ("compile", "-o", "never.gspmd"), ("run", "--random", "1")):
        outcome = forked(folder, command[0], "model.py:half", *command[1:], "--forbid", "all_reduce,all_gather")
        assert outcome.code == 1 and outcome.out == "", outcome
        assert "gspmd: the program issues 1 forbidden collective" in outcome.err
        assert "#0 all_reduce over data" in outcome.err and "because" in outcome.err
    assert not (folder / "never.gspmd").exists()
    assert "on the wire, 1 B are" in forked(folder, "cost", "model.py:half", "--max-wire-bytes", "1").err
    assert "of memory, 10 B are" in forked(folder, "cost", "model.py:half", "--max-memory", "10").err
    fine = forked(folder, "run", "model.py:half", "--random", "1", "--forbid", "all_to_all", "--max-memory", "1G")
    assert fine.code == 0
