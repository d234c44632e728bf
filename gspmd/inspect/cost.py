"""What one call of a compiled program costs a device: bytes on the wire, computing, bytes through memory, and time.

The machine is a simple one: it computes and streams memory at the same time, and communicates at another. That ranks
programs; it predicts no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gspmd.inspect.collectives import by_kind, collectives_of, counted, wire_of
from gspmd.inspect.units import bytes_text, count_text
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Node, Program
from gspmd.ir.opdef import Trait, node_rule


@dataclass(frozen=True, slots=True)
class MachineModel:
    """What a device does in a second: scalar operations, bytes through memory, bytes on the wire; and a message's wait.

    As left out, an accelerator whose ratios are those by which the partitioner chooses.
    """

    flops: float = 6.4e12
    memory: float = 8e11
    wire: float = 1e11
    latency: float = 1e-6


@dataclass(frozen=True, slots=True)
class Cost:
    """One call's cost for one device; `kinds` has the bytes on the wire of each kind of collective.

    `flops` counts the scalar operations of ops that compute more than they stream, and one for each element that
    another op computes. Loops count as often as they run, those of unknown length once.
    """

    wire_bytes: float
    kinds: Mapping[str, float]
    collectives: int
    flops: float
    memory_bytes: float
    model: MachineModel = field(repr=False)

    @property
    def seconds(self) -> float:
        """The time that the simple machine takes."""
        own = max(self.flops / self.model.flops, self.memory_bytes / self.model.memory)
        return own + self.wire_bytes / self.model.wire + self.collectives * self.model.latency

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """A line for each quantity."""
        kinds = "".join(f"\n  {bytes_text(n):>10}  {kind}" for kind, n in self.kinds.items())
        count = count_text(self.collectives, "collective")
        return (
            f"wire bytes a device: {bytes_text(self.wire_bytes)} in {count}{kinds}\n"
            f"operations a device: {self.flops:.4g}\n"
            f"bytes through memory a device: {bytes_text(self.memory_bytes)}\n"
            f"time on a simple machine: {self.seconds:.3g} s"
        )


def cost_of(program: Program, model: MachineModel | None = None) -> Cost:
    """The cost of a program at a local stage; raises UsageError for a program on whole tensors."""
    if not program.is_local:
        raise UsageError(f"costs are known of per-device programs, {program.name} is at stage {program.stage}")
    uses = collectives_of(program)
    flops = memory = 0.0
    for node, count in counted(program.body):
        if node.op.flow is None:
            flops += count * _flops(node)
            memory += count * _streamed(node)
    return Cost(wire_of(uses), by_kind(uses), sum(use.count for use in uses), flops, memory, model or MachineModel())


def _flops(node: Node) -> float:
    if node.op.traffic is not None or node.op.has(Trait.IDENTITY) or node.op.has(Trait.LITERAL):
        return 0.0
    rule = node_rule(node)
    if rule is not None and rule.flops:
        return float(rule.flops)
    inside = sum(_flops(inner) for region in node.regions for inner in region.nodes)
    return max(inside, float(sum(v.type.size for v in node.results)))


def _streamed(node: Node) -> float:
    if node.op.has(Trait.LITERAL):
        return 0.0
    return float(sum(v.type.nbytes for v in (*node.operands, *node.results)))
