"""Collectives on local types: what they need around them where a dimension does not divide evenly.

A dimension that axes join is padded first, so that its pieces have the size of the chunk after it; one that axes leave
is cut back to the chunk after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from gspmd.ir.axes import parts
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Value
from gspmd.ir.opdef import OpDef
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ops import collective as ops
from gspmd.ops.fetch import FETCH
from gspmd.ops.fetch_plan import Reading
from gspmd.partitioner.padding import fit

Lowering = Callable[[Builder, Node, Value], Value]


def _chunk(type_: TensorType, dim: int) -> int:
    assert type_.sharding is not None
    return type_.sharding.chunk(dim, type_.shape[dim])


def _all_gather(b: Builder, node: Node, x: Value) -> Value:
    attrs: Any = node.attrs
    return fit(b, _emit(b, node, x), attrs.dim, _chunk(node.result.type, attrs.dim))


def _joining(b: Builder, node: Node, x: Value) -> Value:
    """all_slice and reduce_scatter: axes join a dimension."""
    attrs: Any = node.attrs
    return _emit(b, node, fit(b, x, attrs.dim, _chunk(node.result.type, attrs.dim) * parts(attrs.axes)))


def _all_to_all(b: Builder, node: Node, x: Value) -> Value:
    attrs: Any = node.attrs
    room = fit(b, x, attrs.to_dim, _chunk(node.result.type, attrs.to_dim) * parts(attrs.axes))
    return fit(b, _emit(b, node, room), attrs.from_dim, _chunk(node.result.type, attrs.from_dim))


def _permute(b: Builder, node: Node, x: Value) -> Value:
    attrs = node.attrs
    assert isinstance(attrs, ops.PermuteAttrs)
    return node.op.emit(b, (x,), replace(attrs, sharding=None))[0]


def _rechunk(b: Builder, node: Node, x: Value) -> Value:
    """Chunks of another size: each device fetches what it lacks of its new one."""
    before, after = node.operands[0].type, node.result.type
    assert before.sharding is not None
    for d, n in enumerate(before.shape):
        old, new, axes = _chunk(before, d), _chunk(after, d), before.sharding.dims[d].axes
        if old != new and n:
            x = FETCH(b, x, dim=d, reading=Reading(n, axes, old, n, axes, new))
        else:
            x = fit(b, x, d, new)
    return x


def _emit(b: Builder, node: Node, x: Value) -> Value:
    return node.op.emit(b, (x,), node.attrs)[0]


LOWERINGS: Mapping[OpDef[Any], Lowering] = MappingProxyType(
    {
        ops.ALL_GATHER: _all_gather,
        ops.ALL_SLICE: _joining,
        ops.ALL_TO_ALL: _all_to_all,
        ops.ALL_REDUCE: _emit,
        ops.REDUCE_SCATTER: _joining,
        ops.COLLECTIVE_PERMUTE: _permute,
        ops.RECHUNK: _rechunk,
    }
)


def sharding_of(type_: TensorType) -> Sharding:
    """The sharding that every global type has from `propagated` on."""
    assert type_.sharding is not None, f"{type_.text()} has no sharding"
    return type_.sharding
