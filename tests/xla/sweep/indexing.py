"""gather and scatter: all dimension numbers, indices out of range, every kind of region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gspmd.ir.dtypes import DTYPES
from tests.xla.sweep import values
from tests.xla.sweep.cases import (
    COMPLEX,
    EIGHTHS,
    EVERY,
    UINTS,
    WHOLE,
    Array,
    Case,
    Draw,
    Generator,
    Shape,
    Type,
    apply,
    choose,
    flip,
    integer,
    listed,
    permutation,
    random,
    region,
    single,
    subset,
)
from tests.xla.sweep.reductions import combining


@dataclass(frozen=True)
class Numbers:
    """The dimension numbers that gather and scatter share, and the shapes that go with them."""

    operand: Shape
    indices: Shape
    sliced: Shape
    slices: Shape
    offset: Shape
    collapsed: Shape
    operand_batch: Shape
    indices_batch: Shape
    start_map: Shape
    vector_dim: int

    def text(self, names: tuple[str, str, str, str, str]) -> str:
        """The attribute's inside under the names that one of the two ops has."""
        fields = zip(names, (self.offset, self.collapsed, self.operand_batch, self.indices_batch, self.start_map),
                     strict=True)  # fmt: skip
        held = [f"{name} = [{', '.join(map(str, dims))}]" for name, dims in fields if dims]
        return ", ".join([*held, f"index_vector_dim = {self.vector_dim}"])


def _numbers(draw: Draw, indexed: int = 0) -> Numbers:
    """Operand dimensions are batching, collapsed or sliced; some of them (so many at least) are indexed."""
    rank = integer(draw, 1, 4)
    operand = tuple(integer(draw, 1, 5) for _ in range(rank))
    kinds = [choose(draw, ("slice", "slice", "collapse", "batch")) for _ in range(rank)]
    operand_batch = permutation(draw, [d for d in range(rank) if kinds[d] == "batch"])
    collapsed = tuple(d for d in range(rank) if kinds[d] == "collapse")
    rest = [d for d in range(rank) if kinds[d] != "batch"]
    if not rest and indexed:
        kinds[0], rest = "slice", [0]
        operand_batch = tuple(d for d in operand_batch if d != 0)
    start_map = permutation(draw, subset(draw, rest, indexed))
    sliced = tuple(1 if kinds[d] != "slice" else integer(draw, 1, operand[d]) for d in range(rank))
    own = [integer(draw, 1, 4) for _ in range(integer(draw, 0, 2))]
    marked = [(n, -1) for n in own] + [(operand[d], d) for d in operand_batch]
    order = permutation(draw, marked)
    places = {d: i for i, (_, d) in enumerate(order) if d >= 0}
    scattered = tuple(n for n, _ in order)
    if len(start_map) == 1 and flip(draw):
        vector_dim, indices = len(scattered), scattered
    else:
        vector_dim = integer(draw, 0, len(scattered))
        indices = (*scattered[:vector_dim], len(start_map), *scattered[vector_dim:])
    moved = [d + (d >= vector_dim and len(indices) > len(scattered)) for d in range(len(scattered))]
    indices_batch = tuple(moved[places[d]] for d in operand_batch)
    window = [sliced[d] for d in range(rank) if kinds[d] == "slice"]
    total = len(window) + len(scattered)
    offset = tuple(sorted(permutation(draw, range(total))[: len(window)]))
    from_window, from_batch = iter(window), iter(scattered)
    slices = tuple(next(from_window) if d in offset else next(from_batch) for d in range(total))
    # Operand batching dims are listed in order, as is what they pair with.
    batches = sorted(zip(operand_batch, indices_batch, strict=True))
    return Numbers(operand, indices, sliced, slices, offset, collapsed, tuple(b[0] for b in batches),
                   tuple(b[1] for b in batches), start_map, vector_dim)  # fmt: skip


def _indices(draw: Draw, n: Numbers) -> Array:
    """Indices within the operand, and beyond it on either side."""
    kind = choose(draw, ("i8", "i32", "i64", "u8", "u32"))
    rng, wild = random(draw), integer(draw, 0, 2)
    drawn = rng.integers(-wild if kind not in UINTS else 0, max(n.operand) + wild, n.indices)
    return drawn.astype(DTYPES[kind])


