"""Chains of movements: merged into one where that is the same, left alone where it is not."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gspmd.driver.pipeline import Stages, run_stages
from gspmd.inspect.collectives import collectives_of
from gspmd.ir.parser import parse_program
from gspmd.ops import OPS
from gspmd.runtime.executor import Executor
from gspmd.runtime.world import lockstep


def stages(body: str, size: int, out: int, devices: int = 4, out_axes: str = "x") -> Stages:
    """The stages of a program on a vector that is split over all devices."""
    text = f"""
        mesh @mesh = [x={devices}]
        func @f(%x: f32[{size}@x]) -> (f32[{out}@{out_axes}]) stage=annotated {{
          {body}
          %out = sharding_constraint(%r) sharding=[{out_axes}] : f32[{out}@{out_axes}]
          return %out
        }}"""
    return run_stages(parse_program(text, OPS), "optimized")


def check(found: Stages, size: int) -> None:
    """Partitioned, with NaN in padding cells, the program gives the bits that it gives on one device."""
    x = np.arange(1, size + 1, dtype=np.float32)
    (expected,) = Executor(found.programs["annotated"]).run_whole([x])
    last = found.last
    assert last.mesh is not None
    (actual,) = Executor(last, lockstep(last.mesh)).run_whole([x], np.nan)
    assert actual.tobytes() == expected.tobytes()


def names(found: Stages, stage: str) -> list[str]:
    return [node.op.name for node in found.programs[stage].body.nodes]


PADDED = """
    %z = constant() value=dense<0.0 : f32[]> : f32[]
    %w = pad(%x, %z) low=[2] high=[2] interior=[0] : f32[20]
    """


def test_a_slice_of_a_padded_tensor_is_one_window() -> None:
    found = stages(PADDED + "%r = slice(%w) start=[1] limit=[17] stride=[1] : f32[16]", 16, 16)
    assert names(found, "explicit").count("pad") == 1
    assert "slice" not in names(found, "explicit")
    assert [use.wire_bytes for use in collectives_of(found.last)] == [4.0]
    check(found, 16)


def test_a_window_that_is_all_tensor_needs_no_fill() -> None:
    found = stages(PADDED + "%r = slice(%w) start=[3] limit=[15] stride=[1] : f32[12]", 16, 12)
    assert "pad" not in names(found, "explicit")
    check(found, 16)


def test_different_fills_do_not_merge() -> None:
    body = (
        PADDED
        + "%o = constant() value=dense<1.0 : f32[]> : f32[]\n%r = pad(%w, %o) low=[1] high=[0] interior=[0] : f32[21]"
    )
    found = stages(body, 16, 21)
    assert names(found, "explicit").count("pad") == 2
    check(found, 16)


def test_a_cut_that_is_filled_again_is_not_undone() -> None:
    body = """
        %z = constant() value=dense<0.0 : f32[]> : f32[]
        %w = slice(%x) start=[2] limit=[14] stride=[1] : f32[12]
        %r = pad(%w, %z) low=[2] high=[2] interior=[0] : f32[16]"""
    found = stages(body, 16, 16)
    check(found, 16)


@pytest.mark.parametrize("size", [16, 18, 33])
@pytest.mark.parametrize("by", [1, 3, 7])
@pytest.mark.parametrize("devices", [2, 4, 5])
def test_a_rotation_keeps_its_layout(size: int, by: int, devices: int) -> None:
    body = f"""
        %a = slice(%x) start=[{size - by}] limit=[{size}] stride=[1] : f32[{by}]
        %b = slice(%x) start=[0] limit=[{size - by}] stride=[1] : f32[{size - by}]
        %r = concatenate(%a, %b) dimension=0 : f32[{size}]"""
    found = stages(body, size, size, devices)
    assert "concatenate" not in names(found, "explicit")
    check(found, size)


def test_a_rotation_of_even_shards_is_one_permute() -> None:
    body = """
        %a = slice(%x) start=[15] limit=[16] stride=[1] : f32[1]
        %b = slice(%x) start=[0] limit=[15] stride=[1] : f32[15]
        %r = concatenate(%a, %b) dimension=0 : f32[16]"""
    found = stages(body, 16, 16)
    assert [(use.kind, use.wire_bytes) for use in collectives_of(found.last)] == [("collective_permute", 4.0)]


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_keep_their_values(seed: int) -> None:
    rng = random.Random(seed)
    size = n = rng.randrange(7, 40)
    lines, last, held = ["%z = constant() value=dense<0.0 : f32[]> : f32[]"], "%x", n
    for i in range(rng.randrange(2, 5)):
        kind = rng.choice(["slice", "pad", "both", "reverse"])
        if kind == "slice":
            start = rng.randrange(0, max(held // 3, 1))
            limit = rng.randrange(start + 1, held + 1)
            lines.append(f"%v{i} = slice({last}) start=[{start}] limit=[{limit}] stride=[1] : f32[{limit - start}]")
            held = limit - start
        elif kind == "pad":
            low, high = rng.randrange(-held // 4, 6), rng.randrange(-held // 4, 6)
            if held + low + high < 1:
                low = high = 1
            held += low + high
            lines.append(f"%v{i} = pad({last}, %z) low=[{low}] high=[{high}] interior=[0] : f32[{held}]")
        elif kind == "both":
            lines.append(f"%v{i} = concatenate({last}, {last}) dimension=0 : f32[{2 * held}]")
            held *= 2
        else:
            lines.append(f"%v{i} = reverse({last}) dims=[0] : f32[{held}]")
        last = f"%v{i}"
    lines.append(f"%r = negate({last}) : f32[{held}]")
    found = stages("\n".join(lines), size, held, rng.choice([2, 3, 4]))
    check(found, size)
