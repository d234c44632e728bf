"""Reverse mode on regions: forward ops appended again, cotangents pulled back through each op's `vjp`.

Everything is ops of the IR, so gradients of gradients need nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.frontend.cleanup import live_nodes
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Node, Region, Value
from gspmd.ir.types import TensorType
from gspmd.ops.elementwise import ADD
from gspmd.ops.literal import full
from gspmd.ops.rules import differentiable

Memo = dict[tuple[Region, tuple[bool, ...]], Region]


class Pullback:
    """The gradient of one region, appended to a builder: `forward`, then `backward`. The `Gradient` of vjp hooks.

    Activity and cotangents are kept by the region's own values: one argument may stand for several parameters.
    """

    __slots__ = ("_cotangents", "_memo", "_region", "_tape", "builder")

    def __init__(self, builder: Builder, region: Region, memo: Memo | None = None) -> None:
        self.builder = builder
        self._region = region
        self._memo: Memo = {} if memo is None else memo
        # A node of the region, and its copy as hooks are to see it.
        self._tape: list[tuple[Node, Node]] = []
        self._cotangents: dict[Value, Value] = {}

    def zeros(self, type_: TensorType) -> Value:
        """Zeros of a type."""
        return full(self.builder, 0, type_.dtype, type_.shape)

    def forward(self, arguments: Sequence[Value], wanted: Sequence[bool]) -> tuple[Value, ...]:
        """Append the region's ops on the arguments; remember those that wanted ones reach. Returns the results."""
        region = self._region
        held = dict(zip(region.params, arguments, strict=True))
        active = {v for v, want in zip(region.params, wanted, strict=True) if want}
        for node in region.nodes:
            operands = tuple([held[v] for v in node.operands])
            reached = node.op.vjp is not None and any(v in active for v in node.operands)
            held.update(zip(node.results, self._again(node, operands, reached), strict=True))
            if reached:
                active.update(v for v in node.results if differentiable(v.type))
        return tuple(held[v] for v in region.results)

    def _again(self, node: Node, operands: tuple[Value, ...], reached: bool) -> tuple[Value, ...]:
        self.builder.loc = node.loc
        if reached and node.op.save is not None:
            bare = Node(node.op, operands, node.results, node.attrs, node.regions, node.loc)
            results, residuals = map(tuple, node.op.save(self, bare))
            # The hook finds what it saved behind the node's results.
            copy = Node(node.op, operands, results + residuals, node.attrs, node.regions, node.loc)
            self._tape.append((node, copy))
            return results
        types = [v.type for v in node.results]
        results = self.builder.append(node.op, operands, node.attrs, types, node.regions, node.loc)
        if reached:
            self._tape.append((node, self.builder.nodes[-1]))
        return results

    def backward(self, cotangents: Sequence[Value | None]) -> None:
        """Pull the cotangents of the results back through the remembered ops."""
        for value, cotangent in zip(self._region.results, cotangents, strict=True):
            if cotangent is not None and differentiable(value.type):
                self._accumulate(value, cotangent)
        for node, copy in reversed(self._tape):
            given = [self._cotangents.get(v) for v in node.results]
            if all(ct is None for ct in given):
                continue
            self.builder.loc = node.loc
            assert node.op.vjp is not None
            for operand, ct in zip(node.operands, node.op.vjp(self, copy, given), strict=True):
                if ct is not None:
                    self._accumulate(operand, ct)
        self._tape.clear()

    def _accumulate(self, value: Value, cotangent: Value) -> None:
        before = self._cotangents.get(value)
        self._cotangents[value] = cotangent if before is None else ADD(self.builder, before, cotangent)

    def pulled(self, wanted: Sequence[bool]) -> tuple[Value, ...]:
        """What was pulled back to the wanted parameters: zeros where nothing was."""
        params = [v for v, want in zip(self._region.params, wanted, strict=True) if want]
        return tuple(self._cotangents.get(v) or self.zeros(v.type.bare) for v in params)

    def region_vjp(self, region: Region, wanted: Sequence[bool]) -> Region:
        """A region (params, cotangents of all results) -> cotangents of the wanted params; made once a region."""
        key = (region, tuple(wanted))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = _region_vjp(region, key[1], self._memo)
        return found


def _region_vjp(region: Region, wanted: tuple[bool, ...], memo: Memo) -> Region:
    builder = Builder()
    arguments = [builder.param(v.type.bare, v.name) for v in region.params]
    given = [builder.param(v.type.bare) for v in region.results]
    inner = Pullback(builder, region, memo)
    inner.forward(arguments, wanted)
    inner.backward(given)
    pulled = inner.pulled(wanted)
    return Region(tuple(builder.params), live_nodes(builder.nodes, pulled), pulled)
