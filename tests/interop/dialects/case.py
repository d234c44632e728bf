"""A tiny module with one op of interest, its arguments, and what it must compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Want = Callable[..., Any]

_ELEMENTS = {
    "bool": "i1", "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
    "complex64": "complex<f32>", "complex128": "complex<f64>", "int4": "i4", "uint4": "ui4",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """The op's name, the module's text, arguments, wanted results, and how many terms their sums have."""

    op: str
    text: str
    arguments: tuple[Any, ...]
    want: Want
    terms: int = 16

    def wanted(self) -> tuple[Any, ...]:
        """What the module must compute."""
        return results_of(self.want, self.arguments)


def results_of(want: Want, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a function gives, as a tuple of arrays."""
    found = want(*arguments)
    return tuple(np.asarray(y) for y in (found if isinstance(found, tuple) else (found,)))


def mlir(array: Any) -> str:
    """The type of an array in MLIR."""
    a = np.asarray(array)
    name = a.dtype.name
    element = _ELEMENTS.get(name) or f"{'ui' if name[0] == 'u' else 'i'}{8 * a.dtype.itemsize}"
    return "tensor<" + "".join(f"{n}x" for n in a.shape) + element + ">"


def function(body: str, arguments: str, results: str, before: str = "") -> str:
    """A module of one public function, and what stands before it."""
    return f"module {{\n{before}func.func @main({arguments}) -> ({results}) {{\n{body}\n}}\n}}\n"


def generic(op: str, want: Want, *arrays: Any, attrs: str = "", regions: str = "", terms: int = 16) -> Case:
    """A module of one op in MLIR's generic form, applied to the module's arguments."""
    arguments = tuple(np.asarray(a) for a in arrays)
    types = [mlir(a) for a in arguments]
    results = [mlir(y) for y in results_of(want, arguments)]
    names = [f"%a{i}" for i in range(len(types))]
    count = len(results)
    given = f"{f' {{{attrs}}}' if attrs else ''}"
    body = f'%r{f":{count}" if count > 1 else ""} = "{op}"({", ".join(names)}) {regions}{given}'
    body += f" : ({', '.join(types)}) -> ({', '.join(results)})\n"
    returned = [f"%r#{i}" for i in range(count)] if count > 1 else ["%r"]
    body += f"return {', '.join(returned)} : {', '.join(results)}"
    declared = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    return Case(op, function(body, declared, ", ".join(results)), arguments, want, terms)


def module(op: str, body: str, want: Want, before: str = "", terms: int = 16, **named: Any) -> Case:
    """A module whose function has the body; `$x` stands for the type of an argument x, `$0` for a result's type."""
    arguments = tuple(np.asarray(a) for a in named.values())
    results = [mlir(y) for y in results_of(want, arguments)]
    types = {n: mlir(a) for n, a in zip(named, arguments, strict=True)} | {str(i): t for i, t in enumerate(results)}
    for name in sorted(types, key=len, reverse=True):
        body, before = body.replace(f"${name}", types[name]), before.replace(f"${name}", types[name])
    declared = ", ".join(f"%{n}: {types[n]}" for n in named)
    return Case(op, function(body, declared, ", ".join(results), before), arguments, want, terms)


def folding(op: str, dtype: str = "f32", result: str = "", before: str = "") -> str:
    """A region of two scalars that are combined by one op."""
    t, r = f"tensor<{dtype}>", f"tensor<{result or dtype}>"
    return (
        f"({{ ^bb0(%p: {t}, %q: {t}):\n{before}"
        f'%s = "{op}"(%p, %q) : ({t}, {t}) -> {r}\n'
        f'"stablehlo.return"(%s) : ({r}) -> ()\n}})'
    )


def floats(*shape: int, seed: int = 0) -> Any:
    """Numbers between -0.9 and 0.9, none of them near zero."""
    rng = np.random.default_rng(seed)
    return (rng.uniform(0.1, 0.9, shape) * rng.choice([-1, 1], shape)).astype(np.float32)


INT4 = np.dtype(ml_dtypes.int4)
