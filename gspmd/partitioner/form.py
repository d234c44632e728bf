"""What one application becomes on a device, as data: worked out once for all applications that are alike."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from gspmd.ir.agreement import split_dim
from gspmd.ir.attrs import Attrs, Groups, ResultShape
from gspmd.ir.axes import Axes, parts
from gspmd.ir.errors import TypeRuleError
from gspmd.ir.memo import memo_by_attrs
from gspmd.ir.opdef import OpDef, Types, rule_of, sets_sharding
from gspmd.ir.rule import Access, Rule
from gspmd.ir.types import TensorType
from gspmd.partitioner.padding import combines


@dataclass(frozen=True, slots=True)
class Mask:
    """An operand's dimension whose padding would reach results, and its factor."""

    operand: int
    dim: int
    factor: int


@dataclass(frozen=True, slots=True, eq=False)
class LocalForm:
    """The local side of an application.

    `axes` and `chunks`: of each split factor, over what and how many elements a device holds. `attrs`: with local
    result shapes and group counts. `results`: the local types. `same`: the op itself, with these attributes, is the
    local body. `window`: what windows read is split. `products`: something is split, and a dimension is made of several
    factors. `position`: a result dimension and its split factor, whose index the values are.
    """

    rule: Rule
    axes: dict[int, Axes]
    chunks: dict[int, int]
    attrs: Attrs
    results: Types
    masks: tuple[Mask, ...]
    same: bool = False
    window: bool = False
    products: bool = False
    position: tuple[int, int] | None = None


_NO_RULE = Rule((), (), ())


@memo_by_attrs(maxsize=1 << 16)
def local_form(op: OpDef[Any], operands: Types, results: Types, attrs: Attrs) -> LocalForm | None:
    """How an op with a rule is localised; None for an op that has neither a rule nor a body of its own."""
    rule = rule_of(op, tuple(t.bare for t in operands), tuple(t.bare for t in results), attrs)
    if rule is None or sets_sharding(op, operands, attrs):
        # Collectives have no factors, but a local body.
        local = tuple(t.local for t in results)
        return None if op.localize is None else LocalForm(_NO_RULE, {}, {}, attrs, local, ())
    axes, chunks = split_factors(rule, operands, results)
    local = tuple(t.local for t in results)
    changed = local_attrs(attrs, local, rule, chunks)
    split = not all(map(whole, operands + results))
    maps = [d for t in rule.tensors for d in t]
    products = split and any(not isinstance(d, Access) and len(d) > 1 for d in maps)
    reads = any(
        isinstance(dim, Access) and (dim.factor in axes or dim.kernel_factor in axes or _is_split(type_, d))
        for tensor, type_ in zip(rule.operands, operands, strict=True)
        for d, dim in enumerate(tensor)
    )
    return LocalForm(
        rule,
        axes,
        chunks,
        changed,
        local,
        _masks(rule, axes, chunks),
        not reads and _same(op, changed, tuple(t.local for t in operands), local),
        reads and any(isinstance(d, Access) and d.window is not None for d in maps),
        products,
        _position(rule, axes),
    )


def split_factors(rule: Rule, operands: Types, results: Types) -> tuple[dict[int, Axes], dict[int, int]]:
    """Over which axes each factor is split, and its chunk, as the tensors' shardings say."""
    axes: dict[int, Axes] = {}
    chunks: dict[int, int] = {}
    for tensor, type_ in zip(rule.tensors, operands + results, strict=True):
        if type_.sharding is None or not type_.sharding.used:
            continue
        for d, dim in enumerate(tensor):
            if isinstance(dim, Access):
                continue
            pieces = split_dim(rule, dim, type_.sharding, d)
            for f, over, chunk in pieces if not isinstance(pieces, str) else ():
                if over:
                    axes.setdefault(f, over)
                    chunks.setdefault(f, chunk)
    return axes, chunks


def local_attrs(attrs: Attrs, local: Types, rule: Rule, chunks: dict[int, int]) -> Attrs:
    """The attributes with each global result shape and each number of groups replaced by the local one."""
    changes: dict[str, Any] = {}
    for field in fields(attrs):
        held = getattr(attrs, field.name)
        if isinstance(held, ResultShape) and held != local[0].shape:
            changes[field.name] = ResultShape(local[0].shape)
        if isinstance(held, Groups) and held > 1:
            changes[field.name] = Groups(_local_groups(rule, chunks, held))
    return replace(attrs, **changes) if changes else attrs


def _local_groups(rule: Rule, chunks: dict[int, int], count: int) -> int:
    """How many groups a device holds: the chunk of the factor that is major in dimensions made of several."""
    for tensor in rule.tensors:
        for dim in tensor:
            if not isinstance(dim, Access) and len(dim) > 1 and rule.factors[dim[0]].size == count:
                return chunks.get(dim[0], count)
    return count


def _masks(rule: Rule, axes: dict[int, Axes], chunks: dict[int, int]) -> tuple[Mask, ...]:
    ragged = [
        f for f, over in axes.items() if combines(rule.factors[f]) and chunks[f] * parts(over) > rule.factors[f].size
    ]
    return tuple(
        Mask(i, d, f)
        for f in ragged
        for i, operand in enumerate(rule.operands)
        for d, dim in enumerate(operand)
        if dim == (f,)
    )


def _same(op: OpDef[Any], attrs: Attrs, operands: Types, results: Types) -> bool:
    """Whether the type rule takes the local operands to the local results."""
    try:
        return tuple(t.bare for t in op.infer(operands, attrs, ())) == results
    except TypeRuleError:
        return False


def _position(rule: Rule, axes: dict[int, Axes]) -> tuple[int, int] | None:
    for d, dim in enumerate(rule.results[0]) if rule.results else ():
        if not isinstance(dim, Access) and len(dim) == 1 and dim[0] in axes and rule.factors[dim[0]].position:
            return d, dim[0]
    return None


def _is_split(type_: TensorType, dim: int) -> bool:
    return type_.sharding is not None and bool(type_.sharding.dims[dim].axes)


def whole(type_: TensorType) -> bool:
    """Whether a global type is split nowhere."""
    return type_.sharding is None or not type_.sharding.used
