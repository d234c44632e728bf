"""Random bits are XLA's, and a block of them is that part of the whole."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Program
from gspmd.kernels.random import philox4x32, random_block, threefry2x32
from gspmd.ops.literal import scalar
from gspmd.ops.random import draw
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.xla.one_device import run_text

STATES = {
    "small": np.array([5, 6], np.uint64),
    "carries": np.array([2**64 - 3, 2**64 - 2], np.uint64),
    "long": np.array([5, 2**64 - 2, 7], np.uint64),
}
SHAPES = ((3, 4), (5, 7), (2, 3, 4), (8, 1, 3), ())


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX", "DEFAULT"])
@pytest.mark.parametrize("state", STATES)
def test_bits_are_xlas(algorithm: str, state: str) -> None:
    initial = STATES[state]
    if algorithm == "THREE_FRY" and len(initial) == 3:
        return
    cases = list(itertools.product(SHAPES, ("ui8", "ui32", "ui64")))
    s = f"tensor<{len(initial)}xui64>"
    types = ["x".join([*map(str, shape), dtype]) for shape, dtype in cases]
    body = [
        f'%{i}:2 = "stablehlo.rng_bit_generator"(%x) {{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}} : '
        f"({s}) -> ({s}, tensor<{t}>)"
        for i, t in enumerate(types)
    ]
    returned = ", ".join(f"%{i}#0, %{i}#1" for i in range(len(types)))
    given = ", ".join(f"{s}, tensor<{t}>" for t in types)
    text = f"func.func public @main(%x: {s}) -> ({given}) {{ {' '.join(body)} return {returned} : {given} }}"
    theirs = run_text(text, [initial])
    for i, (shape, dtype) in enumerate(cases):
        form = f"shape={list(shape)} dtype={dtype.replace('ui', 'u')} algorithm={algorithm}"
        example = f"rng_bit_generator(u64[{len(initial)}]) {form}"
        mine = evaluate(parse(example), initial)
        assert (mine[0] == theirs[2 * i]).all(), example
        assert mine[1].shape == shape and (mine[1] == theirs[2 * i + 1]).all(), example


@pytest.mark.parametrize("philox", [False, True])
@pytest.mark.parametrize("dtype", ["u2", "u4", "u8"])
def test_a_block_is_that_part_of_the_whole(philox: bool, dtype: str) -> None:
    state, shape = STATES["carries"], (5, 6, 7)
    whole = random_block(philox, np.dtype(dtype), state, shape, (0, 0, 0), shape)
    for starts in itertools.product((0, 1, 3), (0, 2, 5), (0, 1, 4)):
        sizes = [min(n - s, 3) for n, s in zip(shape, starts, strict=True)]
        after, block = random_block(philox, np.dtype(dtype), state, shape, starts, sizes)
        part = tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))
        assert (after == whole[0]).all() and (block == whole[1][part]).all()
    row = random_block(philox, np.dtype(dtype), state, shape, (2, 0, 0), (2, 6, 7))[1]
    assert (row == whole[1][2:4]).all()


def words(text: str) -> list[Any]:
    return [np.array([int(w, 16)], np.uint32) for w in text.split()]


def test_the_generators_are_those_of_their_paper() -> None:
    """Known answers of the Random123 library."""
    pi = words("243f6a88 85a308d3 13198a2e 03707344")
    key = (np.uint32(0xA4093822), np.uint32(0x299F31D0))
    assert [int(w[0]) for w in philox4x32(key, pi)] == [int(w[0]) for w in words("d16cfe09 94fdcceb 5001e420 24126ea1")]
    found = threefry2x32(*words("13198a2e 03707344"), *pi[:2])
    assert [int(w[0]) for w in found] == [int(w[0]) for w in words("c4923a9c 483df7a0")]


def test_keys_may_be_arrays() -> None:
    rng = np.random.default_rng(0)
    k0, k1, x0, x1 = (rng.integers(0, 2**32, (4, 5000), np.uint32) for _ in range(4))
    y0, y1 = threefry2x32(k0, k1, x0, x1)
    for at in ((0, 0), (3, 4999), (2, 1234)):
        one = threefry2x32(*(np.asarray(a[at]) for a in (k0, k1, x0, x1)))
        assert (y0[at], y1[at]) == (one[0][()], one[1][()])


@pytest.mark.parametrize(
    ("dtype", "distribution", "low", "high", "mean", "deviation"),
    [
        ("f32", "UNIFORM", -1.0, 3.0, 1.0, 4 / 12**0.5),
        ("f64", "NORMAL", 2.0, 0.5, 2.0, 0.5),
        ("f32", "NORMAL", 0.0, 1.0, 0.0, 1.0),
        ("i32", "UNIFORM", -10, 11, 0.0, 6.055),
    ],
)
def test_rng_draws_from_its_distribution(
    dtype: str, distribution: str, low: float, high: float, mean: float, deviation: float
) -> None:
    def sample(seed: int) -> Any:
        b = Builder()
        drawn = draw(b, scalar(b, low, dtype), scalar(b, high, dtype), (100, 200), distribution, seed)
        return evaluate(Program.of("rng", b.region([drawn]), None))[0].astype(np.float64)

    first, again, other = sample(1), sample(1), sample(2)
    assert (first == again).all() and not (first == other).all()
    assert abs(first.mean() - mean) < 5 * deviation / 141
    assert abs(first.std() / deviation - 1) < 0.03
    if distribution == "UNIFORM":
        assert first.min() >= low and first.max() < high


BROKEN = {
    "rng_bit_generator.C1": "rng_bit_generator(u64[2]) shape=[4] dtype=u32 algorithm=MERSENNE",
    "rng_bit_generator.C2": "rng_bit_generator(u64[3]) shape=[4] dtype=u32 algorithm=THREE_FRY",
    "rng_bit_generator.C3": "rng_bit_generator(u64[2]) shape=[4] dtype=f32",
    "random_block.C4": "random_block(u64[2], i32[]) shape=[8] sizes=[2, 2] dtype=u32",
    "random_block.C5": "random_block(u64[2], f32[]) shape=[8] sizes=[2] dtype=u32",
    "threefry2x32.C1": "threefry2x32(u32[], u32[], i32[4], u32[4])",
    "threefry2x32.C2": "threefry2x32(u32[], u32[], u32[4], u32[5])",
    "threefry2x32.C3": "threefry2x32(u32[2], u32[], u32[4], u32[4])",
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_constraint(constraint: str) -> None:
    with pytest.raises(GspmdError) as raised:
        parse(BROKEN[constraint])
    assert constraint in str(raised.value)
