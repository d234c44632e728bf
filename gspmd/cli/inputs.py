"""The arrays that a program of the command line is given: those of --inputs, or random ones by --random."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from gspmd.cli.files import read_arrays
from gspmd.cli.sources import module_of
from gspmd.driver.arguments import accept, input_label
from gspmd.driver.module import Module
from gspmd.driver.sources import unnamed
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.errors import ExecutionError, UsageError
from gspmd.ir.opdef import Array
from gspmd.ir.types import TensorType


def check_inputs(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a seed that is none, and for --inputs together with --random."""
    if arguments.random is not None and arguments.random < 0:
        raise UsageError(f"--random takes a seed of 0 or more, not {arguments.random}")
    if arguments.inputs is not None and arguments.random is not None:
        raise UsageError("--inputs and --random exclude each other")


def module_and_arrays(arguments: argparse.Namespace, seed: int | None) -> tuple[Module, list[Array]]:
    """The program of FILE and the arrays for it: those of --inputs, else random ones of the seed.

    Raises UsageError if the file's are not the program's, and if there is neither for a program that takes some.
    """
    path: str | None = arguments.inputs
    given = None if path is None else read_arrays(path)
    module = module_of(arguments, given)
    names = [v.name for v in module.program.body.params]
    if path is not None and given is not None:
        return module, _matched(given, names, module.input_types, path)
    if seed is None and names:
        raise UsageError(f"the program takes {len(names)} arrays", fix="give --inputs IN.npz or --random SEED")
    rng = np.random.default_rng(seed or 0)
    return module, [_random(rng, t) for t in module.input_types]


def _matched(given: dict[str, Array], names: Sequence[str], types: Sequence[TensorType], path: str) -> list[Array]:
    """The arrays of a file for the inputs of a program: by name, or in order where they have no names.

    Raises UsageError, naming the file, if they are not the program's.
    """
    if len(given) != len(names):
        raise UsageError(f"{path} holds {len(given)} arrays, but the program takes {len(names)}: {', '.join(names)}")
    if set(names) != set(given) and not unnamed(given):
        raise UsageError(f"{path} holds {', '.join(given)}, but the program takes {', '.join(names)}")
    chosen = [given[name] for name in names] if set(names) == set(given) else list(given.values())
    labels = [input_label(i, name) for i, name in enumerate(names)]
    try:
        return [np.asarray(accept(_as_type(x, t), t, s)) for x, t, s in zip(chosen, types, labels, strict=True)]
    except ExecutionError as error:
        raise UsageError(f"{path}: {error.message}", rule=error.rule, fix=error.fix) from None


def _as_type(array: Array, type_: TensorType) -> Array:
    # NumPy's files know no bf16 and the like: they come back as raw bytes of the right size.
    raw = array.dtype.kind == "V" and array.dtype.itemsize == type_.dtype.itemsize
    return array.view(type_.dtype) if raw else array


def _random(rng: np.random.Generator, type_: TensorType) -> Array:
    """Normal floats, integers of 0 to 9, bools."""
    kind = dtype_kind(type_.dtype)
    if kind == "bool":
        return rng.integers(0, 2, type_.shape).astype(np.bool_)
    if kind in ("int", "uint"):
        return rng.integers(0, 2 if type_.dtype.itemsize == 1 else 10, type_.shape).astype(type_.dtype)
    values = rng.standard_normal(type_.shape)
    if kind == "complex":
        values = values + 1j * rng.standard_normal(type_.shape)
    return np.asarray(values).astype(type_.dtype)
