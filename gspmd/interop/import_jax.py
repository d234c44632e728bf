"""Functions written in JAX as programs: lowered by JAX to StableHLO, its dtypes and shardings kept.

The nesting of arguments and results is handed out with a number in place of each array; what a number stands for is
given in the order of the program's own inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any

from gspmd.interop.import_stablehlo import import_stablehlo
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program


@dataclass(frozen=True, slots=True)
class JaxProgram:
    """A program, and how JAX nests its arguments (a tuple) and results, numbers in place of the arrays."""

    program: Program
    arguments: tuple[Any, ...]
    results: Any


def import_jax(function: Callable[..., Any], *arguments: Any, **fixed: Any) -> JaxProgram:
    """The program of a JAX function of positional arguments, arrays or `jax.ShapeDtypeStruct`s.

    Keyword arguments are fixed: the program does not take them. An `AbstractMesh` needs no devices. Shardings of
    arguments (`NamedSharding`), of `with_sharding_constraint` and of a jitted function's `in_shardings` and
    `out_shardings` become annotations. Raises UsageError if JAX is not there or the program has something that ours
    cannot say, and whatever JAX raises.
    """
    try:
        import jax as module
    except ImportError as error:
        raise UsageError(f"jax cannot be imported: {error}", fix="pip install jax") from None
    jax: Any = module
    # Arguments that the function does not use stay arguments: the caller passes them all the same.
    called = update_wrapper(partial(function, **fixed), function) if fixed else function
    # What other platforms lower to (their libraries' custom calls) is not known here; devices are not needed either.
    lowered = jax.jit(called, keep_unused=True).trace(*arguments).lower(lowering_platforms=("cpu",))
    text: str = lowered.as_text(debug_info=True)
    program = import_stablehlo(text, file=getattr(function, "__name__", ""))
    nested, _ = jax.tree.unflatten(lowered.in_tree, range(lowered.in_tree.num_leaves))
    results = jax.tree.unflatten(lowered.out_tree, range(lowered.out_tree.num_leaves))
    return JaxProgram(program, nested, results)
