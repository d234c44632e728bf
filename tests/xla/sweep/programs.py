"""Programs that JAX lowers: functions of lax, numpy, linalg and special, some hundred of them, on several dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gspmd.ir.dtypes import DTYPES
from tests.xla.sweep import values
from tests.xla.sweep.cases import Array, Case

F = ("f32", "f64")
LOW = ("f16", "bf16", "f32", "f64")
C = ("c64", "c128")
FC = F + C
N = ("i32", "i64", "u8")
ALL = ("bool", "i8", "i32", "i64", "u8", "u32", "f16", "bf16", "f32", "f64", "c64", "c128")


@dataclass(frozen=True)
class Lowered:
    """A function of JAX arrays, the arrays that it takes (`positive:3x4`), and the dtypes that it is lowered for.

    `terms` bounds the roundings behind a result; an argument that names a dtype of its own (`i32=index:5`) keeps it.
    """

    name: str
    function: Callable[..., Any]
    takes: str
    dtypes: Sequence[str] = F
    terms: int = 100
    least: float = 1.0


def _array(spec: str, dtype: str, rng: np.random.Generator) -> Array:
    kind, _, shape_text = spec.partition(":")
    own, _, kind = kind.rpartition("=")
    dtype = own or dtype
    shape = tuple(int(n) for n in shape_text.split("x") if n)
    held = DTYPES[dtype]
    if kind == "index":
        return rng.integers(-2, 8, shape).astype(held)
    if kind == "definite":
        a = values.ordinary(rng, dtype, shape, 0.5)
        return (a @ np.swapaxes(a.conj(), -1, -2) + 2 * np.eye(shape[-1])).astype(held)
    if kind == "regular":
        return (values.ordinary(rng, dtype, shape, 0.5) + 3 * np.eye(shape[-2], shape[-1])).astype(held)
    x = values.finite(rng, dtype, shape)
    if kind == "positive":
        return (np.abs(x) + 0.1).astype(held)
    if kind == "unit":
        return (x / (1.2 + np.abs(x))).astype(held)
    if kind == "fraction":
        return (0.05 + 0.9 * rng.uniform(0, 1, shape)).astype(held)
    if kind == "wide":
        return values.wide(rng, dtype, shape)
    return x


def lowered_case(program: Lowered, dtype: str, seed: int) -> Case:
    """The case of a program for a dtype."""
    import jax

    rng = np.random.default_rng([seed, *program.name.encode(), *dtype.encode()])
    arrays = tuple(_array(spec, dtype, rng) for spec in program.takes.split())
    with jax.enable_x64(True):
        text = jax.jit(program.function, keep_unused=True).lower(*arrays).as_text()
    exact = dtype == "bool"
    return Case(program.name, dtype, text, arrays, exact=exact, terms=program.terms, least=program.least,
                elementwise=program.least == 0.0)  # fmt: skip


def program_cases(seed: int) -> Iterator[Case]:
    """Every program for each of its dtypes."""
    from tests.xla.sweep.program_list import PROGRAMS

    for program in PROGRAMS:
        for dtype in program.dtypes:
            yield lowered_case(program, dtype, seed)
