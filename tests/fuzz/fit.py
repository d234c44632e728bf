"""Makes a value of one type out of a value of another: conversion, transposition, reshape, slice, pad, broadcast."""

from __future__ import annotations

from itertools import permutations
from math import prod

import numpy as np

from gspmd.ir.attrs import Dense
from gspmd.ir.dtypes import DType, dtype_kind
from gspmd.ir.graph import Value
from gspmd.ir.types import TensorType
from gspmd.ops.elementwise import COMPARE, CONVERT, REAL
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE, TRANSPOSE
from gspmd.ops.literal import CONSTANT
from gspmd.ops.moving import CONCATENATE, PAD, REVERSE, SLICE
from gspmd.ops.reduce import REDUCE
from tests.fuzz.layouts import one_in
from tests.fuzz.writer import Writer, shape_of


def number(w: Writer, dtype: DType, value: float) -> Value:
    """A scalar constant."""
    return w(CONSTANT, value=Dense(np.array(value).astype(dtype)))


def fit(w: Writer, x: Value, wanted: TensorType) -> Value:
    """The value as `wanted`."""
    x = _as_dtype(w, x, wanted.dtype)
    if x.type.shape == wanted.shape:
        return x
    orders = [p for p in permutations(range(x.type.rank)) if tuple(x.type.shape[d] for d in p) == wanted.shape]
    if orders:
        return w(TRANSPOSE, x, permutation=orders[w.below(len(orders))])
    if x.type.size == wanted.size and (x.type.size or not one_in(w.rng, 2)):
        return w(RESHAPE, x, shape=shape_of(wanted.shape))
    x = _with_rank(w, x, wanted)
    return _with_sizes(w, x, wanted.shape)


def _as_dtype(w: Writer, x: Value, dtype: DType) -> Value:
    if x.type.dtype == dtype:
        return x
    if dtype_kind(dtype) == "bool":
        zero = w(BROADCAST_IN_DIM, number(w, x.type.dtype, 0), shape=shape_of(x.type.shape), dims=())
        directions = ("NE", "EQ") if dtype_kind(x.type.dtype) == "complex" else ("GT", "LE")
        return w(COMPARE, x, zero, direction=directions[w.below(2)])
    if dtype_kind(x.type.dtype) == "complex" and dtype_kind(dtype) != "complex":
        x = w(REAL, x)
    return x if x.type.dtype == dtype else w(CONVERT, x, dtype=dtype)


def _with_rank(w: Writer, x: Value, wanted: TensorType) -> Value:
    """As many dimensions as wanted: some reduced or cut to one, or new ones between the old."""
    while x.type.rank > wanted.rank:
        d = w.below(x.type.rank)
        if one_in(w.rng, 2) and dtype_kind(x.type.dtype) != "complex":
            x = w(REDUCE, x, dims=(d,), monoid=("max", "min")[w.below(2)])
            continue
        at = w.below(max(x.type.shape[d], 1))
        start = tuple(at if i == d else 0 for i in range(x.type.rank))
        limit = tuple(min(at + 1, n) if i == d else n for i, n in enumerate(x.type.shape))
        x = w(SLICE, x, start=start, limit=limit, stride=(1,) * x.type.rank)
        shape = [n for i, n in enumerate(x.type.shape) if i != d]
        x = (
            w(RESHAPE, x, shape=shape_of(shape))
            if prod(x.type.shape) == prod(shape)
            else w(REDUCE, x, dims=(d,), monoid="max")
        )
    if x.type.rank < wanted.rank:
        dims = tuple(sorted(int(d) for d in w.rng.choice(wanted.rank, x.type.rank, replace=False)))
        shape = list(wanted.shape)
        for d, n in zip(dims, x.type.shape, strict=True):
            shape[d] = n
        x = w(BROADCAST_IN_DIM, x, shape=shape_of(shape), dims=dims)
    return x


def _with_sizes(w: Writer, x: Value, shape: tuple[int, ...]) -> Value:
    have = x.type.shape
    if any(a == 1 < b for a, b in zip(have, shape, strict=True)) and all(
        a in (1, b) for a, b in zip(have, shape, strict=True)
    ):
        return w(BROADCAST_IN_DIM, x, shape=shape_of(shape), dims=tuple(range(x.type.rank)))
    if any(a > b for a, b in zip(have, shape, strict=True)):
        start = tuple(w.below(a - b + 1) if a > b else 0 for a, b in zip(have, shape, strict=True))
        limit = tuple(s + min(a, b) for s, a, b in zip(start, have, shape, strict=True))
        x = w(SLICE, x, start=start, limit=limit, stride=(1,) * x.type.rank)
    short = [d for d, (a, b) in enumerate(zip(x.type.shape, shape, strict=True)) if a < b]
    if len(short) == 1 and shape[short[0]] <= 2 * x.type.shape[short[0]] and one_in(w.rng, 3):
        d = short[0]
        more = shape[d] - x.type.shape[d]
        limit = tuple(more if i == d else n for i, n in enumerate(x.type.shape))
        cut = w(SLICE, w(REVERSE, x, dims=(d,)), start=(0,) * x.type.rank, limit=limit, stride=(1,) * x.type.rank)
        return w(CONCATENATE, x, cut, dimension=d)
    if short:
        room = [b - a for a, b in zip(x.type.shape, shape, strict=True)]
        low = tuple(w.below(r + 1) for r in room)
        high = tuple(r - a for r, a in zip(room, low, strict=True))
        fill = number(w, x.type.dtype, w.pick(1, 1, 0))
        x = w(PAD, x, fill, low=low, high=high, interior=(0,) * x.type.rank)
    return x
