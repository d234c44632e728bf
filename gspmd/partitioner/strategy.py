"""What one op needs and yields under each way to split it, and what that costs (paper section 4.2, 4.5).

The cost of a choice is the wire time of bringing the operands there and the results home, plus the time to stream the
local tensors through memory, as far as computing does not hide it. Devices repeat one another's work to save bytes only
where it is little, and takes less time than sending would; what computes much is undone only where that is far dearer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from gspmd.ir.agreement import leaves_unreduced
from gspmd.ir.axes import Axes, overlaps, parts
from gspmd.ir.errors import PartitionError
from gspmd.ir.rule import Access, Rule, TensorMap, dim_factors
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.partitioner.candidates import Assignment, candidates, tensor_sharding
from gspmd.partitioner.halo import halo_elements
from gspmd.partitioner.planner import plan
from gspmd.partitioner.search import LATENCY_BYTES

# Bytes through memory that take as long as one byte on the wire.
_MEMORY_PER_WIRE = 32.0
# Scalar operations that take as long as one byte through memory: while they run, memory is streamed for nothing.
_WORK_PER_BYTE = 8.0
# Scalar operations that take as long as one byte on the wire.
WORK_PER_WIRE = 512.0
# Scalar operations that devices may do again, all of them, to save bytes; what is more stays divided among them.
LITTLE_WORK = 1 << 22
# How many times as long a choice must take by which devices do not do more than that again.
LONG_BEFORE = 4.0


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
        for axes, group in _passing(rule, held):
            choice = _choice(rule, operands, wanted, assignment, axes, group)
            if choice is not None:
                found.append(choice)
    if not found:
        raise PartitionError(f"no way to partition {rule.text()}")
    return tuple(found)


def _passing(rule: Rule, held: tuple[Sharding, ...]) -> list[tuple[Axes, tuple[int, ...]]]:
    """Over which axes values may stay unreduced through the op, and in which operands; always also nowhere.

    An operand of a linear group that is reduced can join the others: its value then stands on one device of a group.
    """
    out: list[tuple[Axes, tuple[int, ...]]] = [((), ())]
    for group in rule.linear:
        sums = [held[i] for i in group if held[i].unreduced]
        if sums and all(s.monoid == "add" and s.unreduced == sums[0].unreduced for s in sums):
            out.append((sums[0].unreduced, group))
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
    reads = [tensor_sharding(rule, t, split, x.placed) for t, x in zip(rule.operands, operands, strict=True)]
    needs = [_where_it_is(t, s, x.placed) for t, s, x in zip(rule.operands, reads, operands, strict=True)]
    if passing:
        needs = [s.with_unreduced(passing, "add") if i in group else s for i, s in enumerate(needs)]
    yields = tuple(
        tensor_sharding(rule, tensor, split, type_.placed).with_unreduced(unreduced, monoid)
        for tensor, type_ in zip(rule.results, wanted, strict=True)
    )
    if any(s.reduced() != s for s in yields) and not all(t.placed.reduced() == t.sharding for t in wanted):
        return None
    bring = tuple(_cost(t, t.placed, need) for t, need in zip(operands, needs, strict=True))
    home = sum(_cost(t, have, t.placed) for t, have in zip(wanted, yields, strict=True))
    work = _work(rule, split)
    streamed = max(_memory(rule, operands, reads, wanted, yields) - work / _WORK_PER_BYTE, 0.0)
    sent = _halo_bytes(rule, operands, needs, split) + _told_bytes(rule, wanted, yields, split)
    inside = sent + streamed / _MEMORY_PER_WIRE
    combined = max((parts(s.unreduced) for s in yields), default=1)
    return Choice(tuple(needs), yields, bring, home, inside, work, combined)


def _where_it_is(tensor: TensorMap, read: Sharding, held: Sharding) -> Sharding:
    """What an operand must be: where an access reads a dimension that every device has whole, it stays so."""
    used = tuple(a for dim in held.dims for a in dim.axes)
    dims = tuple(
        here if isinstance(dim, Access) and not here.axes and not overlaps(wanted.axes, used) else wanted
        for dim, wanted, here in zip(tensor, read.dims, held.dims, strict=True)
    )
    return read if dims == read.dims else read.with_dims(dims)


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
    if not all(f.size for f in rule.factors):
        return total
    for tensor, type_, need in zip(rule.operands, operands, needs, strict=True):
        for d, dim in enumerate(tensor):
            if not isinstance(dim, Access) or not need.dims[d].axes:
                continue
            o, k = dim.factor, dim.kernel_factor
            places, taps = parts(split.get(o, ())), 1 if k is None else parts(split.get(k, ()))
            if places * taps > 1:
                local = type_.with_sharding(need).local
                row = local.nbytes // max(local.shape[d], 1)
                total += halo_elements(dim, rule, places, taps, rule.main_factor(dim) != o) * row
    return total


def _told_bytes(
    rule: Rule, wanted: tuple[TensorType, ...], yields: tuple[Sharding, ...], split: dict[int, Axes]
) -> float:
    """Wire bytes of what devices tell one another inside an op, with what a collective costs beside.

    Those are totals of their parts of a scan, or their own picks.
    """
    total = 0.0
    for f, axes in split.items():
        factor = rule.factors[f]
        if not axes or factor.kind not in ("scan", "select"):
            continue
        own = -(-factor.size // parts(axes)) if factor.kind == "scan" else 1
        local = sum(t.with_sharding(s).local.nbytes for t, s in zip(wanted, yields, strict=True))
        total += (parts(axes) - 1) * local / max(own, 1) + LATENCY_BYTES
    return total


def _memory(
    rule: Rule,
    operands: tuple[TensorType, ...],
    reads: list[Sharding],
    wanted: tuple[TensorType, ...],
    yields: tuple[Sharding, ...],
) -> float:
    """Bytes that a device reads and writes: of what is looked up no more than comes out, and none for another view."""
    if _only_views(rule):
        return 0.0
    written = float(sum(t.with_sharding(s).local.nbytes for t, s in zip(wanted, yields, strict=True)))
    total = written
    for tensor, type_, sharding in zip(rule.operands, operands, reads, strict=True):
        read = float(type_.with_sharding(sharding).local.nbytes)
        looked_up = any(rule.factors[f].kind == "lookup" for dim in tensor for f in dim_factors(dim))
        total += min(read, written) if looked_up else read
    return total


@lru_cache(maxsize=1 << 12)
def _only_views(rule: Rule) -> bool:
    """Whether an op shows the elements of its operand, in their order, under another shape."""
    if len(rule.operands) != 1 or len(rule.results) != 1 or rule.operands == rule.results:
        return False
    dims = [d for t in rule.tensors for d in t]
    if any(isinstance(d, Access) for d in dims) or any(f.kind != "pass" or f.position for f in rule.factors):
        return False
    operand, result = ([f for d in t for f in dim_factors(d)] for t in rule.tensors)
    return operand == result
