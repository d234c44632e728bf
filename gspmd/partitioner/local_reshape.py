"""Reshapes: free where both sides split the same factors evenly, else one fetch in flat space (paper section 4.3).

Dimensions form groups, the smallest runs of operand and result dimensions that hold the same elements. Where only the
leading dimension of a group is split, a device holds a run of flat positions on either side: `chunk * rest` elements.
If a ragged dimension makes the two runs differ, the device fetches one from the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from gspmd.ir.attrs import ResultShape
from gspmd.ir.axes import Axes
from gspmd.ir.errors import PartitionError
from gspmd.ir.graph import Node, Value
from gspmd.ir.rule import Rule, TensorMap, dim_factors
from gspmd.ir.types import TensorType
from gspmd.ops.fetch import FETCH
from gspmd.ops.fetch_plan import Reading
from gspmd.ops.layout import RESHAPE
from gspmd.partitioner.context import LocalContext
from gspmd.partitioner.form import LocalForm


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a group: its first and last dimension, and the axes and the flat run of the leading one.

    `leading_only`: no other dimension is split; `even`: each is split into equal shards.
    """

    first: int
    last: int
    axes: Axes
    run: int
    leading_only: bool
    even: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Operand and result dimensions that hold the same `size` elements in the same order."""

    size: int
    operand: Side
    result: Side

    @property
    def agrees(self) -> bool:
        """Whether each device's elements are the same on both sides, in the same order."""
        if self.operand.leading_only and self.result.leading_only:
            return self.operand.axes == self.result.axes and self.operand.run == self.result.run
        return self.operand.even and self.result.even


def needs_flat_fetch(node: Node, form: LocalForm) -> bool:
    """Whether an op whose rule has product dimensions must move data to be local."""
    if len(node.operands) != 1 or len(node.results) != 1:
        return False
    return not all(g.agrees for g in _groups(form.rule, node.operands[0].type, node.results[0].type))


def reshape(context: LocalContext, x: Value) -> Value:
    """The local body: flatten each group that differs, fetch in flat space, and shape the result."""
    b, node = context.builder, context.node
    for g in reversed(_groups(context.rule, node.operands[0].type, node.results[0].type)):
        if g.agrees:
            continue
        if not (g.operand.leading_only and g.result.leading_only):
            raise PartitionError(
                f"a reshape from {node.operands[0].type.text()} to {node.results[0].type.text()} splits a minor part "
                "of a dimension unevenly",
                fix="split only the leading dimension, or by divisors",
            )
        shape, lo, hi = x.type.shape, g.operand.first, g.operand.last + 1
        if hi - lo > 1:
            x = RESHAPE(b, x, shape=ResultShape((*shape[:lo], prod(shape[lo:hi]), *shape[hi:])))
        r = Reading(g.size, g.operand.axes, g.operand.run, g.size, g.result.axes, g.result.run)
        x = FETCH(b, x, dim=lo, reading=r)
    out = context.local_result()
    return x if x.type == out else RESHAPE(b, x, shape=ResultShape(out.shape))


def _groups(rule: Rule, operand: TensorType, result: TensorType) -> list[Group]:
    """The groups of dimensions that share factors, in order."""
    left, right = rule.operands[0], rule.results[0]
    out: list[Group] = []
    i = j = 0
    while i < len(left) or j < len(right):
        if i < len(left) and not left[i]:
            i += 1
            continue
        if j < len(right) and not right[j]:
            j += 1
            continue
        if i == len(left) or j == len(right):
            break
        a, b = _run(left, i, right, j, rule)
        size = prod(operand.shape[i:a])
        out.append(Group(size, _side(left, operand, i, a), _side(right, result, j, b)))
        i, j = a, b
    return out


def _run(left: TensorMap, i: int, right: TensorMap, j: int, rule: Rule) -> tuple[int, int]:
    """The ends of the group that starts at dimensions i and j."""
    a, b = i + 1, j + 1
    m, n = rule.dim_size(left[i]), rule.dim_size(right[j])
    while m != n:
        if (m < n and a < len(left)) or b == len(right):
            if a == len(left):
                break
            m, a = m * rule.dim_size(left[a]), a + 1
        else:
            n, b = n * rule.dim_size(right[b]), b + 1
    return a, b


def _side(tensor: TensorMap, type_: TensorType, first: int, end: int) -> Side:
    sharding = type_.placed
    real = [d for d in range(first, end) if dim_factors(tensor[d])] or [first]
    split = [d for d in range(first, end) if sharding.dims[d].axes]
    leading = real[0]
    run = sharding.chunk(leading, type_.shape[leading]) * prod(type_.shape[leading + 1 : end])
    even = all(sharding.chunk(d, type_.shape[d]) * sharding.dims[d].parts == type_.shape[d] for d in split)
    return Side(first, end - 1, sharding.dims[leading].axes, run, split in ([], [leading]), even)
