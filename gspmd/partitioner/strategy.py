"""What one op needs and yields under each way to split it, and what that costs (paper section 4.2, 4.5).

The cost of a choice is the wire time of bringing the operands there and the results home, plus the time to stream the
local tensors through memory, as far as computing does not hide it. Ops that compute more than they stream compare by
the local computation first: work is never undone across devices to save bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gspmd.ir.agreement import leaves_unreduced
from gspmd.ir.axes import Axes, overlaps, parts
from gspmd.ir.errors import PartitionError
from gspmd.ir.rule import Access, Rule
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.partitioner.candidates import Assignment, candidates, tensor_sharding
from gspmd.partitioner.halo import halo_elements
from gspmd.partitioner.planner import plan

# Bytes through memory that take as long as one byte on the wire.
_MEMORY_PER_WIRE = 8.0
# Scalar operations that take as long as one byte through memory: while they run, memory is streamed for nothing.
_WORK_PER_BYTE = 8.0


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to partition an op.

    `needs`: the sharding that each operand must have; `yields`: what the results come out as, perhaps unreduced.
    `bring`: the cost of resharding each operand to its need; `home`: of resharding the results to what propagation
    wants; `inside`: halos and memory traffic; `work`: local scalar operations of an op that computes;
    `unreduced_parts`: over how many devices the results are still to be combined.
    """

    needs: tuple[Sharding, ...]
    yields: tuple[Sharding, ...]
    bring: tuple[float, ...]
    home: float
    inside: float
    work: int
    unreduced_parts: int


@lru_cache(maxsize=1 << 16)
def choices(rule: Rule, operands: tuple[TensorType, ...], wanted: tuple[TensorType, ...]) -> tuple[Choice, ...]:
    """Every way worth considering to partition an op whose operands are held as `operands` say."""
    held = tuple(t.placed for t in operands)
    wants = tuple(t.placed for t in wanted)
    found: list[Choice] = []
    for assignment in candidates(rule, tuple(s.reduced() for s in held) + wants):
        for axes, group in _passing(rule, held, operands):
            choice = _choice(rule, operands, wanted, assignment, axes, group)
            if choice is not None:
                found.append(choice)
    if not found:
        raise PartitionError(f"no way to partition {rule.text()}")
    return tuple(found)


def _passing(
    rule: Rule, held: tuple[Sharding, ...], operands: tuple[TensorType, ...]
) -> list[tuple[Axes, tuple[int, ...]]]:
    """Over which axes values may stay unreduced through the op, and in which operands; always also nowhere."""
    out: list[tuple[Axes, tuple[int, ...]]] = [((), ())]
    for group in rule.linear:
        sets = {held[i].unreduced for i in group}
        if len(sets) == 1 and held[group[0]].monoid == "add":
            out.append((held[group[0]].unreduced, group))
    return out


def _choice(
    rule: Rule,
    operands: tuple[TensorType, ...],
    wanted: tuple[TensorType, ...],
    assignment: Assignment,
    passing: Axes,
    group: tuple[int, ...],
) -> Choice | None:
    split = dict(assignment)
    if passing and any(overlaps(passing, axes) for axes in split.values()):
        return None
    outcome = _unreduced(rule, split, passing)
    if outcome is None:
        return None
    unreduced, monoid = outcome
    needs: list[Sharding] = []
    for i, (tensor, type_) in enumerate(zip(rule.operands, operands, strict=True)):
        need = tensor_sharding(rule, tensor, split, type_.placed)
        needs.append(need.with_unreduced(passing, "add") if i in group and passing else need)
    yields = tuple(
        tensor_sharding(rule, tensor, split, type_.placed).with_unreduced(unreduced, monoid)
        for tensor, type_ in zip(rule.results, wanted, strict=True)
    )
    if any(s.reduced() != s for s in yields) and not all(t.placed.reduced() == t.sharding for t in wanted):
        return None
    bring = tuple(_cost(t, t.placed, need) for t, need in zip(operands, needs, strict=True))
    home = sum(_cost(t, have, t.placed) for t, have in zip(wanted, yields, strict=True))
    work = _work(rule, split)
    streamed = max(_memory(operands, needs, wanted, yields) - work / _WORK_PER_BYTE, 0.0)
    inside = _halo_bytes(rule, operands, needs, split) + streamed / _MEMORY_PER_WIRE
    combined = max((parts(s.unreduced) for s in yields), default=1)
    return Choice(tuple(needs), yields, bring, home, inside, work, combined)


def _cost(type_: TensorType, source: Sharding, target: Sharding) -> float:
    return plan(type_.shape, type_.dtype.itemsize, source, target).cost


def _unreduced(rule: Rule, split: dict[int, Axes], passing: Axes) -> tuple[Axes, str | None] | None:
    """The axes over which the results come out unreduced, and the monoid; None if two monoids would mix."""
    axes, monoids = passing, {"add"} if passing else set[str]()
    for f, over in split.items():
        factor = rule.factors[f]
        if over and leaves_unreduced(rule, f):
            if factor.monoid is None:
                return None
            axes += over
            monoids.add(factor.monoid)
    if len(monoids) > 1:
        return None
    return axes, next(iter(monoids), None)


def _work(rule: Rule, split: dict[int, Axes]) -> int:
    """Scalar operations on one device."""
    if not rule.flops:
        return 0
    whole = prod(f.size for f in rule.factors)
    local = prod(-(-f.size // parts(split.get(i, ()))) for i, f in enumerate(rule.factors))
    return rule.flops * local // max(whole, 1)


def _halo_bytes(rule: Rule, operands: tuple[TensorType, ...], needs: list[Sharding], split: dict[int, Axes]) -> float:
    """Wire bytes of the halos that access dimensions fetch."""
    total = 0.0
    for tensor, type_, need in zip(rule.operands, operands, needs, strict=True):
        for d, dim in enumerate(tensor):
            if not isinstance(dim, Access):
                continue
            o, k = dim.factor, dim.kernel_factor
            places, taps = parts(split.get(o, ())), 1 if k is None else parts(split.get(k, ()))
            if places * taps > 1:
                local = type_.with_sharding(need).local
                row = local.nbytes // max(local.shape[d], 1)
                total += halo_elements(dim, rule, places, taps, rule.main_factor(dim) != o) * row
    return total


def _memory(
    operands: tuple[TensorType, ...],
    needs: list[Sharding],
    wanted: tuple[TensorType, ...],
    yields: tuple[Sharding, ...],
) -> float:
    pairs = [*zip(operands, needs, strict=True), *zip(wanted, yields, strict=True)]
    return float(sum(t.with_sharding(s).local.nbytes for t, s in pairs))
