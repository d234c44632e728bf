"""Per-device code as users and tools see it: stages, what is exchanged, why values are split, the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import gspmd
import gspmd.numpy as gnp
from gspmd import PartitionSpec as P
from gspmd.ir.graph import LOCAL_STAGES
from tests.cli.command import forked
from tests.cli.command import gspmd as command
from tests.frontend.hand import random

MESH = gspmd.Mesh({"a": 2, "b": 2})
X, W = gspmd.TensorType("f32", (8, 12)), gspmd.TensorType("f32", (12, 6))


def layer(x: Any, w: Any) -> Any:
    """Over a by hand; over b by one annotation, which reaches the weights outside."""

    def body(p: Any, w: Any) -> Any:
        hidden = gspmd.shard(gnp.tanh(p @ w), MESH, None, "b")
        return gspmd.all_reduce(hidden, "a"), gspmd.all_gather(hidden, "a")

    return gspmd.shard_map(body, MESH, (P("a"), P()), (P(), P()), axes="a")(gnp.sin(x), w)


def test_free_axes_go_through() -> None:
    """Annotations inside reach outside, and the other way round: the compiler exchanges nothing at the border."""
    compiled = gspmd.compile(layer, X, W)
    shardings = {name: s.text() for name, s in compiled.shardings().items()}
    assert shardings["x"] == "[a, _]" and shardings["w"].startswith("[_, b]")
    assert [(use.kind, use.axes) for use in compiled.collectives()] == [("all_reduce", ("a",)), ("all_gather", ("a",))]
    outer = gspmd.compile(lambda x, w: layer(x, gspmd.shard(w, MESH, None, "b")), X, W)
    assert outer.stage("propagated").text().count("f32[12, 6@b]") >= 2


def test_the_users_collectives_are_counted() -> None:
    """Bytes of one execution a device, by the formulas; those in a loop as often as it runs."""
    mesh = gspmd.Mesh({"a": 4, "b": 2})

    def body(x: Any) -> Any:  # f32[4, 8], 128 bytes
        gathered = gspmd.all_gather(x, "a")  # 512 bytes
        total = gspmd.all_reduce(gathered, ("a", "b"))
        part = gspmd.reduce_scatter(total * 2.0, "a", 1, "max")  # 512 -> 128 bytes
        turned = gspmd.all_to_all(part, "b", 0, 1)
        ring = [(k, (k + 1) % 4) for k in range(4)]
        return gspmd.fori_loop(0, 3, lambda _, c: gspmd.collective_permute(c, "a", ring) * 2.0, turned)

    compiled = gspmd.compile(gspmd.shard_map(body, mesh, P("a", "b"), P("b", "a")), gspmd.TensorType("f32", (16, 16)))
    found = [(u.kind, u.axes, u.group_size, u.wire_bytes, u.count) for u in compiled.collectives()]
    assert found == [
        ("all_gather", ("a",), 4, 3 / 4 * 512, 1),
        ("all_reduce", ("a", "b"), 8, 2 * 7 / 8 * 512, 1),
        ("reduce_scatter", ("a",), 4, 3 / 4 * 512, 1),
        ("all_to_all", ("b",), 2, 1 / 2 * 128, 1),
        ("collective_permute", ("a",), 4, 128, 3),
    ]


def test_why() -> None:
    compiled = gspmd.compile(layer, X, W)
    part = re.search(r"\(%(\w+): f32\[4, 12\]!\(a\)", compiled.stage("propagated").text())
    assert part is not None
    told = str(compiled.explain(part[1]))
    assert "per-device code" in told and "along a" in told, told
    weights = str(compiled.explain("w"))
    assert "manual_computation" in weights and "annotated [_, b]!(a)" in weights, weights


def test_stages_read_back_and_run(tmp_path: Path) -> None:
    """Each stage as a file: on ranks where it is local, in one process before; with `--check` all the rest of it."""
    x, w = random("f32", *X.shape), random("f32", *W.shape)
    np.savez(tmp_path / "in.npz", x, w)
    compiled = gspmd.compile(layer, X, W)
    expected = [np.asarray(v) for v in compiled.module.run(x, w)]
    for name, program in compiled.stages.programs.items():
        (tmp_path / f"{name}.gspmd").write_text(compiled.stage(name).text())
        again = gspmd.load(tmp_path / f"{name}.gspmd")
        assert again.text() == compiled.stage(name).text()
        for mine, theirs in zip(again.run(x, w), expected, strict=True):
            assert np.array_equal(np.asarray(mine), theirs), name
        assert ("manual_computation" in again.text()) == (program.stage not in LOCAL_STAGES)
    for name in ("annotated", "explicit", "scheduled"):
        done = command(tmp_path, "run", f"{name}.gspmd", "--ranks", "4", "--inputs", "in.npz", "--outputs", "out.npz")
        assert done.code == 0, done.err
        with np.load(tmp_path / "out.npz") as out:
            for mine, theirs in zip(out.values(), expected, strict=True):
                assert np.array_equal(mine, theirs), name
    done = command(tmp_path, "run", "annotated.gspmd", "--ranks", "4", "--random", "1", "--check")
    assert done.code == 0 and "compared 2 arrays" in done.out + done.err
    opt = forked(tmp_path, "opt", "annotated.gspmd", "--until", "explicit")
    assert opt.code == 0 and "manual_computation" in opt.out and "stage=explicit" in opt.out
