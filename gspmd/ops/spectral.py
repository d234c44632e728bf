"""Discrete Fourier transforms (StableHLO: fft)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, Dense, ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.dtypes import DTYPES, DType
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.opdef import Array, Gradient, OpDef, Types
from gspmd.ir.rule import Factor, Rule, identity_map
from gspmd.ir.types import TensorType
from gspmd.kernels import spectral as kernels
from gspmd.ops.elementwise import COMPLEX, IMAG, REAL
from gspmd.ops.elementwise.expression import Expression
from gspmd.ops.layout import BROADCAST_IN_DIM, TRANSPOSE
from gspmd.ops.literal import CONSTANT, scalar
from gspmd.ops.moving import PAD
from gspmd.ops.rules import require, require_count, require_kind

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
_COMPLEX: dict[DType, DType] = {DTYPES["f32"]: DTYPES["c64"], DTYPES["f64"]: DTYPES["c128"]}
_REAL = {c: r for r, c in _COMPLEX.items()}


@dataclass(frozen=True, slots=True)
class FftAttrs(Attrs):
    """FFT, IFFT, RFFT or IRFFT over the last dimensions; their lengths, for IRFFT those of the result."""

    kind: str
    length: tuple[int, ...]


def _fft_infer(types: Types, attrs: FftAttrs, regions: tuple[Region, ...]) -> Types:
    """C1: the kind. C2: 1 to 3 dims. C3: complex or real. C4: the operand's sizes are the lengths."""
    require_count("fft", types, 1)
    x, length, n = types[0].bare, attrs.length, len(attrs.length)
    require(attrs.kind in KINDS, "fft.C1", f"kind {attrs.kind!r} is none of {', '.join(KINDS)}")
    require(1 <= n <= min(3, x.rank), "fft.C2", f"transforms 1 to 3 dims, got {n} of {x.text()}")
    real_in, real_out = attrs.kind == "RFFT", attrs.kind == "IRFFT"
    require_kind("fft", "C3", x, "f" if real_in else "c")
    require(not real_in or x.dtype in _COMPLEX, "fft.C3", f"takes f32 or f64, got {x.text()}")
    last = length[-1] // 2 + 1 if (real_out and length[-1]) else length[-1]
    wanted = (*length[:-1], last)
    require(x.shape[-n:] == wanted, "fft.C4", f"the last sizes of {x.text()} must be {list(wanted)}")
    if real_in:
        half = length[-1] // 2 + 1 if length[-1] else 0
        return (TensorType(_COMPLEX[x.dtype], (*x.shape[:-1], half)),)
    return (TensorType(_REAL[x.dtype], (*x.shape[:-n], *length)),) if real_out else (x,)


def _fft_rule(types: Types, results: Types, attrs: FftAttrs) -> Rule:
    """The last dimension of a real transform has another size in the result, hence a factor of its own there."""
    x, y, n = types[0], results[0], len(attrs.length)
    factors = [Factor(s, "pass" if d < x.rank - n else "whole") for d, s in enumerate(x.shape)]
    out = identity_map(x.rank)
    if x.shape[-1] != y.shape[-1]:
        out = (*out[:-1], (x.rank,))
        factors.append(Factor(y.shape[-1], "whole"))
    points = prod(attrs.length)
    flops = int(5 * prod(x.shape[:-n]) * points * max(log2(max(points, 1)), 1))
    return Rule(tuple(factors), (identity_map(x.rank),), (out,), ((0,),), flops)


def _fft_kernel(attrs: FftAttrs, x: Array) -> Array:
    return kernels.fft(x, attrs.kind, attrs.length)


def _fft_vjp(gradient: Gradient, node: Node, cotangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The transforms are symmetric matrices; the real ones cut and weigh the half that they keep."""
    attrs, (ct,), b = node.attrs, cotangents, gradient.builder
    assert isinstance(attrs, FftAttrs)
    if ct is None:
        return [None]
    if attrs.kind in ("FFT", "IFFT"):
        return [FFT(b, ct, kind=attrs.kind, length=attrs.length)]
    if attrs.kind == "RFFT":
        none, n = (0,) * ct.type.rank, attrs.length[-1]
        high = (*none[:-1], n - ct.type.shape[-1])
        full = PAD(b, ct, scalar(b, 0, ct.type.dtype), low=none, high=high, interior=none)
        back = Expression(b, FFT(b, full, kind="FFT", length=attrs.length))
        return [back.apply(REAL).value]
    return [_irfft_transpose(b, ct, attrs.length)]


def _irfft_transpose(b: Builder, ct: Value, length: tuple[int, ...]) -> Value:
    """Frequencies that stand for a pair count twice; conjugated, as products with complex cotangents are not."""
    forward = Expression(b, FFT(b, ct, kind="RFFT", length=length))
    re, im = forward.apply(REAL), forward.apply(IMAG)
    half = forward.value.type.shape[-1]
    weights = np.full(half, 2 / prod(length), ct.type.dtype)
    weights[0] /= 2
    if length[-1] % 2 == 0:
        weights[-1] = weights[-1] if half == 1 else 1 / prod(length)
    line = CONSTANT(b, value=Dense(weights))
    rank = ct.type.rank
    weight = Expression(b, BROADCAST_IN_DIM(b, line, shape=ResultShape(re.value.type.shape), dims=(rank - 1,)))
    return (re * weight).apply(COMPLEX, -(im * weight)).value


def _fft_apart(b: Builder, node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    """One dimension after the other, each turned to be the last: any but the one at hand may then be split.

    The inverse goes the other way round, so that what is split in between need not move.
    """
    attrs = node.attrs
    assert isinstance(attrs, FftAttrs)
    length, (x,), n = attrs.length, operands, len(attrs.length)
    if n == 1:
        return None
    inverse = attrs.kind in ("IFFT", "IRFFT")
    first = tuple(range(x.type.rank - n))
    forwards, backwards = (tuple(len(first) + (i + k) % n for i in range(n)) for k in (1, -1))
    for i in range(n) if inverse else reversed(range(n)):
        if inverse:
            x = TRANSPOSE(b, x, permutation=first + forwards)
        last = i == n - 1
        kind = attrs.kind if last else "IFFT" if inverse else "FFT"
        x = FFT(b, x, kind=kind, length=(length[i],), name=node.result.name if inverse and last else "")
        if not inverse:
            x = TRANSPOSE(b, x, permutation=first + backwards, name="" if i else node.result.name)
    return (x,)


FFT = OpDef(
    "fft",
    FftAttrs,
    _fft_infer,
    rule=_fft_rule,
    kernel=_fft_kernel,
    apart=_fft_apart,
    vjp=_fft_vjp,
    examples=(
        "fft(c64[5, 8]) kind=FFT length=[8]",
        "fft(c128[4, 6, 5]) kind=IFFT length=[6, 5]",
        "fft(f32[7, 8]) kind=RFFT length=[8]",
        "fft(f64[3, 4, 5]) kind=RFFT length=[4, 5]",
        "fft(c64[6, 5]) kind=IRFFT length=[8]",
        "fft(c128[2, 3, 4, 4]) kind=IRFFT length=[3, 4, 7]",
    ),
    doc="The discrete Fourier transform over the last dimensions; the inverse ones divide by the number of points.",
)

FAMILY: tuple[OpDef[Any], ...] = (FFT,)
