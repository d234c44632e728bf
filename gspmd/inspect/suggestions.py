"""Annotations that might make a collective vanish, from what asked for it: to be tried, not believed.

The value as the op needs it, the op's other tensors as the value is held, operands not split over what is combined, and
the annotations from which the shardings in question came without the axes in question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gspmd.inspect.cause import Cause, Traced
from gspmd.ir.axes import Axes, contains, difference, overlaps
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import node_rule
from gspmd.ir.rule import Access, Rule, dim_factors
from gspmd.ir.sharding import DimSharding, Sharding
from gspmd.partitioner.candidates import project, tensor_sharding
from gspmd.propagation.reasons import Reasons

Suggestion = Mapping[Value, Sharding]


def suggestions(traced: Traced, cause: Cause, reasons: Reasons) -> list[Suggestion]:
    """What might be annotated, values of the propagated program, the most direct first; none twice."""
    found: dict[tuple[tuple[Value, Sharding], ...], Suggestion] = {}
    for suggestion in _all(traced, cause, reasons):
        kept = {v: s.reduced() for v, s in suggestion.items()}
        # Nothing new if the value is annotated or held so already.
        if kept and any(s != v.type.placed or reasons.annotation(v) is None for v, s in kept.items()):
            found.setdefault(tuple(kept.items()), kept)
    return list(found.values())


def _all(traced: Traced, cause: Cause, reasons: Reasons) -> Iterator[Suggestion]:
    node = cause.explicit
    around = (node, *([] if cause.maker is None else [cause.maker]))
    own = {v: traced.now[v] for n in around for v in (*n.operands, *n.results) if v in traced.now}
    if cause.role == "manual":
        return
    if cause.role == "inside":
        yield from _inside(node, own, reasons)
        return
    assert cause.source is not None and cause.target is not None
    lost = difference((*cause.source.used, *cause.source.unreduced), cause.target.used)
    gained = difference(cause.target.used, cause.source.used)
    combined = difference(cause.source.unreduced, cause.target.unreduced)
    if combined and cause.maker is not None:
        yield from _not_combined(cause.maker, own, combined, reasons)
        yield from _scattered(cause, combined)
    yield {cause.value: cause.target}
    if cause.role == "annotation" or cause.source.reduced() != cause.value.type.placed:
        yield {cause.value: cause.source}
    yield from _without(cause.value, lost, reasons)
    if cause.role == "operand" and (rule := node_rule(node)) is not None:
        yield from _like_it(node, rule, cause, own)
        for value in (own[v] for v in (*node.operands, *node.results) if v in own):
            if value is not cause.value:
                yield from _without(value, gained, reasons)


def _not_combined(node: Node, own: Mapping[Value, Value], axes: Axes, reasons: Reasons) -> Iterator[Suggestion]:
    """What operands come from, and they themselves, not split over what is combined: all at once, then one by one."""
    split = {
        own[v]: _less(v.type.placed, axes) for v in node.operands if v in own and overlaps(v.type.placed.used, axes)
    }
    if split:
        yield {v: s for value in split for found in _without(value, axes, reasons) for v, s in found.items()}
        yield split
    for value, sharding in split.items():
        yield {value: sharding}
        yield from _without(value, axes, reasons)


def _scattered(cause: Cause, axes: Axes) -> Iterator[Suggestion]:
    """What is combined, left in parts: one dimension of it split over the same axes."""
    target = cause.target
    assert target is not None
    for d in range(target.rank):
        dims = list(target.dims)
        dims[d] = DimSharding((*dims[d].axes, *axes))
        try:
            sharding = target.with_dims(tuple(dims))
        except GspmdError:
            continue
        if dims[d].parts <= cause.value.type.shape[d]:
            yield {cause.value: sharding}


def _like_it(node: Node, rule: Rule, cause: Cause, own: Mapping[Value, Value]) -> Iterator[Suggestion]:
    """The op's other tensors split as the value is held, where they have to go together: all at once, then each."""
    assert cause.source is not None
    mine = next((i for i, v in enumerate(node.operands) if own.get(v) is cause.value), None)
    if mine is None:
        return
    wanted = project(rule, rule.operands[mine], cause.source)
    together: dict[Value, Sharding] = {}
    values = (*node.operands, *node.results)
    for t, (tensor, value) in enumerate(zip(rule.tensors, values, strict=True)):
        if t == mine or value not in own or own[value] is cause.value:
            continue
        held = project(rule, tensor, value.type.placed)
        taken = tuple(a for axes in wanted.values() for a in axes)
        merged = {f: axes for f, axes in held.items() if f not in wanted and not overlaps(axes, taken)} | wanted
        try:
            sharding = tensor_sharding(rule, tensor, merged, value.type.placed)
        except GspmdError:
            continue
        if sharding != value.type.placed.reduced():
            together[own[value]] = sharding
    if len(together) > 1:
        yield together
    for value, sharding in together.items():
        yield {value: sharding}


def _inside(node: Node, own: Mapping[Value, Value], reasons: Reasons) -> Iterator[Suggestion]:
    """The op's operands whole in the dimensions along which devices exchange data, or split in another one."""
    rule = node_rule(node)
    if rule is None:
        return
    for tensor, value in zip(rule.operands, node.operands, strict=True):
        held = value.type.placed
        axes = tuple(
            a
            for dim, d in zip(tensor, held.dims, strict=True)
            if isinstance(dim, Access) or len(dim) > 1 or any(rule.factors[f].kind != "pass" for f in dim_factors(dim))
            for a in d.axes
        )
        if not axes or value not in own:
            continue
        whole = _less(held, axes)
        for d, dim in enumerate(tensor):
            plain = not isinstance(dim, Access) and len(dim) == 1 and rule.factors[dim[0]].kind == "pass"
            if plain and not overlaps(held.dims[d].axes, axes):
                dims = list(whole.dims)
                dims[d] = DimSharding((*dims[d].axes, *axes))
                if dims[d].parts <= value.type.shape[d]:
                    yield {own[value]: whole.with_dims(tuple(dims))}
        yield {own[value]: whole}
        yield from _without(own[value], axes, reasons)


def _without(value: Value, axes: Axes, reasons: Reasons) -> Iterator[Suggestion]:
    """The annotations from which a value has some axes, without these."""
    for dim, d in enumerate(value.type.placed.dims):
        if not any(contains(axes, a) for a in d.axes):
            continue
        for chain in reasons.chains(value, dim):
            annotation = reasons.annotation(chain.annotated)
            if annotation is not None and overlaps((chain.axis,), axes):
                yield {chain.annotated: _less(annotation, (chain.axis,))}


def _less(sharding: Sharding, axes: Axes) -> Sharding:
    """A sharding that does not split over some axes."""
    dims = tuple(DimSharding(difference(d.axes, axes), d.open, priority=d.priority) for d in sharding.dims)
    return sharding.with_dims(dims)
