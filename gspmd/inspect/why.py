"""Sentences that say why an op needs an operand otherwise than it is held, from the op's rule and the shardings.

What an op reads together must be split together: a dimension carries factors, and every other dimension that carries
one of them has to be split alike (`ir.agreement`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gspmd.inspect.cause import Cause
from gspmd.ir.agreement import leaves_unreduced
from gspmd.ir.axes import Axes, difference
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import node_rule
from gspmd.ir.rule import Access, Rule, dim_factors
from gspmd.ir.sharding import Sharding

Name = Callable[[Value], str]


def why(cause: Cause, name: Name) -> list[str]:
    """Why a collective is there, in sentences; `name` gives the user's name of a value of the explicit stage."""
    if cause.role == "manual":
        return ["the user's own per-device code says so"]
    if cause.role == "inside":
        return list(_inside(cause.explicit, name))
    assert cause.source is not None and cause.target is not None
    if cause.role == "annotation":
        return [f"the annotation asks for {cause.target.text()}, but the value comes as {cause.source.text()}"]
    if cause.role == "handed":
        combined = difference(cause.source.unreduced, cause.target.unreduced)
        parted = [_parted(cause, combined, name)] if combined else []
        return [*parted, f"it is handed out as {cause.target.text()}, but held as {cause.source.text()}"]
    if cause.role == "result":
        return list(_result(cause, cause.source, cause.target, name))
    return list(_operand(cause, cause.source, cause.target, name))


def _operand(cause: Cause, source: Sharding, target: Sharding, name: Name) -> Iterator[str]:
    node, rule = cause.explicit, node_rule(cause.explicit)
    text, moved = source.axes_text, (target, cause.value.type.shape)
    mine = [i for i, v in enumerate(node.operands) if (v.type.sharding, v.type.shape) == moved]
    combined = difference(source.unreduced, target.unreduced)
    if combined:
        yield _parted(cause, combined, name)
        yield f"{node.op.name} needs the {_sum(source.monoid)} itself"
    if rule is None or not mine:
        if _axes(source) != _axes(target):
            yield f"{node.op.name} takes it as {target.text()}, but it is held as {source.text()}"
        return
    operand = mine[0]
    for d, (have, need) in enumerate(zip(source.dims, target.dims, strict=True)):
        if have.axes == need.axes:
            if have.size_of_shard(cause.value.type.shape[d]) != need.size_of_shard(cause.value.type.shape[d]):
                yield f"shards of dim {d} must have another size, so that they fit those of the op's other tensors"
            continue
        split = f"is split over {text(have.axes)}" if have.axes else "is not split"
        yield f"dim {d} of {name(node.operands[operand])} {split}, but {_partners(node, rule, operand, d, name)}"


def _axes(sharding: Sharding) -> tuple[Axes, ...]:
    return tuple(d.axes for d in sharding.dims)


def _partners(node: Node, rule: Rule, operand: int, dim: int, name: Name) -> str:
    """What else carries the factors of an operand's dimension, and how that is split."""
    factors = dim_factors(rule.operands[operand][dim])
    if any(rule.factors[f].kind == "whole" for f in factors):
        return f"{node.op.name} needs it whole"
    found: list[str] = []
    values = (*node.operands, *node.results)
    for t, (tensor, value) in enumerate(zip(rule.tensors, values, strict=True)):
        if t == operand:
            continue
        for e, theirs in enumerate(tensor):
            if set(dim_factors(theirs)).isdisjoint(factors):
                continue
            held = value.type.placed
            axes = held.dims[e].axes
            which = "the result " if t >= len(node.operands) else ""
            split = f"split over {held.axes_text(axes)}" if axes else "not split"
            found.append(f"dim {e} of {which}{name(value)}, which goes with it, is {split}")
    if found:
        return " and ".join(found[:2])
    need = node.operands[operand].type.placed
    axes = need.dims[dim].axes
    return f"{node.op.name} needs it {f'split over {need.axes_text(axes)}' if axes else 'whole'} here"


def _result(cause: Cause, source: Sharding, target: Sharding, name: Name) -> Iterator[str]:
    node = cause.explicit
    combined = difference(source.unreduced, target.unreduced)
    if combined:
        yield _parted(cause, combined, name)
    if _axes(source) != _axes(target):
        yield (
            f"{node.op.name} makes it as {source.reduced().text()} from operands as they are held, "
            f"and it is wanted as {target.text()}"
        )
    elif not combined:
        yield f"its shards must have another size: {target.text(cause.value.type.shape)}"


def _parted(cause: Cause, combined: Axes, name: Name) -> str:
    """Why a value is still to be combined: which split dimensions its maker combines along."""
    node, source = cause.maker, cause.source
    assert source is not None
    text = f"each device has only its own part of the {_sum(source.monoid)}"
    rule = None if node is None else node_rule(node)
    if node is None or rule is None:
        return f"{text} over {source.axes_text(combined)}"
    found: list[str] = []
    for tensor, value in zip(rule.operands, node.operands, strict=True):
        held = value.type.placed
        for d, dim in enumerate(tensor):
            if any(leaves_unreduced(rule, f) for f in dim_factors(dim)) and held.dims[d].axes:
                found.append(f"dim {d} of {name(value)}")
        if held.unreduced:
            found.append(f"{name(value)}, which is such a part already")
    along = f" combines along {' and '.join(found)}" if found else " makes it so"
    line = f" at {cause.lines[1]}" if len(set(cause.lines)) > 1 and cause.lines[1] else ""
    return f"{text}: {node.op.name}{line}{along}, split over {source.axes_text(combined)}"


def _inside(node: Node, name: Name) -> Iterator[str]:
    """What an op's own body exchanges."""
    rule = node_rule(node)
    told = False
    for tensor, value in zip(() if rule is None else rule.operands, node.operands, strict=rule is not None):
        for d, dim in enumerate(tensor):
            held = value.type.sharding
            if held is None or rule is None or not held.dims[d].axes:
                continue
            place = f"dim {d} of {name(value)}, split over {held.axes_text(held.dims[d].axes)}"
            if isinstance(dim, Access):
                told = True
                yield f"{node.op.name} reads {place}, beyond each device's own part"
            elif any(rule.factors[f].kind not in ("pass", "reduce") for f in dim):
                told = True
                yield f"{node.op.name} works along {place}: the parts are put together"
            elif len(dim) > 1:
                told = True
                yield f"{place}, has shards that {node.op.name} has to cut anew"
    if not told:
        yield f"{node.op.name} works on split dimensions, and devices exchange what they lack"


def _sum(monoid: str | None) -> str:
    return {"add": "sum", "mul": "product", "max": "max", "min": "min"}.get(monoid or "", "combination")
