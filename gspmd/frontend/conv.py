"""Convolution and pooling for traced code: dimension orders as letters, paddings by name, then one op."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np

from gspmd.frontend.numpy_core import as_inexact, cast_to, common_dtype, lift, spread
from gspmd.frontend.numpy_math import divide
from gspmd.frontend.numpy_shape import reshape
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit
from gspmd.ir.attrs import Groups, Window, WindowDim
from gspmd.ir.errors import TraceError
from gspmd.kernels.window import reduce_window
from gspmd.ops.window import CONVOLUTION, REDUCE_WINDOW

Sizes = int | Sequence[int]
# A name, or what to add before and behind in each spatial dimension.
Padding = Literal["SAME", "VALID"] | Sequence[tuple[int, int]] | int


def conv(
    x: ArrayLike,
    kernel: ArrayLike,
    stride: Sizes = 1,
    padding: Padding = "SAME",
    *,
    dilation: Sizes = 1,
    input_dilation: Sizes = 1,
    groups: int = 1,
    order: str | None = None,
    kernel_order: str | None = None,
) -> Tracer:
    """The convolution (cross-correlation) of `x` by a kernel over any number of spatial dimensions.

    `order` names the dimensions of `x` and of the result by letters, N for the batch and C for the features; by default
    the batch comes first and the features last (`NHWC`). `kernel_order` has I and O for input and output features and
    the same letters for space; by default these two come last (`HWIO`). `groups` divides the features: the kernel has
    input features for one group, and output features for all. `dilation` spreads the kernel's taps, `input_dilation`
    the elements of `x`.
    """
    dtype = common_dtype(x, kernel)
    x, kernel = cast_to(x, dtype), cast_to(kernel, dtype)
    lhs, rhs = _specs(x, kernel, order, kernel_order)
    rank = x.ndim - 2
    strides, dilations, bases = (_each(v, rank, "stride or dilation") for v in (stride, dilation, input_dilation))
    taps = [kernel.shape[d] for d in rhs[2:]]
    space = [max(x.shape[d] - 1, 0) * n + min(x.shape[d], 1) for d, n in zip(lhs[2:], bases, strict=True)]
    pads = _pads(padding, space, taps, strides, dilations)
    window = Window(
        WindowDim(k, s, b, d, low, high)
        for k, s, b, d, (low, high) in zip(taps, strides, bases, dilations, pads, strict=True)
    )
    return _emit(x, kernel, window, lhs, rhs, groups)


def conv_transpose(
    x: ArrayLike,
    kernel: ArrayLike,
    stride: Sizes = 1,
    padding: Padding = "SAME",
    *,
    order: str | None = None,
    kernel_order: str | None = None,
) -> Tracer:
    """The convolution of `x` with stride - 1 zeros between its elements, for `stride` times as many results.

    With `SAME` the result has n * stride elements; the kernel is not turned around (JAX's `lax.conv_transpose`).
    """
    dtype = common_dtype(x, kernel)
    x, kernel = cast_to(x, dtype), cast_to(kernel, dtype)
    lhs, rhs = _specs(x, kernel, order, kernel_order)
    strides = _each(stride, x.ndim - 2, "stride")
    taps = [kernel.shape[d] for d in rhs[2:]]
    if isinstance(padding, str):
        pads = [_transposed_pads(k, s, padding) for k, s in zip(taps, strides, strict=True)]
    else:
        pads = _pads(padding, taps, taps, strides, strides)
    window = Window(
        WindowDim(k, base_dilation=s, low=low, high=high) for k, s, (low, high) in zip(taps, strides, pads, strict=True)
    )
    return _emit(x, kernel, window, lhs, rhs, 1)


def max_pool(
    x: ArrayLike, size: Sizes, stride: Sizes | None = None, padding: Padding = "VALID", *, order: str | None = None
) -> Tracer:
    """The largest element of each window of `size` elements; windows are `stride` (by default their size) apart."""
    lifted = lift(x)
    window = _pool(lifted, size, stride, padding, order)
    return emit(REDUCE_WINDOW, lifted, window=window, monoid="max")


def avg_pool(
    x: ArrayLike,
    size: Sizes,
    stride: Sizes | None = None,
    padding: Padding = "VALID",
    *,
    order: str | None = None,
    count_padding: bool = False,
) -> Tracer:
    """The mean of each window of `size` elements; padding is not counted, unless `count_padding`."""
    lifted = as_inexact(x)
    window = _pool(lifted, size, stride, padding, order)
    total = emit(REDUCE_WINDOW, lifted, window=window)
    if count_padding or all(s.low <= 0 and s.high <= 0 for s in window):
        return divide(total, float(prod(s.size for s in window)))
    for d, side in enumerate(window):
        if side.size > 1:
            ones = np.ones(lifted.shape[d], np.float32)
            count = reshape(reduce_window("add", ones, (side,)), [-1 if i == d else 1 for i in range(lifted.ndim)])
            total = divide(total, spread(count, total.dtype, total.shape))
    return total


# -- dimension orders and windows ------------------------------------------------------------------------------------


def _emit(x: Tracer, kernel: Tracer, window: Window, lhs: list[int], rhs: list[int], groups: int) -> Tracer:
    return emit(
        CONVOLUTION,
        x,
        kernel,
        window=window,
        lhs_spec=tuple(lhs),
        rhs_spec=tuple(rhs),
        out_spec=tuple(lhs),
        feature_group_count=Groups(groups),
    )


def _specs(x: Tracer, kernel: Tracer, order: str | None, kernel_order: str | None) -> tuple[list[int], list[int]]:
    """The dimensions batch, feature, space of x and output feature, input feature, space of the kernel."""
    rank = x.ndim
    if rank < 2 or kernel.ndim != rank:
        raise trace_error(
            f"a kernel of shape {list(kernel.shape)} does not fit an array of shape {list(x.shape)}",
            rule="conv.C1",
            fix="give both as many dimensions: batch, features and space; input features, output features and space",
        )
    lhs = _places(order, "NC", rank, (0, rank - 1))
    rhs = _places(kernel_order, "OI", rank, (rank - 1, rank - 2))
    if order is not None and kernel_order is not None:
        letters = [order[d] for d in lhs[2:]]
        if sorted(letters) != sorted(kernel_order[d] for d in rhs[2:]):
            raise trace_error(f"{order} and {kernel_order} name different spatial dimensions", rule="conv.C2")
        rhs[2:] = [kernel_order.index(c) for c in letters]
    return lhs, rhs


def _places(order: str | None, special: str, rank: int, default: tuple[int, int]) -> list[int]:
    if order is None:
        return [*default, *(d for d in range(rank) if d not in default)]
    if len(order) != rank or len(set(order)) != rank or not set(special) <= set(order):
        raise trace_error(
            f"{order!r} does not name {rank} dimensions with {' and '.join(special)} among them", rule="conv.C2"
        )
    return [*(order.index(c) for c in special), *(d for d, c in enumerate(order) if c not in special)]


def _each(value: Sizes, rank: int, what: str) -> list[int]:
    """One number for each spatial dimension."""
    found = [value] * rank if isinstance(value, int) else [int(n) for n in value]
    if len(found) != rank:
        raise trace_error(
            f"{what} {list(found)} has {len(found)} numbers for {rank} spatial dimensions", rule="conv.C3"
        )
    return found


def _pads(
    padding: Padding, space: Sequence[int], taps: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """What is added before and behind in each spatial dimension."""
    if padding == "VALID":
        return [(0, 0)] * len(space)
    if padding == "SAME":
        found: list[tuple[int, int]] = []
        for n, k, s, d in zip(space, taps, strides, dilations, strict=True):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            found.append((total // 2, total - total // 2))
        return found
    if isinstance(padding, str):
        raise _no_padding(padding)
    pairs = [(padding, padding)] * len(space) if isinstance(padding, int) else [(int(a), int(b)) for a, b in padding]
    if len(pairs) != len(space):
        raise trace_error(f"{len(pairs)} pairs of padding for {len(space)} spatial dimensions", rule="conv.C4")
    return pairs


def _no_padding(name: str) -> TraceError:
    return trace_error(f"no padding is called {name!r}", rule="conv.C4", fix="use SAME, VALID, or pairs of numbers")


def _transposed_pads(k: int, stride: int, padding: str) -> tuple[int, int]:
    if padding not in ("SAME", "VALID"):
        raise _no_padding(padding)
    total = k + stride - 2 + (max(k - stride, 0) if padding == "VALID" else 0)
    low = k - 1 if padding == "VALID" or stride > k - 1 else -(-total // 2)
    return low, total - low


def _pool(x: Tracer, size: Sizes, stride: Sizes | None, padding: Padding, order: str | None) -> Window:
    if x.ndim < 2:
        raise trace_error(f"pooling takes batch, features and space, got shape {list(x.shape)}", rule="conv.C1")
    _, _, *dims = _places(order, "NC", x.ndim, (0, x.ndim - 1))
    sizes = _each(size, len(dims), "size")
    strides = sizes if stride is None else _each(stride, len(dims), "stride")
    pads = _pads(padding, [x.shape[d] for d in dims], sizes, strides, [1] * len(dims))
    sides = [WindowDim()] * x.ndim
    for d, k, s, (low, high) in zip(dims, sizes, strides, pads, strict=True):
        sides[d] = WindowDim(k, s, low=low, high=high)
    return Window(sides)
