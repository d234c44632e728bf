"""How a case of the sweep is described: a StableHLO module, arguments for it, and how its results are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gspmd.ir.dtypes import DTYPES, dtype_name

Array = NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Shape = tuple[int, ...]
Type = tuple[str, Shape]
Make = Callable[[Draw, str], "Case"]

INTS = ("i8", "i16", "i32", "i64")
UINTS = ("u8", "u16", "u32", "u64")
NIBBLES = ("i4", "u4")
FLOATS = ("f16", "bf16", "f32", "f64")
EIGHTHS = ("f8e4m3fn", "f8e5m2")
COMPLEX = ("c64", "c128")
WHOLE = INTS + UINTS
NUMBERS = WHOLE + FLOATS + COMPLEX
EVERY = ("bool", *NUMBERS)
PARTS = {"c64": "f32", "c128": "f64"}

_ELEMENTS = {
    "bool": "i1",
    "c64": "complex<f32>",
    "c128": "complex<f64>",
    "f8e4m3fn": "f8E4M3FN",
    "f8e5m2": "f8E5M2",
    **{name: f"ui{name[1:]}" for name in DTYPES if name[0] == "u"},
}


@dataclass(frozen=True)
class Case:
    """One program: `main` of `text` on `arrays`.

    `exact` asks for equal bits. Otherwise `terms` is the length of the longest sum behind an element, and `absolute`
    says that the magnitude that errors are measured by is the program's own result on absolute values,
    `elementwise` that it is each result's own, and at least `least`: the size of terms that cancel. `moves`: elements
    go through as they are, subnormal numbers too.
    """

    op: str
    dtype: str
    text: str
    arrays: tuple[Array, ...]
    exact: bool = False
    terms: int = 1
    absolute: bool = False
    elementwise: bool = False
    moves: bool = False
    least: float = 0.0

    @property
    def label(self) -> str:
        """What it is, for messages."""
        return f"{self.op} {self.dtype}"


@dataclass(frozen=True)
class Generator:
    """Draws cases of one op: of each dtype at least one; `weight` asks for more of each."""

    op: str
    dtypes: Sequence[str]
    make: Make
    weight: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


# -- StableHLO text --------------------------------------------------------------------------------------------------


def element(dtype: str) -> str:
    """The element type in MLIR."""
    return _ELEMENTS.get(dtype, dtype)


def tensor(type_: Type) -> str:
    """The tensor type in MLIR."""
    dtype, shape = type_
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element(dtype)}>"


def type_of(x: Array) -> Type:
    """The type of an array."""
    return dtype_name(x.dtype), x.shape


def listed(numbers: Sequence[int]) -> str:
    """An array attribute of i64."""
    return f"array<i64{': ' if numbers else ''}{', '.join(map(str, numbers))}>"


def flags(values: Sequence[bool]) -> str:
    """An array attribute of truth values."""
    return f"array<i1{': ' if values else ''}{', '.join('true' if v else 'false' for v in values)}>"


def pairs(low: Sequence[int], high: Sequence[int]) -> str:
    """A dense attribute of pairs: padding."""
    rows = ", ".join(f"[{a}, {b}]" for a, b in zip(low, high, strict=True))
    return f"dense<[{rows}]> : tensor<{len(low)}x2xi64>" if low else "dense<> : tensor<0x2xi64>"


def apply(name: str, operands: Sequence[str], types: Sequence[Type], results: Sequence[Type], attrs: str = "",
          regions: Sequence[str] = ()) -> str:  # fmt: skip
    """An op in MLIR's generic form."""
    body = f" ({', '.join(regions)})" if regions else ""
    held = f" {{{attrs}}}" if attrs else ""
    args, outs = ", ".join(map(tensor, types)), ", ".join(map(tensor, results))
    return f'"{name}"({", ".join(operands)}){body}{held} : ({args}) -> ({outs})'


def function(types: Sequence[Type], results: Sequence[Type], lines: Sequence[str], returned: Sequence[str]) -> str:
    """A module whose main takes %a0, %a1 ... and returns some values."""
    params = ", ".join(f"%a{i}: {tensor(t)}" for i, t in enumerate(types))
    outs = ", ".join(map(tensor, results))
    body = "\n  ".join(lines)
    back = f"func.return {', '.join(returned)} : {outs}"
    return f"func.func public @main({params}) -> ({outs}) {{\n  {body}\n  {back}\n}}"


def single(name: str, arrays: Sequence[Array], results: Sequence[Type], attrs: str = "", regions: Sequence[str] = ())\
        -> str:  # fmt: skip
    """A module that applies one op to its arguments."""
    types = [type_of(x) for x in arrays]
    operands = [f"%a{i}" for i in range(len(arrays))]
    call = apply(name, operands, types, results, attrs, regions)
    if len(results) == 1:
        return function(types, results, [f"%r = {call}"], ["%r"])
    held = [f"%r#{i}" for i in range(len(results))]
    return function(types, results, [f"%r:{len(results)} = {call}"], held)


def region(params: Sequence[Type], lines: Sequence[str], returned: Sequence[str], types: Sequence[Type]) -> str:
    """A region with parameters %p0, %p1 ...; what it returns may be among them."""
    head = ", ".join(f"%p{i}: {tensor(t)}" for i, t in enumerate(params))
    body = "\n    ".join(lines)
    block = f"^bb0({head}):\n    " if params else ""
    back = f'"stablehlo.return"({", ".join(returned)}) : ({", ".join(map(tensor, types))}) -> ()'
    return f"{{\n    {block}{body}\n    {back}\n  }}"


# -- drawing ---------------------------------------------------------------------------------------------------------


def choose(draw: Draw, options: Sequence[Any]) -> Any:
    """One of some options."""
    return draw(st.sampled_from(options))


def integer(draw: Draw, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return draw(st.integers(low, high))


def flip(draw: Draw) -> bool:
    """A truth value."""
    return draw(st.booleans())


def random(draw: Draw) -> np.random.Generator:
    """A source of numbers for arrays, from one drawn number."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def draw_shape(draw: Draw, low: int = 0, high: int = 3, least: int = 0, most: int = 6) -> Shape:
    """A small shape; a dimension is rarely empty."""
    rank = integer(draw, low, high)
    sizes = [integer(draw, max(least, 1), most) for _ in range(rank)]
    if least == 0 and rank and draw(st.integers(0, 19)) == 13:
        sizes[integer(draw, 0, rank - 1)] = 0
    return tuple(sizes)


def subset(draw: Draw, items: Sequence[Any], least: int = 0) -> tuple[Any, ...]:
    """Some of the items, in their order."""
    kept = [x for x in items if flip(draw)]
    while len(kept) < least:
        kept = sorted({*kept, choose(draw, items)})
    return tuple(kept)


def permutation(draw: Draw, items: Sequence[Any]) -> tuple[Any, ...]:
    """The items in another order."""
    return tuple(draw(st.permutations(list(items))))
