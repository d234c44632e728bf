"""Fourier transforms against their definition, and XLA's StableHLO where the definition leaves a choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gspmd.ir.errors import GspmdError
from gspmd.kernels.closeness import compare
from tests.ops.cases import parse
from tests.ops.evaluate import evaluate
from tests.xla.one_device import run_text


def transform(x: Any, sign: int, dims: int) -> Any:
    """The sum over points of x times a root of unity, one dimension after the other."""
    for d in range(x.ndim - dims, x.ndim):
        n = x.shape[d]
        matrix = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        x = np.moveaxis(np.tensordot(x, matrix, (d, 0)), -1, d)
    return x


def close(actual: Any, expected: Any) -> None:
    size = np.full(expected.shape, np.abs(expected).max())
    verdict = compare(actual, expected.astype(actual.dtype), size, 8)
    assert verdict.ok, verdict.message


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("last", [4, 7])
def test_transforms_are_their_definition(dtype: str, dims: int, last: int) -> None:
    rng = np.random.default_rng(dims)
    real, complex_ = ("f4", "c8") if dtype == "f32" else ("f8", "c16")
    c = {"f32": "c64", "f64": "c128"}[dtype]
    shape = [2, 3, 5, last]
    length = shape[-dims:]
    x = rng.standard_normal(shape).astype(real)
    z = (x + 1j * rng.standard_normal(shape)).astype(complex_)
    run = lambda name, kind, y: evaluate(parse(f"fft({name}{list(y.shape)}) kind={kind} length={length}"), y)[0]  # noqa: E731
    close(run(c, "FFT", z), transform(z, -1, dims))
    close(run(c, "IFFT", z), transform(z, 1, dims) / np.prod(length))
    half = run(dtype, "RFFT", x)
    close(half, transform(x, -1, dims)[..., : last // 2 + 1])
    close(run(c, "IRFFT", half), x)


def test_irfft_of_what_is_no_transform_is_xlas() -> None:
    """The imaginary part of the zero frequency has no meaning, and of a pair only one is given."""
    rng = np.random.default_rng(0)
    z = (rng.standard_normal((3, 5)) + 1j * rng.standard_normal((3, 5))).astype("c8")
    for n in (8, 9):
        text = f"""func.func public @main(%x: tensor<3x5xcomplex<f32>>) -> tensor<3x{n}xf32> {{
          %0 = stablehlo.fft %x, type = IRFFT, length = [{n}] : (tensor<3x5xcomplex<f32>>) -> tensor<3x{n}xf32>
          return %0 : tensor<3x{n}xf32> }}"""
        close(evaluate(parse(f"fft(c64[3, 5]) kind=IRFFT length=[{n}]"), z)[0], run_text(text, [z])[0])


BROKEN = {
    "fft.C1": "fft(c64[8]) kind=DCT length=[8]",
    "fft.C2": "fft(c64[8]) kind=FFT length=[]",
    "fft.C3": "fft(f32[8]) kind=FFT length=[8]",
    "fft.C4": "fft(c64[8]) kind=IRFFT length=[8]",
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_constraint(constraint: str) -> None:
    with pytest.raises(GspmdError) as raised:
        parse(BROKEN[constraint])
    assert constraint in str(raised.value)
