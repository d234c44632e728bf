"""Which dtype an operation on several operands computes in.

The array API standard's table within a kind; integers with floats take the float's dtype, and bool gives way to
everything; two floats or integers of which neither holds the other give the least type that holds both (f16 with bf16:
f32). Python numbers are weak: they take the dtype of their partner unless they are of a higher kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gspmd.frontend.config import default_complex, default_float, default_int
from gspmd.ir.dtypes import DTYPES, DType, dtype_kind, dtype_name, is_float
from gspmd.ir.errors import TraceError
from gspmd.kernels.finite import bit_width

# For each float type, the float types that hold all of its values, narrowest first.
_FLOATS: dict[str, tuple[str, ...]] = {
    **{name: (name, "f16", "bf16", "f32", "f64") for name, t in DTYPES.items() if is_float(t) and t.itemsize == 1},
    "f8e8m0fnu": ("f8e8m0fnu", "bf16", "f32", "f64"),
    "f16": ("f16", "f32", "f64"),
    "bf16": ("bf16", "f32", "f64"),
    "f32": ("f32", "f64"),
    "f64": ("f64",),
}
_RANK = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}
_SCALAR_RANK: dict[type, int] = {bool: 0, int: 1, float: 2, complex: 3}


@lru_cache(maxsize=1024)
def promote_types(a: DType, b: DType) -> DType:
    """The dtype of an operation on two typed operands; raises TraceError for u64 with a signed integer."""
    if a == b:
        return a
    kind_a, kind_b = dtype_kind(a), dtype_kind(b)
    if _RANK[kind_a] < _RANK[kind_b]:
        return _complex_of(b, a) if kind_b == "complex" else b
    if _RANK[kind_a] > _RANK[kind_b]:
        return promote_types(b, a)
    if kind_a == "complex":
        return DTYPES["c128"]
    if kind_a == "float":
        wider = _FLOATS[dtype_name(b)]
        return DTYPES[next(name for name in _FLOATS[dtype_name(a)] if name in wider)]
    return _integers(a, b)


def _complex_of(complex_dtype: DType, other: DType) -> DType:
    return DTYPES["c128"] if other == DTYPES["f64"] else complex_dtype


def _integers(a: DType, b: DType) -> DType:
    bits_a, bits_b = bit_width(a), bit_width(b)
    if dtype_kind(a) == dtype_kind(b):
        return a if bits_a >= bits_b else b
    signed, unsigned = (bits_a, bits_b) if dtype_kind(a) == "int" else (bits_b, bits_a)
    bits = max(signed, 2 * unsigned)
    if bits > 64:
        raise TraceError(
            f"no integer type holds both {dtype_name(a)} and {dtype_name(b)}",
            rule="promotion.C1",
            fix="convert one operand with .astype",
        )
    return DTYPES[f"i{bits}"]


def promote_scalar(dtype: DType | None, scalar: type) -> DType:
    """The dtype that a Python number of a type makes of its partner's dtype (None: no typed partner)."""
    rank = _SCALAR_RANK[scalar]
    if dtype is not None and rank <= _RANK[dtype_kind(dtype)]:
        return dtype
    if rank == 0:
        return DTYPES["bool"]
    if rank == 1:
        return default_int()
    if rank == 2:
        return default_float()
    return DTYPES["c128"] if dtype == DTYPES["f64"] else default_complex() if dtype is None else _complex_partner(dtype)


def _complex_partner(dtype: DType) -> DType:
    return DTYPES["c64"] if dtype_kind(dtype) == "float" else default_complex()


def result_type(dtypes: Iterable[DType], scalars: Iterable[type] = ()) -> DType:
    """The dtype of an operation on operands of some dtypes and Python numbers of some types."""
    found: DType | None = None
    for dtype in dtypes:
        found = dtype if found is None else promote_types(found, dtype)
    # The highest kind first, so that the order of the numbers does not matter.
    for scalar in sorted(scalars, key=lambda s: -_SCALAR_RANK[s]):
        found = promote_scalar(found, scalar)
    return default_float() if found is None else found


def inexact(dtype: DType) -> DType:
    """The dtype in which true division and the transcendental functions compute: the default float for integers."""
    return dtype if dtype_kind(dtype) in ("float", "complex") else default_float()
