"""Custom calls: XLA's annotations, LAPACK under the names that JAX gives it, and a few that mean an op of ours.

LAPACK's `info` results are zero here: where a factorisation fails, ours gives NaN, which is what JAX makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from gspmd.interop.import_annotations import manual_call, sharding_call
from gspmd.interop.import_scope import Bound, one
from gspmd.interop.import_types import Unsupported
from gspmd.interop.import_visit import Visit
from gspmd.ir.attrs import Attrs
from gspmd.ir.graph import Value
from gspmd.ir.types import TensorType
from gspmd.ops.elementwise import ADD
from gspmd.ops.factorizations import EIGH, GEQRF, HOUSEHOLDER_PRODUCT, LU, SVD, EighAttrs, FullAttrs
from gspmd.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE, CholeskyAttrs, TriangularSolveAttrs
from gspmd.ops.literal import full
from gspmd.ops.moving import SLICE, SliceAttrs
from gspmd.ops.sorting import SORT, SortAttrs

# How the call is made, and where arrays lie in memory.
_INTERFACE = (
    "api_version", "call_target_name", "called_computations", "custom_call_schedule", "has_side_effect",
    "operand_layouts", "output_operand_aliases", "result_layouts",
)  # fmt: skip
_CONFIGS = ("backend_config", "mhlo.backend_config")
_LAPACK = re.compile(r"(?:lapack_)([sdcz])(\w+?)(?:_ffi)?")
_TRANSPOSES = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def read_custom_call(v: Visit) -> Sequence[Bound]:
    """A custom call, by its target's name; raises Unsupported for one that is not known."""
    target: str = v.value("call_target_name")
    v.read.update(_INTERFACE)
    if target in _CALLS:
        return _CALLS[target](v)
    lapack = _LAPACK.fullmatch(target)
    routine = _ROUTINES.get(lapack[2]) if lapack else None
    if routine is None:
        raise Unsupported(f"the custom call @{target} is not known here")
    return routine(v)


def _config(v: Visit) -> dict[str, Any]:
    """The parameters of a call: numbers by name."""
    found: dict[str, Any] = {}
    for name in _CONFIGS:
        if v.has(name):
            held = v.attribute(name)
            if hasattr(held, "keys") or str(held).startswith("{"):
                found |= {item.name: getattr(item.attr, "value", item.attr) for item in held}
    return found


def _letter(config: dict[str, Any], name: str) -> str:
    return chr(int(config[name]))


def _info(v: Visit) -> Value:
    """The last result, which says that all went well."""
    type_ = v.results[-1]
    assert isinstance(type_, TensorType)
    return full(v.builder, 0, type_.dtype, type_.shape)


# -- LAPACK ----------------------------------------------------------------------------------------------------------


def _getrf(v: Visit) -> Sequence[Bound]:
    """Pivots count from 1."""
    _config(v)
    lu, pivots, _ = v.emit(LU, v.operands, Attrs())
    one_ = full(v.builder, 1, pivots.type.dtype, pivots.type.shape)
    return [lu, ADD(v.builder, pivots, one_), _info(v)]


def _potrf(v: Visit) -> Sequence[Bound]:
    lower = _letter(_config(v), "uplo") == "L"
    (factor,) = v.emit(CHOLESKY, v.operands, CholeskyAttrs(lower))
    return [factor, _info(v)]


def _geqrf(v: Visit) -> Sequence[Bound]:
    _config(v)
    return v.emit(GEQRF, v.operands, Attrs())


def _orgqr(v: Visit) -> Sequence[Bound]:
    _config(v)
    return v.emit(HOUSEHOLDER_PRODUCT, v.operands, Attrs())


def _gesdd(v: Visit) -> Sequence[Bound]:
    """Results: the used up operand, singular values, left vectors, right vectors, info."""
    mode = _letter(_config(v), "mode")
    if mode not in "ASN":
        raise Unsupported(f"singular values in LAPACK's mode {mode}")
    values, left, right = v.emit(SVD, v.operands, FullAttrs(mode == "A"))
    return [v.operands[0], values, left, right, _info(v)]


def _syevd(v: Visit) -> Sequence[Bound]:
    lower = _letter(_config(v), "uplo") == "L"
    vectors, values = v.emit(EIGH, v.operands, EighAttrs(lower))
    return [vectors, values, _info(v)]


def _trsm(v: Visit) -> Sequence[Bound]:
    config = _config(v)
    side, uplo, trans, diag = (_letter(config, n) for n in ("side", "uplo", "trans_x", "diag"))
    attrs = TriangularSolveAttrs(side == "L", uplo == "L", diag == "U", _TRANSPOSES[trans])
    return v.emit(TRIANGULAR_SOLVE, v.operands[:2], attrs)


_ROUTINES: dict[str, Callable[[Visit], Sequence[Bound]]] = {
    "getrf": _getrf,
    "potrf": _potrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "gesdd": _gesdd,
    "syevd": _syevd,
    "heevd": _syevd,
    "trsm": _trsm,
}


# -- others ----------------------------------------------------------------------------------------------------------


def _approx_top_k(v: Visit) -> Sequence[Bound]:
    """An approximate top-k is answered exactly: sorted by the call's comparator, then cut."""
    config = _config(v)
    count = len(v.operands) // 2
    arrays = v.operands[:count]
    dim = int(config["reduction_dim"]) % arrays[0].type.rank
    comparator = v.importer.function_region(v, v.attribute("called_computations")[0].value)
    ordered = SORT.emit(v.builder, arrays, SortAttrs(dim, True), (comparator,))
    kept = v.results[0]
    assert isinstance(kept, TensorType)
    rank = kept.rank
    attrs = SliceAttrs((0,) * rank, kept.shape, (1,) * rank)
    return [v.emit(SLICE, (x,), attrs)[0] for x in ordered]


def _as_it_is(v: Visit) -> Sequence[Bound]:
    _config(v)
    return [one(v.bound[0])]


_CALLS: dict[str, Callable[[Visit], Sequence[Bound]]] = {
    "Sharding": sharding_call,
    "SPMDFullToShardShape": manual_call,
    "SPMDShardToFullShape": manual_call,
    "annotate_device_placement": _as_it_is,
    "ApproxTopK": _approx_top_k,
}
HANDLERS = {"stablehlo.custom_call": read_custom_call}
