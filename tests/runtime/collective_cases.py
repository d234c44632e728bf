"""Calls of every collective with arrays of all kinds, for tests that compare transports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from gspmd.ir.axes import Axes
from gspmd.ir.mesh import Axis, Mesh

DTYPES = [
    np.dtype(t)
    for t in (
        np.float32,
        np.float64,
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        np.int8,
        np.uint16,
        np.int64,
        np.bool_,
        np.complex64,
    )
]
MESHES = {
    1: [Mesh({"a": 1})],
    2: [Mesh({"a": 2}), Mesh({"a": 2}, device_order=[1, 0])],
    3: [Mesh({"a": 3}), Mesh({"a": 3, "b": 1})],
    4: [Mesh({"a": 2, "b": 2}), Mesh({"a": 4}), Mesh({"a": 2, "b": 2}, device_order=[3, 1, 0, 2])],
    8: [Mesh({"a": 2, "b": 4})],
    12: [Mesh({"a": 2, "b": 6})],
}


class Call(NamedTuple):
    """A method of a transport, the mesh, one array per device and the other arguments."""

    method: str
    mesh: Mesh
    xs: list[np.ndarray]
    args: tuple[Any, ...]


def add(xs: Sequence[np.ndarray]) -> np.ndarray:
    """A sum whose bits depend on the order of the contributions; narrow floats accumulate in f32."""
    if xs[0].dtype == np.bool_:
        return np.logical_or.reduce(np.stack(xs))
    narrow = xs[0].dtype.itemsize < 4 and not np.issubdtype(xs[0].dtype, np.integer)
    total = xs[0].astype(np.float32) if narrow else xs[0].copy()
    for x in xs[1:]:
        total = total + x.astype(total.dtype)
    return total.astype(xs[0].dtype)


def later(xs: Sequence[np.ndarray]) -> np.ndarray:
    """Neither commutative nor in memory of its own: the last contribution."""
    return xs[-1]


def axis_lists(mesh: Mesh) -> list[Axes]:
    """All single axes, both orders of two, and the pieces of an axis of 4 or 6."""
    whole = [mesh.axis(name) for name in mesh.axis_names]
    out: list[Axes] = [(a,) for a in whole]
    if len(whole) == 2:
        out += [(whole[0], whole[1]), (whole[1], whole[0])]
    for a in whole:
        if a.size in (4, 6):
            out += [
                (Axis(a.name, 1, 2),),
                (Axis(a.name, 2, a.size // 2),),
                (Axis(a.name, 2, a.size // 2), Axis(a.name, 1, 2)),
            ]
    return out


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Numbers without structure, so that order and place of everything show."""
    x = rng.standard_normal(shape) * 10
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    if dtype.kind in "biu":
        x = rng.integers(0, 2 if dtype.kind == "b" else 100, shape)
    return np.asarray(x).astype(dtype)


def shaped_calls(mesh: Mesh, axes: Axes, shape: tuple[int, ...], dtype: np.dtype, seed: int) -> Iterator[Call]:
    """Every collective that the shape allows, over these axes."""
    rng = np.random.default_rng(seed)
    size = int(np.prod([a.size for a in axes]))
    xs = [values(rng, shape, dtype) for _ in range(mesh.size)]
    if len(shape) > 1 and seed % 2:
        xs = [np.asfortranarray(x) for x in xs]
    for combine in (add, later):
        yield Call("all_reduce", mesh, xs, (axes, combine))
    pairs = [(int(s), int(d)) for d, s in enumerate(rng.integers(0, size, size)) if rng.random() < 0.7]
    yield Call("permute", mesh, xs, (axes, tuple(pairs)))
    yield Call("permute", mesh, xs, (axes, tuple((i, (i + 1) % size) for i in range(size))))
    for dim in range(len(shape)):
        yield Call("all_gather", mesh, xs, (axes, dim))
        if shape[dim] % size == 0:
            for combine in (add, later):
                yield Call("reduce_scatter", mesh, xs, (axes, dim, combine))
            for other in range(len(shape)):
                yield Call("all_to_all", mesh, xs, (axes, dim, other))


def all_calls(size: int) -> Iterator[Call]:
    """The cases for a number of devices: all dtypes and axis lists, shapes from scalars to several messages."""
    shapes = [(), (0, 3), (24,), (12, 5, 24), (1, 24, 2), (24, 241)]
    seed = 0
    for mesh in MESHES[size]:
        for axes in axis_lists(mesh):
            for shape in shapes:
                seed += 1
                for dtype in (DTYPES[seed % len(DTYPES)], np.dtype(np.float32)):
                    yield from shaped_calls(mesh, axes, shape, dtype, seed)
        for dtype in DTYPES:
            for shape in shapes[3:]:
                seed += 1
                yield from shaped_calls(mesh, axis_lists(mesh)[-1], shape, dtype, seed)
