"""Arguments for one application of an op: values that hide no mistake.

No zeros, all distinct where the dtype has enough values, no symmetry, and inside the domain of the op; indices lie both
inside and outside of their range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.graph import Node, Program
from gspmd.ir.types import TensorType
from gspmd.kernels.finite import limits

Array = NDArray[Any]

# Ops whose real operands must be positive, and which of them above 1.
POSITIVE = frozenset(
    ("log", "log_plus_one", "power", "rsqrt", "sqrt", "lgamma", "digamma", "polygamma", "zeta", "acosh")
)
ABOVE_ONE = {"acosh": (0,), "zeta": (0,)}
# Ops on operands between -1 and 1; on whole numbers; on variances.
WITHIN_ONE = frozenset(("tan", "acos", "asin", "atanh", "erf_inv"))
WHOLE = {"polygamma": (0,)}
VARIANCE = {"batch_norm_inference": (4,), "batch_norm_grad": (3,)}
# Ops on positive definite matrices, and on matrices that are far from singular.
DEFINITE = frozenset(("cholesky",))
REGULAR = frozenset(("triangular_solve", "solve", "lu", "qr"))
# Ops that are about numbers that are not finite.
NOT_FINITE = frozenset(("is_finite", "is_inf", "is_pos_inf", "is_neg_inf"))
# The first operand that is an index (and the one after the last).
INDICES = {
    "gather": (1, 2),
    "scatter": (1, 2),
    "dynamic_slice": (1, 99),
    "dynamic_update_slice": (2, 99),
    "random_block": (1, 99),
}


def example_inputs(program: Program, seed: int = 0) -> list[Array]:
    """One array per input of a program that applies one op to its inputs; the same for the same seed."""
    rng = np.random.default_rng(seed)
    node = program.body.nodes[-1]
    return [operand_values(rng, node, i) for i in range(len(node.operands))]


def operand_values(rng: np.random.Generator, node: Node, number: int) -> Array:
    """Values for one operand of a node."""
    name, type_ = node.op.name, node.operands[number].type
    first, end = INDICES.get(name, (99, 99))
    if first <= number < end:
        high = max(node.operands[0].type.shape, default=1)
        return rng.integers(-2, high + 2, type_.shape).astype(type_.dtype)
    if name.startswith("shift") and number == 1:
        return rng.integers(0, 8 * type_.dtype.itemsize + 2, type_.shape).astype(type_.dtype)
    if node.regions and type_.rank == 0 and name == "reduce":
        low, high = limits(type_.dtype)
        return np.array(high if dtype_kind(type_.dtype) == "int" else low, type_.dtype)
    if node.regions and type_.rank == 0 and dtype_kind(type_.dtype) == "int":
        return np.array(seed_scalar(rng), type_.dtype)
    found = values(rng, type_, positive=name in POSITIVE or number in VARIANCE.get(name, ()))
    if number in WHOLE.get(name, ()):
        return np.ceil(found)
    if number in ABOVE_ONE.get(name, ()):
        return found + found.dtype.type(1)
    if name in DEFINITE or (name in REGULAR and number == 0):
        return well_conditioned(found, definite=name in DEFINITE)
    if name == "clamp" and number != 1 and dtype_kind(type_.dtype) != "uint":
        bound = np.abs(found) / 2  # the lower bound below the upper, some elements beyond either
        return (-bound if number == 0 else bound).astype(type_.dtype)
    if name in NOT_FINITE:
        found.reshape(-1)[::3] = np.inf
        found.reshape(-1)[2::3] *= -np.inf
        found.reshape(-1)[1::5] = np.nan
    return (found / 2).astype(type_.dtype) if name in WITHIN_ONE else found


def well_conditioned(x: Array, definite: bool) -> Array:
    """The matrices with a weight on their diagonals, Hermitian and positive definite if asked."""
    n = x.shape[-1]
    if definite:
        x = x @ np.swapaxes(x.conj(), -1, -2)
    return (x + 3 * np.eye(x.shape[-2], n, dtype=x.dtype)).astype(x.dtype)


def seed_scalar(rng: np.random.Generator) -> int:
    """A small number for loop counters and branch indices."""
    return int(rng.integers(0, 2))


def values(rng: np.random.Generator, type_: TensorType, positive: bool = False) -> Array:
    """Distinct non-zero values of a type in random order, floats between -2 and 2."""
    kind, size = dtype_kind(type_.dtype), type_.size
    if kind == "bool":
        flat = rng.permutation(np.arange(size) % 3 > 0)
    elif kind in ("int", "uint"):
        low, high = (int(np.clip(n, -(2**62), 2**62)) for n in limits(type_.dtype))
        line = np.arange(1, size + 1) % max(high - 1, 1) + 1
        flat = rng.permutation(line) * (1 if kind == "uint" or positive else rng.choice([-1, 1], size))
        flat = np.clip(flat, low, high)
    else:
        flat = _floats(rng, size, positive)
        if kind == "complex":
            flat = flat + 1j * _floats(rng, size, positive)
    return flat.reshape(type_.shape).astype(type_.dtype)


def _floats(rng: np.random.Generator, size: int, positive: bool) -> Array:
    line = (np.arange(size) + rng.uniform(0.2, 0.8, size)) / max(size, 1) * 1.7 + 0.2
    return rng.permutation(line) * (1 if positive else rng.choice([-1.0, 1.0], size))