def _gather(draw: Draw, dtype: str) -> Case:
    n = _numbers(draw)
    x = values.wide(random(draw), dtype, n.operand)
    names = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims",
             "start_index_map")  # fmt: skip
    attrs = f"dimension_numbers = #stablehlo.gather<{n.text(names)}>, slice_sizes = {listed(n.sliced)}"
    if flip(draw):
        attrs += ", indices_are_sorted = false"
    arrays = x, _indices(draw, n)
    return Case("gather", dtype, single("stablehlo.gather", arrays, [(dtype, n.slices)], attrs), arrays, exact=True,
                moves=True)  # fmt: skip


_SCATTER_NAMES = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
                  "scatter_dims_to_operand_dims")  # fmt: skip


def _monoids(dtype: str) -> tuple[str, ...]:
    if dtype == "bool":
        return ("and", "or", "xor", "max", "min")
    if dtype in COMPLEX:
        return ("add", "mul")
    return ("add", "mul", "max", "min") + (("and", "or", "xor") if dtype in WHOLE else ())


def _scatter(draw: Draw, dtype: str) -> Case:
    n, t = _numbers(draw, 1), (dtype, ())
    kind = choose(draw, (*_monoids(dtype), "set", "other") if dtype not in EIGHTHS else ("set",))
    fill = values.finite if kind in ("add", "mul", "other") else values.wide
    arrays = [fill(random(draw), dtype, n.operand), _indices(draw, n), fill(random(draw), dtype, n.slices)]
    if kind == "set":
        body = region([t, t], [], ["%p1"], [t])
    elif kind == "other":
        body = _other(dtype)
    else:
        body = combining(kind, dtype, flip(draw))
    attrs = f"scatter_dimension_numbers = #stablehlo.scatter<{n.text(_SCATTER_NAMES)}>"
    text = single("stablehlo.scatter", arrays, [(dtype, n.operand)], attrs, [body])
    exact = dtype in ("bool", *WHOLE) or kind == "set"
    terms = int(np.prod(n.slices)) + 1
    extremum = kind in ("max", "min")
    return Case("scatter", dtype, text, tuple(arrays), exact=exact, terms=terms, absolute=not exact and not extremum,
                elementwise=extremum, moves=kind == "set")  # fmt: skip


def _other(dtype: str) -> str:
    """A region that no monoid stands for: twice the old value less the new one; of bools the old and not the new."""
    t: Type = (dtype, ())
    if dtype == "bool":
        lines = [
            f"%n = {apply('stablehlo.not', ['%p1'], [t], [t])}",
            f"%c = {apply('stablehlo.and', ['%p0', '%n'], [t, t], [t])}",
        ]
    else:
        lines = [
            f"%d = {apply('stablehlo.add', ['%p0', '%p0'], [t, t], [t])}",
            f"%c = {apply('stablehlo.subtract', ['%d', '%p1'], [t, t], [t])}",
        ]
    return region([t, t], lines, ["%c"], [t])


def _scatter_several(draw: Draw, dtype: str) -> Case:
    """Two operands under the same indices."""
    n, t = _numbers(draw, 1), (dtype, ())
    kinds = [choose(draw, ("add", "set", "max") if dtype not in COMPLEX else ("add", "set")) for _ in range(2)]
    operands = [values.finite(random(draw), dtype, n.operand) for _ in kinds]
    updates = [values.finite(random(draw), dtype, n.slices) for _ in kinds]
    lines, back = list[str](), list[str]()
    for i, kind in enumerate(kinds):
        if kind == "set":
            back.append(f"%p{2 + i}")
            continue
        op = {"add": "add", "max": "maximum"}[kind]
        lines.append(f"%c{i} = {apply(f'stablehlo.{op}', [f'%p{i}', f'%p{2 + i}'], [t, t], [t])}")
        back.append(f"%c{i}")
    arrays = (*operands, _indices(draw, n), *updates)
    attrs = f"scatter_dimension_numbers = #stablehlo.scatter<{n.text(_SCATTER_NAMES)}>"
    text = single("stablehlo.scatter", arrays, [(dtype, n.operand)] * 2, attrs, [region([t] * 4, lines, back, [t, t])])
    exact = dtype in WHOLE
    return Case("scatter", dtype, text, arrays, exact=exact, terms=int(np.prod(n.slices)) + 1, absolute=not exact)


GENERATORS = (
    Generator("gather", EVERY + EIGHTHS, _gather, 8),
    Generator("scatter", EVERY, _scatter, 12),
    Generator("scatter", ("i32", "f32", "f64", "c64"), _scatter_several, 4),
)
