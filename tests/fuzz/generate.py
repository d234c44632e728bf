"""Draws whole programs: a mesh, parameters, up to a dozen steps of all families, annotated results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Program, Region, Value
from gspmd.ir.rewrite import alive
from gspmd.ir.types import TensorType
from gspmd.ops.annotate import SHARDING_CONSTRAINT
from tests.fuzz import regions
from tests.fuzz.bricks import EXAMPLES, brick
from tests.fuzz.families import MAKERS
from tests.fuzz.layouts import one_in, random_mesh
from tests.fuzz.writer import MOST_ELEMENTS, Writer

_MOST_NODES = 14
_PRECISIONS = ("f64", "f64", "f64", "mixed", "f32", "bf16", "f16")


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the seed of its arguments; which passes are left out, and whether kernels are compiled."""

    program: Program
    seed: int
    without: tuple[str, ...] = ()
    kernels: bool = False


def random_case(seed: int, number: int, passes: tuple[str, ...], devices: int = 24) -> Case:
    """A case, the same for the same seed and number."""
    rng = np.random.default_rng([seed, number])
    w = Writer(rng, random_mesh(rng, devices), int(rng.integers(1 << 30)))
    precision = _PRECISIONS[w.below(len(_PRECISIONS))]
    _parameters(w, precision)
    wanted = 3 + w.below(10)
    for _ in range(4 * wanted):
        if len(w.b.nodes) >= wanted:
            break
        _step(w, precision)
    results = _results(w)
    nodes = alive(w.b.nodes, results)
    used = {v for n in nodes for v in n.operands} | set(results)
    body = Region(tuple(p for p in w.b.params if p in used), nodes, tuple(results))
    without = tuple(p for p in passes if one_in(rng, 4))
    return Case(Program.of("fuzz", body, w.mesh), w.seed, without, one_in(rng, 40))


def _parameters(w: Writer, precision: str) -> None:
    dtype = "f32" if precision == "mixed" else precision
    for _ in range(1 + w.below(2)):
        rank = w.pick(1, 2, 2, 3, 3, 4)
        sizes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16] if rank < 4 else [1, 2, 3, 4, 5, 6]
        shape = [w.pick(*sizes) for _ in range(rank)]
        if one_in(w.rng, 40):
            shape[w.below(rank)] = 0
        w.take(TensorType(dtype if w.below(6) else "i32", tuple(shape)))


def _step(w: Writer, precision: str) -> None:
    choice = w.below(20)
    if choice < 9:
        x = w.some(w.values)
        w.attempt(lambda: [MAKERS[w.below(len(MAKERS))](w, x)])
    elif choice < 17:
        name, examples = EXAMPLES[w.below(len(EXAMPLES))]
        w.attempt(lambda: brick(w, name, examples, precision))
    else:
        made = (regions.loop, regions.branches, regions.call, regions.loop, regions.manual)[w.below(5)]
        w.attempt(lambda: made(w))


def _results(w: Writer) -> list[Value]:
    """The late values and some of the others, annotated now and then; what nobody reads is always among them."""
    read = {v for n in w.b.nodes for v in n.operands}
    loose = [v for v in w.values if v not in read and v not in w.b.params]
    results = loose[-4:] or w.values[-1:]
    if one_in(w.rng, 4):
        results.append(w.some(w.values))
    out: list[Value] = []
    for v in dict.fromkeys(results):
        annotated = one_in(w.rng, 3) and dtype_kind(v.type.dtype) is not None and v.type.size <= MOST_ELEMENTS
        out.append(w(SHARDING_CONSTRAINT, v, sharding=w.sharding(v.type.rank)) if annotated else v)
    return out
