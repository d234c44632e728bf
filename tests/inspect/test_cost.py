"""Costs: what can be counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd import TensorType
from gspmd.inspect.cost import MachineModel, cost_of
from gspmd.inspect.units import bytes_text, change_text, parse_bytes
from gspmd.ir.errors import UsageError
from tests.inspect.programs import ALL, MESH, Function, compiled

M, K, N = 32, 16, 64


def product(x: Any, w: Any) -> Any:
    return gspmd.shard(x, MESH, "data", None) @ gspmd.shard(w, MESH, None, "model")


def repeated(x: Any, w: Any) -> Any:
    return gspmd.fori_loop(0, 5, lambda i, c: gnp.tanh(c @ w), gspmd.shard(x, MESH, "data", None))


def test_a_matrix_product() -> None:
    cost = gspmd.compile(product, TensorType("f32", (M, K)), TensorType("f32", (K, N))).cost()
    assert cost.flops == 2 * M * K * N / 4
    assert cost.memory_bytes == 4 * (M * K / 2 + K * N / 2 + M * N / 4)
    assert cost.wire_bytes == 0 and cost.collectives == 0 and cost.kinds == {}


def test_loops_count_their_trips() -> None:
    c = gspmd.compile(repeated, TensorType("f32", (M, K)), TensorType("f32", (K, K)), mesh=MESH)
    assert c.cost().flops == pytest.approx(5 * (2 * M * K * K + M * K) / 2, rel=1e-3)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_wire_bytes_are_those_of_the_collectives(function: Function) -> None:
    c = compiled(function)
    cost, uses = c.cost(), c.collectives()
    assert cost.wire_bytes == sum(use.wire_bytes * use.count for use in uses) == sum(cost.kinds.values())
    assert cost.collectives == sum(use.count for use in uses)
    slow = c.cost(MachineModel(wire=1.0))
    assert slow.seconds == pytest.approx(cost.wire_bytes, rel=0.01, abs=0.1)
    assert f"wire bytes a device: {bytes_text(cost.wire_bytes)}" in cost.text()


def test_whole_tensors_have_no_cost() -> None:
    with pytest.raises(UsageError, match="per-device"):
        cost_of(compiled(ALL[0]).stage("explicit").program)


def test_bytes_are_read_and_written() -> None:
    assert parse_bytes("64M") == 64 << 20 and parse_bytes("1.5g") == 3 << 29 and parse_bytes("12") == parse_bytes(12)
    assert parse_bytes("2 KiB") == 2048 and parse_bytes("0") == 0
    for wrong in ("M", "-1", "1X", "", True, -3):
        with pytest.raises(UsageError, match="number of bytes"):
            parse_bytes(wrong)
    assert [bytes_text(n) for n in (0, 1536, 24576, -24576, 3 << 29)] == [
        "0 B",
        "1536 B",
        "24.0 KiB",
        "-24.0 KiB",
        "1.5 GiB",
    ]
    assert change_text(2048, 1024) == "2048 B -> 1024 B (-1024 B)" and change_text(5, 5) == "5 B, as before"
