"""Batch normalisation against its definition and XLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gspmd.ir.errors import GspmdError, TypeRuleError
from gspmd.kernels.closeness import compare
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.ops.test_gradients import pullback
from tests.xla.one_device import run_text

SHAPE, FEATURE, EPSILON = (3, 4, 5), 1, 0.25


def values(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [(np.abs(rng.standard_normal(s)) + 0.5).astype("f4") for s in shapes]


def close(actual: Any, expected: Any) -> None:
    verdict = compare(actual, expected, np.full(np.shape(expected), np.abs(expected).max()), 60)
    assert verdict.ok, verdict.message


def mine(op: str, *arrays: Any) -> list[Any]:
    types = ", ".join(f"f32{list(a.shape)}" for a in arrays)
    return evaluate(parse(f"{op}({types}) epsilon={EPSILON} feature={FEATURE}"), *arrays)


def xlas(op: str, count: int, *arrays: Any) -> list[Any]:
    types = [f"tensor<{'x'.join(map(str, a.shape))}xf32>" for a in arrays]
    outs = [types[0], types[1], types[1]][:count]
    params = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    names = ", ".join(f"%a{i}" for i in range(len(types)))
    got = ", ".join(f"%r#{i}" for i in range(count)) if count > 1 else "%r"
    left = f"%r:{count}" if count > 1 else "%r"
    text = f"""func.func public @main({params}) -> ({", ".join(outs)}) {{
      {left} = "stablehlo.{op}"({names}) {{epsilon = {EPSILON} : f32, feature_index = {FEATURE} : i64}} :
        ({", ".join(types)}) -> ({", ".join(outs)})
      return {got} : {", ".join(outs)} }}"""
    return run_text(text, arrays)


@pytest.mark.parametrize(
    ("op", "vectors", "wide", "count"),
    [("batch_norm_training", 2, 0, 3), ("batch_norm_inference", 4, 0, 1), ("batch_norm_grad", 3, 1, 3)],
)
def test_results_are_xlas(op: str, vectors: int, wide: int, count: int) -> None:
    arrays = values(SHAPE, *[(4,)] * vectors, *[SHAPE] * wide)
    for a, b in zip(mine(op, *arrays), xlas(op, count, *arrays), strict=True):
        close(a, b)


def test_the_mean_is_exact_far_from_zero() -> None:
    """Squares of centred values, not a difference of large squares."""
    x, scale, offset = values(SHAPE, (4,), (4,))
    out, mean, variance = mine("batch_norm_training", x + 4096, scale, offset)
    wide = (x + 4096).astype("f8")
    close(mean, wide.mean((0, 2)).astype("f4"))
    close(variance, wide.var((0, 2)).astype("f4"))
    assert np.isfinite(out).all()


def test_batch_norm_grad_is_the_gradient_of_training() -> None:
    x, scale, offset, ct = values(SHAPE, (4,), (4,), SHAPE)
    example = f"batch_norm_training(f32{list(SHAPE)}, f32[4], f32[4]) epsilon={EPSILON} feature={FEATURE}"
    backward = pullback(parse(example))
    assert backward is not None
    _, mean, variance = mine("batch_norm_training", x, scale, offset)
    none = np.zeros(4, "f4")
    found = evaluate(backward, x, scale, offset, ct, none, none)
    for a, b in zip(found, mine("batch_norm_grad", x, scale, mean, variance, ct), strict=True):
        close(a, b)


def test_a_gradient_of_the_gradient_says_so() -> None:
    with pytest.raises(TypeRuleError, match=r"batch_norm_grad\.D1"):
        pullback(parse("batch_norm_grad(f32[3, 4], f32[4], f32[4], f32[4], f32[3, 4]) epsilon=0.1 feature=1"))


BROKEN = {
    "batch_norm_training.C1": "batch_norm_training(i32[3, 4], i32[4], i32[4]) epsilon=0.1 feature=1",
    "batch_norm_training.C2": "batch_norm_training(f32[3, 4], f32[4], f32[4]) epsilon=0.1 feature=2",
    "batch_norm_inference.C3": "batch_norm_inference(f32[3, 4], f32[4], f32[4], f32[4], f32[3]) epsilon=0.1 feature=1",
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_constraint(constraint: str) -> None:
    with pytest.raises(GspmdError) as raised:
        parse(BROKEN[constraint])
    assert constraint in str(raised.value)
