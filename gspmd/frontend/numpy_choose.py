"""Choices among several arrays, element by element, and indices as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

from gspmd.frontend.config import default_int
from gspmd.frontend.numpy_core import (
    broadcast_shapes,
    broadcast_to,
    cast_to,
    common_dtype,
    full_of,
    lift,
    normal_axis,
    shape_of,
    spread,
)
from gspmd.frontend.numpy_index import along_axis, index_values
from gspmd.frontend.numpy_logic import equal
from gspmd.frontend.numpy_math import clip, floor_divide, remainder, where
from gspmd.frontend.numpy_pad import elements
from gspmd.frontend.numpy_shape import ravel
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, as_sequence, emit, is_scalar
from gspmd.ir.dtypes import is_integer
from gspmd.ops.indexing import SCATTER


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Tracer:
    """Of several arrays the first whose condition holds, else the default."""
    if len(condlist) != len(choicelist) or not condlist:
        raise trace_error(f"{len(condlist)} conditions for {len(choicelist)} choices", rule="select.C1")
    dtype = common_dtype(*choicelist, default)
    shape = broadcast_shapes(*(shape_of(x) for x in (*condlist, *choicelist, default)))
    found = spread(default, dtype, shape)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = where(condition, spread(choice, dtype, shape), found)
    return found


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **keywords: Any) -> Tracer:
    """A function by pieces: of the last condition that holds the function of x, or the number, in x's dtype.

    One more function than conditions is for where none holds, else there are zeros. Every function sees all of x.
    """
    lifted = lift(x)
    conditions = [condlist] if not isinstance(condlist, (list, tuple)) else list(cast("Sequence[Any]", condlist))
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise trace_error(f"{len(conditions)} conditions for {len(funclist)} functions", rule="piecewise.C1")

    def value(function: Any) -> Tracer:
        found: ArrayLike = (
            cast("Callable[..., Any]", function)(lifted, *args, **keywords) if callable(function) else function
        )
        return spread(found, lifted.dtype, lifted.shape)

    found = value(funclist[-1]) if len(funclist) > len(conditions) else full_of(0, lifted.dtype, lifted.shape)
    for condition, function in zip(conditions, funclist, strict=False):
        found = where(condition, value(function), found)
    return found


def choose(a: ArrayLike, choices: Sequence[ArrayLike], mode: str = "clip") -> Tracer:
    """At each place the element of the array whose number stands there; numbers outside are clipped, or wrap around."""
    number = lift(a)
    if mode not in ("clip", "wrap") or not is_integer(number.dtype):
        raise trace_error(
            f"choose by {number.type.bare.text()} in mode {mode!r}",
            rule="choose.C1",
            fix="give integers, and the mode clip or wrap: a program raises nothing when it runs",
        )
    number = clip(number, 0, len(choices) - 1) if mode == "clip" else remainder(number, len(choices))
    conditions = [equal(number, i) for i in range(len(choices))]
    return select(conditions[:-1], choices[:-1], choices[-1]) if len(choices) > 1 else select(conditions, choices)


def compress(condition: Any, x: ArrayLike, axis: int | None = None) -> Tracer:
    """The elements along an axis (None: in row-major order) for which a known condition holds."""
    from_left = ravel(x) if axis is None else lift(x)
    d = normal_axis(axis or 0, from_left.ndim)
    if isinstance(condition, Tracer):
        raise trace_error("the shape of compress depends on a traced condition", rule="compress.C1", fix="use where")
    kept = [i for i, held in enumerate(cast("Sequence[Any]", condition)) if held]
    return elements(from_left, d, kept)


def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int) -> Tracer:
    """A copy of x with values at indices of their own along an axis, for each place of the other dimensions.

    NumPy's function changes x instead; traced arrays never change.
    """
    lifted, index, d, others = along_axis("put_along_axis", x, indices, axis)
    index = broadcast_to(index, [index.shape[e] if e == d else lifted.shape[e] for e in range(lifted.ndim)])
    return emit(
        SCATTER,
        lifted,
        index_values(index, lifted.shape[d]),
        spread(values, lifted.dtype, index.shape),
        update_window_dims=(),
        inserted_window_dims=(d,),
        input_batching_dims=others,
        scatter_indices_batching_dims=others,
        scatter_dims_to_operand_dims=(d,),
        index_vector_dim=index.ndim,
        monoid="set",
    )


# -- indices as numbers ----------------------------------------------------------------------------------------------


def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Tracer, ...]:
    """The indices along each dimension of a shape, from those in row-major order; those outside are clipped."""
    sizes = tuple(int(n) for n in as_sequence(shape))
    rest = lift(indices) if not is_scalar(indices) else cast_to(indices, default_int())
    rest = clip(rest, -prod(sizes), prod(sizes) - 1)
    rest = where(rest < 0, rest + prod(sizes), rest)
    found: list[Tracer] = []
    for n in reversed(sizes):
        found.insert(0, remainder(rest, n))
        rest = floor_divide(rest, n)
    return tuple(found)


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "clip") -> Tracer:
    """The indices in row-major order, from those along each dimension; those outside are clipped, or wrap around."""
    if len(multi_index) != len(dims) or mode not in ("clip", "wrap"):
        raise trace_error(
            f"{len(multi_index)} indices into {len(dims)} dimensions, mode {mode!r}",
            rule="ravel_multi_index.C1",
            fix="give an index for each dimension, and the mode clip or wrap",
        )
    found: Tracer | None = None
    for index, n in zip(multi_index, dims, strict=True):
        lifted = lift(index)
        inside = clip(lifted, 0, n - 1) if mode == "clip" else remainder(lifted, n)
        found = inside if found is None else found * n + inside
    assert found is not None
    return found
