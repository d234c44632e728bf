"""The `local` stage: shapes become those of one device (paper section 4).

An op with a rule is emitted again with local shapes, its padding masked where it would reach results; ops that read
positions elsewhere get halos (`local_moves`), reshapes of ragged dimensions a fetch in flat space (`local_reshape`),
and ops that need a local body of their own bring it (`OpDef.localize`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from gspmd.ir.attrs import Attrs, Dense
from gspmd.ir.builder import Builder
from gspmd.ir.errors import GspmdError, PartitionError
from gspmd.ir.graph import Node, Program, Region, Value
from gspmd.ir.opdef import Trait, Types
from gspmd.ops.reduce import scalar_region
from gspmd.partitioner import padding
from gspmd.partitioner.collectives import is_reshard
from gspmd.partitioner.context import Devices, LocalContext
from gspmd.partitioner.form import LocalForm, local_form
from gspmd.partitioner.local_moves import move
from gspmd.partitioner.local_reshape import needs_flat_fetch, reshape
from gspmd.partitioner.local_window import window_body


def localize(program: Program) -> Program:
    """Turn a program on whole tensors into that of one device; collectives -> local.

    Raises PartitionError where an op's shardings do not agree with its rule.
    """
    body = _Region().run(program.body)
    return Program(program.name, body, program.mesh, "local", program.inputs, program.outputs)


class _Region:
    """Rewrites one region; inner regions get rewriters of their own."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.devices = Devices(self.builder)
        self.now: dict[Value, Value] = {}

    def run(self, region: Region) -> Region:
        """The region of one device."""
        params = [self.builder.param(v.type.local, v.name) for v in region.params]
        return self.builder.region(self._inline(region, params))

    def _inline(self, region: Region, arguments: Sequence[Value]) -> list[Value]:
        """A region's nodes in place, on its arguments: per-device code is what all code is from now on."""
        self.now.update(zip(region.params, arguments, strict=True))
        for node in region.nodes:
            self.builder.loc = node.loc
            try:
                made = self._node(node)
            except GspmdError as error:
                raise error.at(node.loc) from None
            self.now.update(zip(node.results, made, strict=True))
        return [self.now[v] for v in region.results]

    def _node(self, node: Node) -> Sequence[Value]:
        operands = tuple(self.now[v] for v in node.operands)
        if is_reshard(node):
            raise PartitionError("a reshard must become collectives before the program becomes local")
        if node.op.crossings is not None:
            return [held for region in node.regions for held in self._inline(region, operands)]
        if node.op.flow is not None:
            return self._append(node, operands, tuple(_Region().run(r) for r in node.regions))
        form = local_form(node.op, _types(node.operands), _types(node.results), node.attrs)
        if form is None:
            return self._append(node, operands, node.regions)
        return self._ruled(node, form, operands)

    def _ruled(self, node: Node, form: LocalForm, operands: tuple[Value, ...]) -> Sequence[Value]:
        context = LocalContext(self.devices, node, form)
        if form.masks:
            operands = self._masked(context, operands)
        if node.op.localize is not None:
            made = self._checked(node, node.op.localize(context, operands))
            if node.op.has(Trait.LITERAL) and is_zero(node.attrs):
                self.devices.zeros.update(made)
            return made
        if form.position is not None:
            dim, factor = form.position
            (type_,) = form.results
            return self._checked(node, (context.positions(factor, type_.shape, dim, type_.dtype),))
        if form.products and needs_flat_fetch(node, form):
            return self._checked(node, (reshape(context, operands[0]),))
        if form.window:
            return self._checked(node, window_body(context, operands))
        if form.same or node.regions:
            results = tuple(Value(t, v.name) for t, v in zip(form.results, node.results, strict=True))
            regions = tuple(map(scalar_region, node.regions))
            self.builder.nodes.append(Node(node.op, operands, results, form.attrs, regions, node.loc))
            return results
        if node.op.has(Trait.MOVES):
            return self._checked(node, (move(context, operands),))
        raise PartitionError(f"{node.op.name} cannot be local as {form.rule.text()} says: {_types(node.operands)}")

    def _masked(self, context: LocalContext, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        out = list(operands)
        for mask in context.form.masks:
            fill = padding.neutral(self.builder, context.rule, mask.factor, out[mask.operand])
            out[mask.operand] = context.mask(out[mask.operand], mask.dim, mask.factor, fill)
        return tuple(out)

    def _append(self, node: Node, operands: tuple[Value, ...], regions: tuple[Region, ...]) -> tuple[Value, ...]:
        results = tuple(Value(v.type.local, v.name) for v in node.results)
        self.builder.nodes.append(Node(node.op, operands, results, node.attrs, regions, node.loc))
        return results

    def _checked(self, node: Node, made: Sequence[Value]) -> Sequence[Value]:
        for value, wanted in zip(made, node.results, strict=True):
            if value.type != wanted.type.local:
                raise PartitionError(
                    f"the local body of {node.op.name} yields {value.type.text()}, but {wanted.type.text()} is "
                    f"{wanted.type.local.text()} on a device"
                )
        return made


def is_zero(attrs: Attrs) -> bool:
    """Whether a literal is one zero, all of whose bits are zero (-0.0 is not)."""
    held = [getattr(attrs, f.name) for f in fields(attrs)]
    return any(isinstance(v, Dense) and v.array.size == 1 and not any(v.array.tobytes()) for v in held)


def _types(values: Sequence[Value]) -> Types:
    return tuple(v.type for v in values)
