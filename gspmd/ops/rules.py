"""What type rules and factor rules of many ops share: numbered constraints and sets of dtypes."""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.dtypes import DTYPES, DType, dtype_kind, dtype_name
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.types import TensorType

_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
# The dtypes that scalar forms are written for (`OpDef.fast`).
COMPILED_DTYPES = frozenset(("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"))
_WORDS = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats", "c": "complex numbers"}


def require(holds: bool, rule: str, message: str, fix: str = "") -> None:
    """Raise a TypeRuleError that names the constraint, unless it holds."""
    if not holds:
        raise TypeRuleError(message, rule=rule, fix=fix)


def require_count(op: str, types: Sequence[TensorType], count: int) -> None:
    """C0: the op takes so many operands."""
    require(len(types) == count, f"{op}.C0", f"takes {count} operands, but got {len(types)}")


def require_kind(op: str, constraint: str, type_: TensorType, kinds: str, number: int = 0) -> None:
    """The operand's dtype is of one of the kinds, letters of "biufc"."""
    if dtype_kind(type_.dtype) not in {_KINDS[k] for k in kinds}:
        wanted = ", ".join(_WORDS[k] for k in kinds)
        raise TypeRuleError(
            f"takes {wanted}, but operand {number} is {type_.bare.text()}",
            rule=f"{op}.{constraint}",
            fix="convert the operand first",
        )


def require_equal(op: str, constraint: str, types: Sequence[TensorType], first: int = 0) -> None:
    """The operands have one dtype and one shape: there is no implicit broadcasting."""
    for i, t in enumerate(types[1:], 1):
        if t.dtype != types[0].dtype or t.shape != types[0].shape:
            raise TypeRuleError(
                f"operands must have one type: operand {first} is {types[0].bare.text()}, "
                f"operand {first + i} is {t.bare.text()}",
                rule=f"{op}.{constraint}",
                fix="convert or broadcast_in_dim one of them first",
            )


def require_dims(op: str, constraint: str, what: str, dims: Sequence[int], rank: int) -> None:
    """The dims are distinct dimensions of a tensor of this rank."""
    require(
        all(0 <= d < rank for d in dims) and len(set(dims)) == len(dims),
        f"{op}.{constraint}",
        f"{what} must be distinct dimensions below {rank}, but are {list(dims)}",
    )


def real_part_dtype(dtype: DType) -> DType:
    """The dtype of a complex dtype's parts; other dtypes are their own."""
    return {"c64": DTYPES["f32"], "c128": DTYPES["f64"]}.get(dtype_name(dtype), dtype)


def scalar_type(dtype: DType) -> str:
    """The dtype's constructor in generated source: `np.float32`."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def copied(types: Sequence[TensorType], attrs: object) -> str | None:
    """The scalar form of ops that use each element as it is; None for dtypes that compiled loops do not know."""
    return "{0}" if len(types) == 1 and dtype_name(types[0].dtype) in COMPILED_DTYPES else None


def differentiable(type_: TensorType) -> bool:
    """Whether cotangents exist for a tensor of this type."""
    return dtype_kind(type_.dtype) in ("float", "complex")
