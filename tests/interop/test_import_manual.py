"""Per-device code from outside: JAX's shard_map, programs for several replicas, and what is refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import gspmd
from gspmd.ir.errors import GspmdError
from gspmd.kernels.closeness import compare
from tests.interop.manual_text import ADD, CHANNEL, GLOBAL, LOOSE, PART, Array, X, dense, in_groups, text

ROOT = Path(__file__).parents[2]
SECONDS = 300.0


# -- what JAX lowers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lowering", ["shardy", "gspmd"])
def test_shard_map_of_jax(lowering: str, tmp_path: Path) -> None:
    """What JAX computes on eight devices is what every stage computes of what JAX lowers."""
    out = tmp_path / "found"
    flags = "--xla_force_host_platform_device_count=8"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "tests.interop.manual_child", str(out), lowering]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = pickle.loads(out.read_bytes())
    wrong = {name: message for name, job in found.items() if (message := _wrong(*job))}
    assert not wrong and len(found) >= 20, wrong


def _wrong(text: str, arguments: Any, wanted: Sequence[Array]) -> str:
    """What is wrong with our run of one program; "" if nothing is."""
    arrays = jax.tree.leaves(arguments)
    try:
        module = gspmd.from_stablehlo(text)
        results = module.run(*arrays)
        for mine, theirs in zip(results if isinstance(results, tuple) else (results,), wanted, strict=True):
            outcome = compare(np.asarray(mine), theirs, terms=64)
            if not outcome:
                return outcome.message
        gspmd.compile(module).check(*arrays)
    except GspmdError as error:
        return str(error)
    return ""


# -- replicas ---------------------------------------------------------------------------------------------------------


def replicated(body: str, result: str, count: int = 4) -> str:
    return f"""module attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {count} : i32}} {{
func.func @main(%p: tensor<2x4xf32>, %n: tensor<f32>) -> {result} {{
  {body}
  return %y : {result}
}}
}}
"""


SMALL = "tensor<2x4xf32>"
PLAIN: list[tuple[str, str, list[list[int]], Callable[[list[Array], int], Array]]] = [
    (
        f'%y = "stablehlo.all_reduce"(%p) {ADD} {{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}} '
        f": ({SMALL}) -> {SMALL}",
        SMALL,
        [[0, 2], [1, 3]],
        lambda xs, i: np.add.reduce(xs),
    ),
    (
        f'%y = "stablehlo.all_reduce"(%p) {ADD} {{replica_groups = dense<> : tensor<0x0xi64>}} : ({SMALL}) -> {SMALL}',
        SMALL,
        [[0, 1, 2, 3]],
        lambda xs, i: np.add.reduce(xs),
    ),
    (
        '%y = "stablehlo.all_gather"(%p) {all_gather_dim = 1 : i64, replica_groups = dense<[[3, 0, 1, 2]]> '
        f": tensor<1x4xi64>}} : ({SMALL}) -> tensor<2x16xf32>",
        "tensor<2x16xf32>",
        [[3, 0, 1, 2]],
        lambda xs, i: np.concatenate(xs, 1),
    ),
    (
        f'%y = "stablehlo.cross-replica-sum"(%p) {{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}} '
        f": ({SMALL}) -> {SMALL}",
        SMALL,
        [[0, 1], [2, 3]],
        lambda xs, i: np.add.reduce(xs),
    ),
    (
        '%y = "stablehlo.all_to_all"(%p) {split_dimension = 1 : i64, concat_dimension = 0 : i64, '
        "split_count = 4 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} "
        f": ({SMALL}) -> tensor<8x1xf32>",
        "tensor<8x1xf32>",
        [[0, 1, 2, 3]],
        lambda xs, i: np.concatenate([np.split(x, 4, 1)[i] for x in xs]),
    ),
    (
        f"""%i = "stablehlo.replica_id"() : () -> tensor<ui32>
      %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
      %g = stablehlo.multiply %f, %n : tensor<f32>
      %b = stablehlo.broadcast_in_dim %g, dims = [] : (tensor<f32>) -> {SMALL}
      %y = stablehlo.add %p, %b : {SMALL}""",
        SMALL,
        [[0, 1, 2, 3]],
        lambda xs, i: xs[i] + np.float32(i * (i + 1)),
    ),
]


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_replicas(number: int) -> None:
    """Each replica's arguments and results are stacked along a new first dimension, as pmap has them."""
    body, result, groups, function = PLAIN[number]
    module = gspmd.from_stablehlo(replicated(body, result))
    x, n = X[:4, :8].reshape(4, 2, 4), np.arange(1, 5, dtype=np.float32)
    gspmd.compile(module).check(x, n)
    wanted = in_groups(groups, function, dict(enumerate(x)))
    assert np.array_equal(np.asarray(module.run(x, n)), np.stack([wanted[d] for d in range(4)]))


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_one_replica_has_nobody_to_talk_to(number: int) -> None:
    body, result, _, function = PLAIN[number]
    if result != SMALL:
        return
    for groups in ("dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"):
        body = body.replace(groups, "dense<0> : tensor<1x1xi64>")
    module = gspmd.from_stablehlo(replicated(body, result, 1))
    assert np.array_equal(np.asarray(module.run(X[:2, :4], np.float32(1))), function([X[:2, :4]], 0))


