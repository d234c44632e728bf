"""Our local stages, compiled by XLA and run on one CPU device a partition, beside the program on one device.

python -m tests.interop.partitioned [NAME ...]   every program, and every example of every op under some sharding
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gspmd
from gspmd.driver.pipeline import run_stages
from gspmd.interop.export_stablehlo import export_stablehlo
from gspmd.ir.graph import Program
from gspmd.kernels.closeness import compare
from gspmd.runtime.layout import assemble, distribute
from tests.ops.evaluate import evaluate
from tests.xla.case import summed_terms

Array = NDArray[Any]
CHILD = Path(__file__).with_name("partitioned_child.py")
MOST_DEVICES = 4
SECONDS = 600.0


@dataclass(frozen=True)
class Question:
    """A program, at which stage it is handed over, and its arguments."""

    name: str
    program: Program
    arrays: tuple[Array, ...]
    stage: str = "local"


def by_partition(shards: Sequence[Array], mesh: gspmd.Mesh) -> list[Array]:
    """Shards of logical devices in the order of partitions, which are physical."""
    out: list[Array] = [shards[0]] * mesh.size
    for device, shard in enumerate(shards):
        out[mesh.device(device)] = shard
    return out


def job(question: Question) -> tuple[Program, tuple[str, int, list[list[Array]]]]:
    """The program at the stage, and what the child gets of it; padding holds NaN or as much as fits."""
    local = run_stages(question.program, question.stage).last
    mesh = local.mesh
    assert mesh is not None
    arguments = [
        by_partition(distribute(x, t, range(mesh.size), _padding(x)), mesh)
        for x, t in zip(question.arrays, local.inputs, strict=True)
    ]
    return local, (export_stablehlo(local), mesh.size, arguments)


def _padding(x: Array) -> Any:
    if x.dtype.kind in "biu":
        return x.dtype.type(1) if x.dtype.kind == "b" else np.iinfo(x.dtype).max
    return np.array(np.nan).astype(x.dtype)


def ask(questions: Sequence[Question]) -> Iterator[tuple[Question, str]]:
    """Each question with what is wrong with XLA's answer, "" if nothing is."""
    jobs = [job(q) for q in questions]
    answers = _answers([j for _, j in jobs])
    for question, (local, _), answer in zip(questions, jobs, answers, strict=True):
        yield question, _verdict(question, local, answer)


def _verdict(question: Question, local: Program, answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    mesh = local.mesh
    assert mesh is not None
    terms = summed_terms(question.program.body)
    wanted = evaluate(question.program, *question.arrays)
    for i, (mine, shards, type_) in enumerate(zip(wanted, answer, local.outputs, strict=True)):
        theirs = assemble([shards[mesh.device(d)] for d in range(mesh.size)], type_)
        found = compare(theirs, mine, terms=terms)
        if not found:
            return f"result {i}: {found.message}"
    return ""


def _answers(jobs: Sequence[Any]) -> list[Any]:
    """What the child says of each job; where it dies that is the answer, and another one goes on."""
    known: list[Any] = []
    flags = f"--xla_force_host_platform_device_count={MOST_DEVICES}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        while len(known) < len(jobs):
            given, out = Path(folder) / "jobs", Path(folder) / f"answers{len(known)}"
            given.write_bytes(pickle.dumps(list(jobs[len(known) :])))
            command = [sys.executable, str(CHILD), str(given), str(out)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
            with out.open("rb") as file:
                while file.peek(1):
                    known.append(pickle.load(file))
            if len(known) < len(jobs):
                known.append(f"XLA died: {done.stderr.strip().splitlines()[-1:]}")
    return known


def main(names: Sequence[str]) -> int:
    """Ask about everything; returns 1 if anything is wrong."""
    from tests.interop.partitioned_programs import all_questions

    questions = [q for q in all_questions() if not names or q.name.startswith(tuple(names))]
    wrong = 0
    for question, message in ask(questions):
        wrong += bool(message)
        if message:
            print(f"{question.name:60} {message[:300]}", flush=True)
    print(f"{len(questions)} programs, {wrong} wrong")
    return 1 if wrong or not questions else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
