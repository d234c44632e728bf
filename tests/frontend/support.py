"""Run a function as a program, and as JAX does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from gspmd.frontend.trace import Traced, trace
from gspmd.frontend.tree import flatten
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from tests.ops.evaluate import evaluate

__all__ = ["assert_like_jax", "evaluate", "run", "traced"]


def traced(function: Callable[..., Any], *arguments: Any) -> Traced:
    """The program of a function, verified."""
    found = trace(function, *arguments)
    verify(found.program, OPS)
    return found


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the program of a function gives for arguments."""
    made = traced(function, *arguments)
    return made.out_tree.unflatten(evaluate(made.program, *map(np.asarray, flatten(arguments)[0])))


def assert_like_jax(mine: Any, theirs: Any, terms: int = 1) -> None:
    """Leaves of one dtype, shape and value, up to the rounding of sums of so many terms."""
    found, wanted = flatten(mine)[0], jax.tree.leaves(theirs)
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        result = compare(x, np.asarray(y), terms=terms)
        assert result.ok, result.message