# -- refusals ---------------------------------------------------------------------------------------------------------

REDUCE_ALL = f'%y = "stablehlo.all_reduce"(%x) {ADD} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {GLOBAL}}}'
REFUSED = {
    "among partitions of whole arrays": (
        f"""module attributes {{mhlo.num_partitions = 2 : i32}} {{
func.func @main(%x: {PART}) -> {PART} {{
  {REDUCE_ALL} : ({PART}) -> {PART}
  return %y : {PART}
}}
}}""",
        "all_reduce among the partitions of a program on whole arrays",
    ),
    "a number of whole arrays": (
        """module attributes {mhlo.num_partitions = 2 : i32} {
func.func @main() -> tensor<ui32> {
  %0 = "stablehlo.partition_id"() : () -> tensor<ui32>
  return %0 : tensor<ui32>
}
}""",
        "partition_id in a program on whole arrays",
    ),
    "groups of different sizes": (
        text(
            f'%y = "stablehlo.all_reduce"(%p) {ADD} {{replica_groups = '
            f"dense<[[0, 1, 2, 3, 4], [5, 6, 7, -1, -1]]> : tensor<2x5xi64>, {GLOBAL}}} : ({PART}) -> {PART}"
        ),
        "all_reduce in groups of different sizes",
    ),
    "groups that leave devices out": (
        text(
            f'%y = "stablehlo.all_reduce"(%p) {ADD} {{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, '
            f"{GLOBAL}}} : ({PART}) -> {PART}"
        ),
        "all_reduce in groups that leave devices out",
    ),
    "devices that are not there": (
        text(
            f'%y = "stablehlo.all_reduce"(%p) {ADD} {{replica_groups = {dense([list(range(16))])}, '
            f"{GLOBAL}}} : ({PART}) -> {PART}"
        ),
        "all_reduce names device 8 of 8",
    ),
    "pairs that are not there": (
        text(
            '%y = "stablehlo.collective_permute"(%p) {source_target_pairs = dense<[[0, 9]]> : tensor<1x2xi64>, '
            f"{CHANNEL}}} : ({PART}) -> {PART}"
        ),
        "collective_permute names device 9 of 8",
    ),
    "uneven parts": (
        text("%y = stablehlo.negate %p : tensor<4x3xf32>", "tensor<4x3xf32>", whole=(8, 12)).replace(
            "x12xf32>", "x13xf32>"
        ),
        "dimension size 13 is not divisible by the manual axes size 4",
    ),
    "replicas of partitions": (
        f"""module attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32}} {{
func.func @main(%x: {PART}) -> {PART} {{
  return %x : {PART}
}}
}}""",
        "2 replicas of 2 partitions each",
    ),
    "all devices where some axes are free": (
        text(f'%y = "stablehlo.all_reduce"(%p) {ADD} {{{LOOSE["a channel, no groups"][0]}}} : ({PART}) -> {PART}')
        .replace('manual_axes={"a", "b"}', 'manual_axes={"a"}')
        .replace('[{"a"}, {"b"}]', '[{"a"}, {}]')
        .replace("tensor<8x16xf32>", "tensor<8x4xf32>"),
        "works along the mesh axis b, which is not manual here",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    module, message = REFUSED[name]
    with pytest.raises(GspmdError, match=message) as caught:
        gspmd.from_stablehlo(module)
    assert caught.value.loc is not None or "replicas" in message
    assert str(caught.value).count("\n") <= 3
