"""Arguments for the parameters of a random program, told by the parameter's name: the same for the same seed.

The name's letters say what the values must be like, so that a program read back from a file, or made smaller, is given
the same kind of arguments: `%x3` distinct non-zero numbers, `%p` positive, `%q` above one, `%u` within one, `%w` whole,
`%i` indices in and out of range, `%d` positive definite matrices, `%r` regular ones, `%s` counters and branch numbers,
`%e` identities of an order, `%b` positions of blocks.
"""

from __future__ import annotations

import re
import zlib

import numpy as np

from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Node, Program
from gspmd.ir.types import TensorType
from gspmd.kernels.finite import limits
from tests.ops.inputs import (
    ABOVE_ONE,
    DEFINITE,
    INDICES,
    POSITIVE,
    REGULAR,
    VARIANCE,
    WHOLE,
    WITHIN_ONE,
    Array,
    values,
    well_conditioned,
)

_KIND = re.compile(r"[a-z]+")


def kind_of(node: Node, number: int) -> str:
    """The letter for an operand of an op."""
    name, type_ = node.op.name, node.operands[number].type
    first, end = INDICES.get(name, (99, 99))
    if first <= number < end:
        return "i"
    if node.regions and type_.rank == 0 and name == "reduce":
        return "e"
    if node.regions and type_.rank == 0 and dtype_kind(type_.dtype) in ("int", "bool"):
        return "s"
    if number in WHOLE.get(name, ()):
        return "w"
    if number in ABOVE_ONE.get(name, ()):
        return "q"
    if name in DEFINITE:
        return "d"
    if name in REGULAR and number == 0:
        return "r"
    if name in POSITIVE or number in VARIANCE.get(name, ()):
        return "p"
    if name in WITHIN_ONE:
        return "u"
    return "i" if name.startswith("shift") and number == 1 else "x"


def argument(name: str, type_: TensorType, seed: int) -> Array:
    """The argument for a parameter."""
    found = _KIND.match(name)
    kind = found[0] if found else "x"
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), *type_.shape])
    family = dtype_kind(type_.dtype)
    if kind == "i" and family in ("int", "uint"):
        least = 0 if family == "uint" else -2
        return rng.integers(least, 14, type_.shape).astype(type_.dtype)
    if kind == "s" and family in ("int", "uint", "bool"):
        return rng.integers(0, 2, type_.shape).astype(type_.dtype)
    if kind == "e" and family in ("int", "float", "uint"):
        low, high = limits(type_.dtype)
        return np.full(type_.shape, high if family == "int" else low, type_.dtype)
    x = values(rng, type_, positive=kind in ("p", "q", "w"))
    if kind == "q":
        return x + x.dtype.type(1)
    if kind == "w":
        return np.ceil(x)
    if (
        kind in ("d", "r")
        and type_.rank >= 2
        and 0 not in type_.shape
        and (kind == "r" or type_.shape[-1] == type_.shape[-2])
    ):
        return well_conditioned(x, definite=kind == "d")
    return (x / 2).astype(type_.dtype) if kind == "u" and family in ("float", "complex") else x


def arguments(program: Program, seed: int) -> list[Array]:
    """One array per parameter of a program."""
    return [argument(v.name, t.bare, seed) for v, t in zip(program.body.params, program.inputs, strict=True)]
