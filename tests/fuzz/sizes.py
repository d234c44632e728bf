"""Programs with a smaller size: one number, wherever it is the size of a dimension or stands in a shape, is another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gspmd.ir.attrs import Attrs, Dense
from gspmd.ir.errors import GspmdError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.types import TensorType


def smaller_sizes(program: Program) -> Iterator[Program]:
    """The program with each of its sizes made smaller, the largest first; those that make no sense are left out."""
    values = [*program.body.params, *(v for node in program.body.walk() for v in node.results)]
    for size in sorted({n for v in values for n in v.type.shape if n > 1}, reverse=True):
        for smaller in dict.fromkeys((size // 2, size - 1)):
            try:
                body = _resized(program.body, size, smaller)
                yield Program.of(program.name, body, program.mesh)
            except (GspmdError, ValueError):
                continue


def _resized(region: Region, size: int, smaller: int) -> Region:
    now = {p: Value(_type(p.type, size, smaller), p.name) for p in region.params}
    params = tuple(now.values())
    nodes: list[Node] = []
    for n in region.nodes:
        operands = tuple(now[v] for v in n.operands)
        attrs, regions = _attrs(n.attrs, size, smaller), tuple(_resized(r, size, smaller) for r in n.regions)
        types = n.op.infer(tuple(v.type.bare for v in operands), attrs, regions)
        made = tuple(
            Value(t if v.type.sharding is None else t.with_sharding(v.type.sharding), v.name)
            for t, v in zip(types, n.results, strict=True)
        )
        nodes.append(Node(n.op, operands, made, attrs, regions, n.loc))
        now.update(zip(n.results, made, strict=True))
    return Region(params, tuple(nodes), tuple(now[v] for v in region.results))


def _type(type_: TensorType, size: int, smaller: int) -> TensorType:
    return type_.with_shape(_shape(type_.shape, size, smaller))


def _shape(shape: tuple[int, ...], size: int, smaller: int) -> tuple[int, ...]:
    return tuple(smaller if n == size else n for n in shape)


def _attrs(attrs: Attrs, size: int, smaller: int) -> Attrs:
    """The attributes with the number replaced in tuples of numbers, and arrays of one value made smaller."""
    changed: dict[str, Any] = {}
    for field in fields(attrs):
        held: Any = getattr(attrs, field.name)
        kind: Any = type(held)
        if issubclass(kind, tuple) and size in held and all(type(n) is int for n in held):
            changed[field.name] = kind(_shape(held, size, smaller))
        elif isinstance(held, Dense) and size in held.array.shape:
            cut = tuple(slice(smaller if n == size else n) for n in held.array.shape)
            changed[field.name] = Dense(np.asarray(held.array[cut]))
    return replace(attrs, **changed) if changed else attrs
