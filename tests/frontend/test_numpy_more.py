"""gspmd.numpy against NumPy itself: one function, written once, given either module; and gradients of some."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.frontend.config import canonical
from gspmd.frontend.tree import flatten
from gspmd.ir.errors import TraceError
from gspmd.kernels.closeness import compare
from tests.frontend import numpy_cases, numpy_number_cases
from tests.frontend.numpy_cases import A, B, J, K, N, V, W
from tests.frontend.support import assert_like_jax, run

UNTYPED: Any = gnp
TABLES = (*numpy_cases.TABLES, *numpy_number_cases.TABLES)
CASES = [pytest.param(*case, id=name) for table in TABLES for name, case in table.items()]


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_like_numpy(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    found = flatten(run(lambda *xs: function(gnp, *xs), *arguments))[0]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        wanted = [np.asarray(y) for y in flatten(function(np, *arguments))[0]]
    assert len(found) == len(wanted)
    for i, (x, y) in enumerate(zip(found, wanted, strict=True)):
        # NumPy computes in f64 where Python numbers or integers are about, as it makes these 64 bits wide.
        verdict = compare(x, y.astype(canonical(y.dtype)), np.abs(y) + 1 if y.dtype.kind in "fc" else None, terms=64)
        assert verdict.ok, f"result {i}: {verdict.message}"


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "median": (lambda m, x: m.median(x, axis=1), (A,)),
    "quantile": (lambda m, x: m.quantile(x, np.array([0.2, 0.7], "f4"), axis=0), (A,)),
    "nanmean": (lambda m, x: m.nanmean(x, axis=1), (N,)),
    "cov": (lambda m, x: m.cov(x), (A,)),
    "pad": (lambda m, x: [m.pad(x, ((2, 1), (3, 2)), mode=how) for how in ("edge", "reflect", "wrap")], (A,)),
    "interp": (lambda m, x, f: m.interp(x, np.array([-1, 0, 2], "f4"), f), (A, W)),
    "convolve": (lambda m, x, y: m.convolve(x, y, mode="same"), (V, W)),
    "trapezoid": (lambda m, y, x: m.trapezoid(y, x, axis=1), (A, B)),
    "gradient": (lambda m, x: m.gradient(x, axis=1), (A,)),
    "diff": (lambda m, x: m.diff(x, 2), (A,)),
    "sinc": (lambda m, x: m.sinc(x), (np.array([0.0, 0.5, -1.5], "f4"),)),
    "select": (lambda m, x, y: m.select([x > 1, x > 0], [x * y, y], 2.0), (A, B)),
    "insert": (lambda m, x, v: m.insert(x, 2, v[:4], axis=1), (A, V)),
    "kron": (lambda m, x, y: m.kron(x, y), (A, W)),
    "cross": (lambda m, x, y: m.cross(x[:, :3], y[:, :3]), (A, B)),
    "histogram weights": (lambda m, w: m.histogram(np.arange(7.0, dtype="f4"), 3, weights=w)[0], (V,)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_like_jax(name: str) -> None:
    function, arguments = GRADIENTS[name]

    def loss(m: Any, *xs: Any) -> Any:
        leaves = flatten(function(m, *xs))[0]
        total = 0.0
        for i, x in enumerate(leaves):
            weights = np.cos(np.arange(x.size, dtype="f4") + i).reshape(x.shape)
            total = total + m.sum(x * weights)
        return total

    places = tuple(range(len(arguments)))
    mine = run(lambda *xs: gspmd.grad(lambda *ys: loss(gnp, *ys), places)(*xs), *arguments)
    assert_like_jax(mine, jax.grad(lambda *ys: loss(jnp, *ys), places)(*map(jnp.asarray, arguments)), terms=64)


def test_quantiles_of_infinities_are_elements() -> None:
    x = np.array([-np.inf, 1, np.inf, np.inf], "f4")
    assert run(lambda x: gnp.quantile(x, np.array([0.0, 1 / 3, 0.9, 1.0])), x).tolist() == [-np.inf, 1, np.inf, np.inf]


def test_put_along_axis_is_a_copy() -> None:
    wanted = A.copy()
    place = np.argmax(A, 1)[:, None]
    np.put_along_axis(wanted, place, 9.0, 1)
    found, same = run(lambda x: (gnp.put_along_axis(x, gnp.argmax(x, 1, keepdims=True), 9.0, 1), x), A)
    assert compare(found, wanted, exact=True) and compare(same, A, exact=True)


def test_counts_of_traced_numbers_have_a_given_length() -> None:
    found = run(lambda k: [gnp.bincount(k, length=5), gnp.bincount(k - 3, minlength=4, length=2)], K)
    wanted = [[np.count_nonzero(first + i == K) for i in range(n)] for first, n in ((0, 5), (3, 4))]
    assert [x.tolist() for x in found] == wanted
    with pytest.raises(TraceError, match=r"bincount.C2(.|\n)*length="):
        run(gnp.bincount, K)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_counts_may_be_longer_than_their_numbers_reach(dtype: Any) -> None:
    found = run(lambda k: gnp.bincount(k, length=300), np.array([1, 5, 5, 100], dtype))
    assert np.flatnonzero(found).tolist() == [1, 5, 100] and found[5] == 2 and found.shape == (300,)


def test_long_lines_are_searched_by_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gspmd.frontend.numpy_histogram._MOST_PAIRS", 0)
    for n in (1, 2, 7, 8, 9):
        line = np.append(np.sort(np.round(np.random.default_rng(n).normal(0, 2, n))), np.nan).astype("f4")[-n:]
        sought = np.append(np.arange(-5.0, 6.0), np.nan).astype("f4")
        found = run(lambda a, x: [gnp.searchsorted(a, x, side) for side in ("left", "right")], line, sought)
        for x, side in zip(found, ("left", "right"), strict=True):
            assert np.array_equal(x, np.searchsorted(line, sought, side)), (n, side)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: gnp.pad(x, 1, "linear_ramp"), r"pad\.C0.*linear_ramp"),
        (lambda x: gnp.pad(x[:0], 1, "edge"), r"pad\.C2"),
        (lambda x: gnp.quantile(x, 1.5), r"quantile\.C1"),
        (lambda x: gnp.quantile(x, 0.5, method="weibull"), r"quantile\.C2"),
        (lambda x: gnp.histogram(x, "auto"), r"histogram\.C1"),
        (lambda x: gnp.insert(x, gnp.argmax(x), 1.0), r"insert\.C1"),
        (lambda x: gnp.choose(gnp.argmax(x, 0), [x], mode="raise"), r"choose\.C1"),
        (lambda x: gnp.gradient(x, 1.0, 2.0, 3.0), r"gradient\.C1"),
        (lambda x: gnp.block([[x], x]), r"block\.C1"),
        (lambda x: gnp.searchsorted(x, 1.0), r"searchsorted\.C2"),
        (lambda x: gnp.where(x > 0), r"where\.C1(.|\n)*both alternatives"),
        (lambda x: gnp.ix_(x > 0), r"ix_\.C2"),
        (lambda x: gnp.ix_(x), r"ix_\.C1"),
        (lambda x: gnp.gcd(x, 2), r"gcd\.C1"),
        (lambda x: gnp.lexsort([x, x[0]]), r"lexsort\.C1"),
        (lambda x: gnp.result_type(), r"result_type\.C1"),
        (lambda x: gnp.result_type("no dtype"), r"dtype\.C1"),
        (lambda x: gnp.can_cast(1, "int8"), r"can_cast\.C1"),
        (lambda x: UNTYPED.add(x, x, out=x), r"trace\.C11: add cannot write(.|\n)*test_numpy_more\.py(.|\n)*drop out="),
        (lambda x: x.sum(0, out=x), r"trace\.C11: sum cannot write"),
    ],
)
def test_what_cannot_be_is_told(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        run(function, A)


def test_functions_whose_shapes_depend_on_values_are_told() -> None:
    with pytest.raises(AttributeError, match="the shape of its result depends on values"):
        _ = gnp.unique
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        _ = gnp.no_such
    with pytest.raises(AttributeError, match=r"gspmd\.numpy\.linalg has no eig; it has eigh"):
        _ = gnp.linalg.eig
    with pytest.raises(AttributeError, match=r"gspmd\.numpy\.fft has no magic$"):
        _ = gnp.fft.magic
    with pytest.raises(AttributeError, match=r"use gspmd\.random"):
        _ = gnp.random


def test_ufuncs_of_numpy_take_traced_arrays() -> None:
    found = run(lambda x: [np.rint(x), np.isnan(x), np.fmax(x, 0), *np.divmod(x, 2), np.deg2rad(x), np.conjugate(x)], A)
    for x, y in zip(found, [np.rint(A), np.isnan(A), np.fmax(A, 0), *np.divmod(A, 2), np.deg2rad(A), A], strict=True):
        assert compare(x, y, terms=4)


def test_functions_split_over_a_mesh_give_the_same() -> None:
    mesh = gspmd.Mesh({"a": 3})

    @gspmd.jit
    def all_of_them(x: Any, j: Any) -> Any:
        x = gspmd.shard(x, mesh, None, "a")
        return [
            gnp.pad(x, 2, mode="reflect"),
            gnp.pad(x, ((0, 0), (5, 7)), mode="wrap"),
            gnp.median(x, axis=1),
            gnp.diff(x, axis=1),
            gnp.convolve(x[0], x[1]),
            gnp.insert(x, [1, 4], 0.0, axis=1),
            gnp.cov(x),
            gnp.kron(x, x[:1]),
            gnp.bincount(gnp.ravel(j), length=4),
            gnp.searchsorted(gnp.sort(x[0]), x),
        ]

    all_of_them.compiled_for(A, J).check(A, J)


def test_another_type_error_is_left_alone() -> None:
    mine: Any = lambda x: x  # noqa: E731

    with pytest.raises(TypeError, match="unexpected keyword argument"):
        run(lambda x: mine(x, out=x), A)
