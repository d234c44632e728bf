"""gspmd.numpy.linalg, gspmd.numpy.fft and sorting against jax.numpy: one function, given either module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gspmd
import gspmd.numpy as gnp
from gspmd.ir.errors import TraceError
from gspmd.kernels.closeness import compare
from tests.frontend.support import run

RANDOM = np.random.default_rng(3)
A = RANDOM.standard_normal((3, 4, 4)).astype("f4") + 3 * np.eye(4, dtype="f4")
S = (A @ np.swapaxes(A, -1, -2)).astype("f4")
T = RANDOM.standard_normal((3, 5, 4)).astype("f4")
B = RANDOM.standard_normal((3, 4, 2)).astype("f4")
V = RANDOM.standard_normal(4).astype("f4")
LOW = T[0, :, :2] @ T[0, :2]
X = RANDOM.standard_normal((3, 6, 5)).astype("f4")
C = (X + 1j * X[::-1]).astype("c8")
K = np.array([[3, 1, 1, -2, np.nan, 0.0, -0.0], [np.inf, 1, 5, 5, -np.inf, 2, 5]], "f4")
I = RANDOM.integers(0, 4, (5, 8)).astype("i4")  # noqa: E741

CASES: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda n: n.linalg.cholesky(n.asarray(S)),
    "solve": lambda n: n.linalg.solve(n.asarray(A), B),
    "solve a vector": lambda n: n.linalg.solve(n.asarray(A[0]), V),
    "inv": lambda n: n.linalg.inv(n.asarray(A)),
    "qr": lambda n: tuple(n.linalg.qr(n.asarray(T))),
    "r": lambda n: n.linalg.qr(n.asarray(T), mode="r"),
    "svd": lambda n: n.linalg.svd(n.asarray(T), compute_uv=False),
    "svd of vectors": lambda n: _product(n, n.linalg.svd(n.asarray(T), full_matrices=False)),
    "eigh": lambda n: n.linalg.eigvalsh(n.asarray(S)),
    "det": lambda n: n.linalg.det(n.asarray(A)),
    "slogdet": lambda n: tuple(n.linalg.slogdet(n.asarray(-A[:, :3, :3]))),
    "matrix_power": lambda n: tuple(n.linalg.matrix_power(n.asarray(A), k) for k in (0, 1, 5, -2)),
    "multi_dot": lambda n: n.linalg.multi_dot([V, n.asarray(A[0]), A[1], B[0]]),
    "pinv": lambda n: n.linalg.pinv(n.asarray(T)),
    "pinv of a singular one": lambda n: n.linalg.pinv(n.asarray(LOW), rtol=1e-4),
    "pinv complex": lambda n: n.linalg.pinv(n.asarray(C)),
    "matrix_rank": lambda n: n.linalg.matrix_rank(n.asarray(LOW), rtol=1e-4),
    "lstsq": lambda n: tuple(n.linalg.lstsq(n.asarray(T[0]), T[1])),
    "lstsq of a vector": lambda n: n.linalg.lstsq(n.asarray(LOW), V[[0, 1, 2, 3, 0]], rcond=1e-4)[0],
    "cond": lambda n: n.linalg.cond(n.asarray(T)),
    "cond 1": lambda n: n.linalg.cond(n.asarray(A), p=1),
    "norm": lambda n: n.linalg.norm(n.asarray(X)),
    "norm of rows": lambda n: n.linalg.norm(n.asarray(X), ord=1, axis=-1, keepdims=True),
    "norm inf": lambda n: n.linalg.norm(n.asarray(X), ord=np.inf, axis=1),
    "norm 3": lambda n: n.linalg.norm(n.asarray(X), ord=3, axis=0),
    "norm complex": lambda n: n.linalg.norm(n.asarray(C), axis=-1),
    "norm fro": lambda n: n.linalg.norm(n.asarray(X), axis=(0, 2)),
    "norm of matrices 1": lambda n: n.linalg.norm(n.asarray(X), ord=1, axis=(1, 2), keepdims=True),
    "norm nuc": lambda n: n.linalg.norm(n.asarray(X), ord="nuc", axis=(-2, -1)),
    "fft": lambda n: n.fft.fft(n.asarray(X)),
    "fft cut": lambda n: n.fft.fft(n.asarray(C), n=4, axis=1),
    "fft padded": lambda n: n.fft.fft(n.asarray(C), n=8, norm="ortho"),
    "ifft": lambda n: n.fft.ifft(n.asarray(C), norm="forward"),
    "rfft": lambda n: n.fft.rfft(n.asarray(X), axis=0),
    "irfft": lambda n: n.fft.irfft(n.asarray(C)),
    "irfft odd": lambda n: n.fft.irfft(n.asarray(C), n=7, axis=1),
    "fftn": lambda n: n.fft.fftn(n.asarray(C)),
    "rfftn": lambda n: n.fft.rfftn(n.asarray(X), axes=(2, 0)),
    "irfftn": lambda n: n.fft.irfftn(n.asarray(C), s=(3, 8), axes=(0, 1)),
    "ifft2": lambda n: n.fft.ifft2(n.asarray(C)),
    "fftfreq": lambda n: n.fft.fftfreq(7, 0.5),
    "fftshift": lambda n: n.fft.fftshift(n.asarray(X)),
    "ifftshift": lambda n: n.fft.ifftshift(n.asarray(X), axes=1),
    "sort": lambda n: n.sort(n.asarray(K)),
    "sort descending": lambda n: n.sort(n.asarray(I), axis=0, descending=True),
    "argsort": lambda n: n.argsort(n.asarray(K), axis=-1),
    "argsort integers": lambda n: n.argsort(n.asarray(I), axis=0),
    "argsort descending": lambda n: n.argsort(n.asarray(I), axis=1, descending=True),
    "sort raveled": lambda n: n.sort(n.asarray(I), axis=None),
}
DATA = frozenset(("sort", "sort descending", "argsort", "argsort integers", "argsort descending", "sort raveled"))


def _product(n: Any, parts: Any) -> Any:
    u, s, vh = parts
    return (u * s[:, None, :]) @ vh


@pytest.mark.parametrize("name", CASES)
def test_results_are_jaxs(name: str) -> None:
    mine = run(lambda: CASES[name](gnp))
    theirs = CASES[name](jnp)
    pairs = zip(mine, theirs, strict=True) if isinstance(mine, tuple) else [(mine, theirs)]
    for a, b in pairs:
        size = None if name in DATA else np.full(np.shape(b), np.abs(np.asarray(b)).max())
        verdict = compare(a, np.asarray(b), size, 16, exact=name in DATA)
        assert verdict.ok, verdict.message


def test_four_dims_are_transformed_in_two_steps() -> None:
    x = RANDOM.standard_normal((2, 3, 4, 5)).astype("f4")
    half = np.fft.rfftn(x)
    for found, wanted in (
        (run(lambda: gnp.fft.rfftn(gnp.asarray(x))), half),
        (run(lambda: gnp.fft.irfftn(gnp.asarray(half), s=x.shape)), x),
        (run(lambda: gnp.fft.fftn(gnp.asarray(half))), np.fft.fftn(half)),
    ):
        verdict = compare(found, wanted.astype(found.dtype), np.full(wanted.shape, np.abs(wanted).max()))
        assert verdict.ok, verdict.message


def test_top_k_is_jaxs() -> None:
    for mine, theirs in zip(run(lambda: gnp.top_k(K, 4)), jax.lax.top_k(K, 4), strict=True):
        assert compare(mine, np.asarray(theirs), exact=True).ok
    values, places = run(lambda: gnp.top_k(K, 1, axis=0))
    assert compare(values, np.take_along_axis(K, places, 0), exact=True).ok and places.shape == (1, 7)


GRADIENTS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "cholesky": (lambda n, x: n.sum(n.sin(n.linalg.cholesky(x))), S),
    "solve": (lambda n, x: n.sum(n.linalg.solve(x, B) ** 2), A),
    "inv": (lambda n, x: n.sum(n.sin(n.linalg.inv(x))), A),
    "qr": (lambda n, x: sum(n.sum(n.sin(y)) for y in n.linalg.qr(x)), T),
    "svdvals": (lambda n, x: n.sum(n.sin(n.linalg.svd(x, compute_uv=False))), T),
    "eigh": (lambda n, x: n.sum(n.sin(n.abs(n.linalg.eigh(x)[1]))) + n.sum(n.linalg.eigh(x)[0] ** 2), S),
    "det": (lambda n, x: n.sum(n.linalg.det(x)), A),
    "slogdet": (lambda n, x: n.sum(n.linalg.slogdet(x)[1]), A),
    "norm": (lambda n, x: n.linalg.norm(x), X),
    "fft": (lambda n, x: n.sum(n.abs(n.fft.fft(x)) ** 3), X),
    "rfft": (lambda n, x: n.sum(n.abs(n.fft.rfft(x, n=7, norm="ortho")) ** 3), X),
    "irfft": (lambda n, x: n.sum(n.sin(n.fft.irfft(n.fft.rfft(x) ** 2))), X),
    "sort": (lambda n, x: n.sum(n.sin(n.sort(x, axis=1)) * np.arange(30, dtype="f4").reshape(6, 5)), X),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_jaxs(name: str) -> None:
    function, x = GRADIENTS[name]
    mine = run(lambda x: gspmd.grad(lambda y: function(gnp, y))(x), x)
    theirs = np.asarray(jax.grad(lambda y: function(jnp, y))(x))
    verdict = compare(mine, theirs, np.full(x.shape, np.abs(theirs).max()), 64)
    assert verdict.ok, verdict.message


LAYOUTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sort": (lambda x: (gnp.sort(x), gnp.argsort(x, axis=0)), X),
    "top_k": (lambda x: gnp.top_k(x, 3), X),
    "fft": (lambda x: (gnp.fft.fft(x, axis=0), gnp.fft.rfft(x)), X),
    "cholesky": (lambda x: (gnp.linalg.cholesky(x), gnp.linalg.eigh(x)[0]), S),
    "solve": (lambda x: gnp.linalg.solve(S, x), A),
    "gradients": (lambda x: gspmd.grad(lambda y: gnp.sum(gnp.sin(gnp.sort(y)) * gnp.linalg.det(x @ y)))(x), A[0]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_results_do_not_depend_on_the_layout(name: str) -> None:
    function, x = LAYOUTS[name]
    plain = run(function, x)
    mesh = gspmd.Mesh({"a": 2, "b": 3})
    for d in range(x.ndim):
        for split in ("a", "b", ("a", "b")):
            axes = [split if e == d else None for e in range(x.ndim)]
            traced = gspmd.trace(
                lambda y, axes=axes: function(gspmd.shard(y, mesh, *axes)), gspmd.TensorType(x.dtype, x.shape)
            )
            found = gspmd.compile(traced, mesh=mesh).simulate(x)
            pairs = zip(found, plain, strict=True) if isinstance(plain, tuple) else [(found, plain)]
            for a, b in pairs:
                verdict = compare(np.asarray(a), b, np.full(b.shape, np.abs(b).max()), 16)
                assert verdict.ok, f"{axes}: {verdict.message}"


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: gnp.sort(C), "sort.C6"),
        (lambda: gnp.top_k(K, 9), "top_k.C2"),
        (lambda: gnp.linalg.inv(T), "inv.C2"),
        (lambda: gnp.linalg.solve(A, T), "solve.C5"),
        (lambda: gnp.linalg.qr(A, "full"), "qr.C5"),
        (lambda: gnp.linalg.matrix_norm(A, ord=7), "matrix_norm.C3"),
        (lambda: gnp.linalg.norm(A, axis=(0, 1, 2)), "norm.C1"),
        (lambda: gnp.fft.rfft(C), "fft.C3"),
        (lambda: gnp.fft.fft(C, n=0), "fft.C4"),
        (lambda: gnp.fft.fft(C, norm="half"), "fft.C5"),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[[], Any], rule: str) -> None:
    with pytest.raises(TraceError, match=rule):
        run(call)
