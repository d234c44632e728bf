"""Memos by attributes: what must not be kept is not, what looks equal is told apart."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

import numpy as np

import gspmd
from gspmd.ir.attrs import Attrs, Dense
from gspmd.ir.memo import memo_by_attrs, memoisable


@dataclass(frozen=True, slots=True)
class _Plain(Attrs):
    number: int


@dataclass(frozen=True, slots=True)
class _Real(Attrs):
    number: float


@dataclass(frozen=True, slots=True)
class _Array(Attrs):
    value: Dense | None


def test_which_attributes_are_kept() -> None:
    scalar, line = Dense(np.float32(1)), Dense(np.ones(2, np.float32))
    asked = (Attrs(), _Plain(1), _Real(1.0), _Array(None), _Array(scalar), _Array(line))
    assert [memoisable(attrs) for attrs in asked] == [True, True, False, False, True, False]


def test_zeros_of_both_signs_are_two_questions() -> None:
    asked: list[float] = []

    @memo_by_attrs(maxsize=8)
    def sign(attrs: _Real) -> float:
        asked.append(attrs.number)
        return float(np.copysign(1, attrs.number))

    assert [sign(_Real(0.0)), sign(_Real(-0.0))] == [1.0, -1.0]

    @memo_by_attrs(maxsize=8)
    def twice(attrs: _Plain) -> int:
        asked.append(attrs.number)
        return 2 * attrs.number

    asked.clear()
    assert [twice(_Plain(3)), twice(_Plain(3))] == [6, 6]
    assert asked == [3]


def test_captured_arrays_die_with_their_program() -> None:
    mesh = gspmd.Mesh({"a": 2})
    weights = np.arange(64, dtype=np.float32).reshape(8, 8)
    compiled = gspmd.compile(
        lambda x: gspmd.shard(x, mesh, "a", None) @ weights + 1, gspmd.TensorType("f32", (8, 8)), mesh=mesh
    )
    compiled.check(weights)
    str(compiled.stage("scheduled"))
    held = [
        v
        for program in compiled.stages.programs.values()
        for node in program.body.walk()
        for v in (getattr(node.attrs, f) for f in type(node.attrs).__dataclass_fields__)
        if isinstance(v, Dense) and v.array.size == 64
    ]
    assert held
    watched = [weakref.ref(v.array) for v in held]
    del compiled, held
    gc.collect()
    assert [w for w in watched if w() is not None] == []


def test_dense_hashes_when_asked() -> None:
    for array in (np.float32(-0.0), np.zeros((0, 3)), np.arange(5)[::2], np.array([True, False])):
        one, two = Dense(array), Dense(array)
        assert one == two
        assert hash(one) == hash(two)
    assert Dense(np.float32(0.0)) != Dense(np.float32(-0.0))
    assert Dense(np.zeros(2, np.int32)) != Dense(np.zeros(2, np.float32))
