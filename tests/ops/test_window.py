"""Windows with random attributes: element by element as the specification says, and as JAX where it has the op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gspmd.ir.attrs import Groups, Window, WindowDim
from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError, TypeRuleError
from gspmd.ir.graph import Program
from gspmd.ir.types import TensorType
from gspmd.kernels.closeness import compare
from gspmd.kernels.window import padded_size, window_count
from gspmd.ops.window import CONVOLUTION, CUMULATIVE_REDUCE, REDUCE_WINDOW, SELECT_AND_SCATTER
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.ops.test_gradients import jax_gradient, ours, pullback

Array = NDArray[Any]
Rng = np.random.Generator
COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
}


def side(rng: Rng, n: int, *, dilated: bool = True, reversible: bool = False, taps: int = 4) -> WindowDim:
    """A window over n elements."""
    while True:
        size, stride, base, spread = (int(rng.integers(1, m + 1)) for m in (taps, 3, 3 if dilated else 1, 3))
        low, high = (int(k) for k in rng.integers(-2, 5, 2))
        found = WindowDim(size, stride, base, spread, low, high, reversible and bool(rng.integers(2)))
        if padded_size(n, found) >= 0:
            return found


def taps(index: Sequence[int], window: Window, shape: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """For each tap of the window at a place: its index in the window, and the element there (None: padding, a hole)."""
    for tap in product(*(range(s.size) for s in window)):
        place: list[int] | None = []
        for o, k, s, n in zip(index, tap, window, shape, strict=True):
            reach = (s.size - 1 - k if s.reversed else k) * s.window_dilation
            p, rest = divmod(o * s.stride + reach - s.low, s.base_dilation)
            place = None if rest or not 0 <= p < n or place is None else [*place, p]
        yield tap, None if place is None else tuple(place)


def places(window: Window, shape: Sequence[int]) -> list[int]:
    """How many windows there are."""
    return [window_count(n, s) for n, s in zip(shape, window, strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        rank = int(rng.integers(0, 3))
        space = [int(n) for n in rng.integers(1, 8, rank)]
        window = Window(side(rng, n, reversible=True, taps=3) for n in space)
        which, groups = int(rng.integers(3)), int(rng.integers(1, 4))
        features, batches = groups if which == 1 else 1, groups if which == 2 else 1
        n, i, o = (int(m) for m in rng.integers(1, 4, 3))
        x = rng.integers(-4, 5, [n * batches, i * features, *space])
        w = rng.integers(-4, 5, [o * features * batches, i, *(s.size for s in window)])
        expected = np.zeros([n, len(w), *places(window, space)], np.int64)
        for at in np.ndindex(*expected.shape):
            g = at[1] // o
            row = at[0] + (g * n if batches > 1 else 0)
            part = x[row, (g * i if features > 1 else 0) :][:i]
            expected[at] = sum(
                part[(slice(None), *p)] @ w[(at[1], slice(None), *k)]
                for k, p in taps(at[2:], window, space)
                if p is not None
            )
        orders = [[int(d) for d in rng.permutation(rank + 2)] for _ in range(3)]
        b = Builder()
        turned = [a.transpose(np.argsort(order)) for a, order in zip((x, w), orders, strict=False)]
        specs = [tuple(order) for order in orders]
        values = [b.param(TensorType("i64", a.shape)) for a in turned]
        y = CONVOLUTION(
            b,
            *values,
            window=window,
            lhs_spec=specs[0],
            rhs_spec=specs[1],
            out_spec=specs[2],
            feature_group_count=Groups(features),
            batch_group_count=Groups(batches),
        )
        (found,) = evaluate(Program.of("f", b.region([y]), None), *turned)
        assert compare(found.transpose(specs[2]), expected, exact=True), window


@pytest.mark.parametrize("seed", range(30))
def test_reduce_window(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for monoid, combine in COMBINE.items():
        shape = [int(n) for n in rng.integers(0, 10, int(rng.integers(1, 3)))]
        window = Window(side(rng, n, taps=12 if rng.integers(3) == 0 else 4) for n in shape)
        x = rng.integers(-2, 3, shape)
        neutral = {"add": 0, "mul": 1, "max": np.iinfo(np.int64).min, "min": np.iinfo(np.int64).max}[monoid]
        expected = np.full(places(window, shape), neutral)
        for at in np.ndindex(*expected.shape):
            for _, p in taps(at, window, shape):
                if p is not None:
                    expected[at] = combine(expected[at], x[p])
        b = Builder()
        y = REDUCE_WINDOW(b, b.param(TensorType("i64", shape)), window=window, monoid=monoid)
        (found,) = evaluate(Program.of("f", b.region([y]), None), x)
        assert compare(found, expected, exact=True), (monoid, window)


@pytest.mark.parametrize("seed", range(30))
def test_select_and_scatter(seed: int) -> None:
    """Padding is never selected; of equal elements GE takes the first, GT the last."""
    rng = np.random.default_rng(seed)
    for select in ("GE", "GT", "LE", "LT"):
        shape = [int(n) for n in rng.integers(1, 9, int(rng.integers(1, 3)))]
        window = Window(side(rng, n, dilated=False) for n in shape)
        x = rng.integers(-2, 3, shape).astype(np.float32)
        x[x == 2] = -np.inf
        source = rng.integers(1, 9, places(window, shape)).astype(np.float32)
        keep = {"GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less}[select]
        expected = np.zeros(shape, np.float32)
        for at in np.ndindex(*source.shape):
            best: Any = None
            for _, p in taps(at, window, shape):
                if p is not None and (best is None or not keep(x[best], x[p])):
                    best = p
            if best is not None:
                expected[best] += source[at]
        b = Builder()
        values = [b.param(TensorType("f32", a.shape)) for a in (x, source)]
        y = SELECT_AND_SCATTER(b, *values, window=window, select=select)
        (found,) = evaluate(Program.of("f", b.region([y]), None), x, source)
        assert compare(found, expected, exact=True), (select, window)


def test_narrow_floats_accumulate_in_f32() -> None:
    ones = np.ones([1, 1024, 1], ml_dtypes.bfloat16)
    example = "convolution(bf16[1, 1024, 1], bf16[1024, 1, 1]) window={size=[1024]} " + SPECS
    assert evaluate(parse(example), ones, ones.reshape(1024, 1, 1))[0].item() == 1024
    line = np.ones(1024, ml_dtypes.bfloat16)
    assert evaluate(parse("reduce_window(bf16[1024]) window={size=[1024]}"), line)[0].item() == 1024
    assert evaluate(parse("cumulative_reduce(bf16[1024]) dim=0"), line)[0][-1] == 1024


SPECS = "lhs_spec=[0, 2, 1] rhs_spec=[2, 1, 0] out_spec=[0, 2, 1]"


def test_the_gradient_of_max_pooling_is_jaxs() -> None:
    from jax import lax
    from jax import numpy as jnp

    x = np.random.default_rng(0).integers(0, 3, (5, 6)).astype(np.float64)
    ct = np.arange(1.0, 10.0).reshape(3, 3)
    example = "reduce_window(f64[5, 6]) window={size=[3, 2] stride=[2, 2] low=[1, 0] high=[1, 0]} monoid=max"
    (a,) = ours(example, ct, x)
    pool = lambda t: lax.reduce_window(t, -jnp.inf, lax.max, (3, 2), (2, 2), ((1, 1), (0, 0)))  # noqa: E731
    assert compare(a, jax_gradient(pool, ct, x)[0], exact=True)


def test_what_has_no_gradient_says_so() -> None:
    for rule, example in (
        ("reduce_window.D1", "reduce_window(f32[4]) window={size=[2]} monoid=mul"),
        ("select_and_scatter.D1", "select_and_scatter(f32[4], f32[3]) window={size=[2]} scatter=max"),
    ):
        with pytest.raises(TypeRuleError, match=rule.replace(".", r"\.")):
            pullback(parse(example))


@pytest.mark.parametrize("monoid", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_reduce(monoid: str, reverse: bool) -> None:
    x = np.random.default_rng(1).integers(-3, 4, (3, 7, 2))
    expected = x.copy()
    order = range(5, -1, -1) if reverse else range(1, 7)
    for i in order:
        before = expected[:, i + 1 if reverse else i - 1]
        expected[:, i] = np.vectorize(COMBINE[monoid])(before, x[:, i])
    b = Builder()
    y = CUMULATIVE_REDUCE(b, b.param(TensorType("i64", x.shape)), dim=1, monoid=monoid, reverse=reverse)
    assert compare(evaluate(Program.of("f", b.region([y]), None), x)[0], expected, exact=True)


CONV = "convolution(f32[2, 9, 4], f32[3, 4, 6]) window={{size=[{0}]{1}}} {2}"
BROKEN = {
    "convolution.C0": f"convolution(f32[2, 9, 4]) window={{size=[3]}} {SPECS}",
    "convolution.C1": f"convolution(f32[2, 9, 4], f32[3, 4]) window={{size=[3]}} {SPECS}",
    "convolution.C2": CONV.format(3, "", "lhs_spec=[0, 2, 2] rhs_spec=[2, 1, 0] out_spec=[0, 2, 1]"),
    "convolution.C3": f"convolution(bool[2, 9, 4], bool[3, 4, 6]) window={{size=[3]}} {SPECS}",
    "convolution.C4": f"convolution(f32[2, 9, 4], f64[3, 4, 6]) window={{size=[3]}} {SPECS}",
    "convolution.C5": CONV.format(2, "", SPECS),
    "convolution.C6": CONV.format(3, "", SPECS + " feature_group_count=2 batch_group_count=2"),
    "convolution.C7": CONV.format(3, "", SPECS + " feature_group_count=2"),
    "convolution.C8": CONV.format(3, "", SPECS + " batch_group_count=3"),
    "convolution.C9": f"convolution(f32[4, 9, 4], f32[3, 4, 6]) window={{size=[3]}} {SPECS} batch_group_count=4",
    "convolution.W1": CONV.format("3, 1", "", SPECS),
    "convolution.W3": CONV.format(3, " stride=[0]", SPECS),
    "convolution.W4": CONV.format(3, " base_dilation=[0]", SPECS),
    "convolution.W5": CONV.format(3, " low=[-20]", SPECS),
    "reduce_window.W2": "reduce_window(f32[4]) window={size=[0]}",
    "reduce_window.C1": "reduce_window(f32[4], f32[]) window={size=[2]} monoid=custom",
    "reduce_window.C3": "reduce_window(f32[4]) window={size=[2]} monoid=sub",
    "reduce_window.C4": "reduce_window(f32[4]) window={size=[2]} monoid=and",
    "reduce_window.C6": "reduce_window(f32[4]) window={size=[2] reversed=[true]}",
    "select_and_scatter.C1": "select_and_scatter(f32[4], f32[3]) window={size=[2]} select=custom",
    "select_and_scatter.C2": "select_and_scatter(f32[4]) window={size=[2]}",
    "select_and_scatter.C3": "select_and_scatter(f32[4], f32[3]) window={size=[2]} select=EQ",
    "select_and_scatter.C4": "select_and_scatter(c64[4], c64[3]) window={size=[2]}",
    "select_and_scatter.C5": "select_and_scatter(f32[4], f64[3]) window={size=[2]}",
    "select_and_scatter.C6": "select_and_scatter(f32[4], f32[4]) window={size=[2]}",
    "select_and_scatter.C7": "select_and_scatter(f32[4], f32[6]) window={size=[2] base_dilation=[2]}",
    "select_and_scatter.C10": "select_and_scatter(f32[4], f32[3], bool[3]) window={size=[2]}",
    "cumulative_reduce.C1": "cumulative_reduce(f32[4]) dim=0 monoid=sub",
    "cumulative_reduce.C2": "cumulative_reduce(c64[4]) dim=0 monoid=max",
    "cumulative_reduce.C3": "cumulative_reduce(f32[4]) dim=1",
}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_constraint_refuses_what_breaks_it(rule: str) -> None:
    with pytest.raises(GspmdError, match=rule.replace(".", r"\.") + r"\b"):
        parse(BROKEN[rule])
