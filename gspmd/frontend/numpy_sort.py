"""Order along an axis: sort, argsort, top_k."""

from __future__ import annotations

from gspmd.frontend.config import default_int
from gspmd.frontend.numpy_core import cast_to, lift, normal_axis
from gspmd.frontend.numpy_creation import iota
from gspmd.frontend.numpy_shape import moveaxis, ravel
from gspmd.frontend.scope import trace_error
from gspmd.frontend.tracer import ArrayLike, Tracer, emit_all
from gspmd.ir.dtypes import dtype_kind
from gspmd.ops.sorting import SORT, TOP_K, ascending


def _line(x: ArrayLike, axis: int | None) -> tuple[Tracer, int]:
    """The array, raveled without an axis, and the axis counted from the left."""
    lifted = ravel(x) if axis is None else lift(x)
    if dtype_kind(lifted.dtype) == "complex":
        raise trace_error("complex numbers have no order", rule="sort.C6", fix="sort by their real or imaginary part")
    return lifted, normal_axis(0 if axis is None else axis, lifted.ndim)


def sort(x: ArrayLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tracer:
    """The elements in order along an axis (None: in row-major order), NaN last (if descending, first)."""
    lifted, dim = _line(x, axis)
    order = ascending((lifted.dtype,), descending)
    return emit_all(SORT, [lifted], (order,), dimension=dim, is_stable=stable)[0]


def argsort(x: ArrayLike, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tracer:
    """Where the elements in order along an axis come from; equal ones keep their order."""
    lifted, dim = _line(x, axis)
    index = default_int()
    order = ascending((lifted.dtype, index), descending)
    places = iota(lifted.shape, index, dim)
    return emit_all(SORT, [lifted, places], (order,), dimension=dim, is_stable=stable)[1]


def top_k(x: ArrayLike, k: int, axis: int = -1) -> tuple[Tracer, Tracer]:
    """The k largest elements along an axis, largest first, and their indices: of equal ones the first."""
    lifted, dim = _line(x, axis)
    if not 0 <= k <= lifted.shape[dim]:
        raise trace_error(f"the {k} largest of {lifted.shape[dim]} elements", rule="top_k.C2")
    last = lifted.ndim - 1
    turned = lifted if dim == last else moveaxis(lifted, dim, last)
    values, places = emit_all(TOP_K, [turned], k=int(k))
    found = values, cast_to(places, default_int())
    return found if dim == last else (moveaxis(found[0], last, dim), moveaxis(found[1], last, dim))
